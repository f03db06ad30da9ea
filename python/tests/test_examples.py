"""What a new user types first, from packing to resuming on other ranks."""

from __future__ import annotations

from pathlib import Path

import headrace as hr
import numpy as np


def test_pack_open_train_stop_and_resume(tmp_path: Path) -> None:
    out = tmp_path / "digits"
    rng = np.random.default_rng(0)
    with hr.Writer(out, columns={"x": "ndarray:float32:16", "y": "int"}, size_limit="64KB") as w:
        for _ in range(2000):
            x = rng.normal(size=16).astype(np.float32)
            w.write({"x": x, "y": int(x.sum() > 0)})

    ds = hr.open(out)
    train, held_out = ds.split(0.9, seed=1)
    weights = np.zeros(16)
    order = hr.Order(seed=17)

    with hr.Loader(train, batch_size=64, order=order, output="numpy") as loader:
        for step, batch in enumerate(loader):
            error = 1 / (1 + np.exp(-batch["x"] @ weights)) - batch["y"]
            weights -= 0.1 * batch["x"].T @ error / len(error)
            if step == 9:
                break
        state = loader.state_dict()

    # The same run goes on as two ranks; the global batch stays the same.
    seen = []
    for rank in range(2):
        with hr.Loader(
            train, global_batch_size=64, order=order, rank=rank, world_size=2, output="numpy"
        ) as loader:
            loader.load_state_dict(state)
            for batch in loader:
                seen += batch["__index__"].tolist()
    assert len(seen) == len(set(seen)) == len(train) // 64 * 64 - 640

    x = np.stack([sample["x"] for sample in held_out])
    y = np.array([sample["y"] for sample in held_out])
    assert np.mean((x @ weights > 0) == y) > 0.8

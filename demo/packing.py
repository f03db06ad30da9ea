"""Makes the data of the demo and packs it: photographs and text, as MDS and tar, here and on S3."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import DEMO, ROOT, DemoError, headrace, run_command, say, step


@dataclass
class Packed:
    """One packed data set: where its two copies are, and what the tool said about them."""

    name: str
    format: str
    local: str
    remote: str
    pack: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    verify: dict[str, Any] = field(default_factory=dict)


def photo_python(environment: Mapping[str, str]) -> str:
    """An interpreter that has the pinned Pillow; made on first use."""
    python = ROOT / ".venv-photos" / "bin" / "python"
    peers = ROOT / "tools" / "peer_envs.py"
    run_command([sys.executable, str(peers), "photos"], environment)
    return str(python)


def make_photos(folder: Path, count: int, seed: int, environment: Mapping[str, str]) -> Path:
    """Class folders of pictures cut from Debian's wallpapers; kept from run to run."""
    with step(f"photographs: {count:,} pictures cut from Debian's wallpapers"):
        words = [photo_python(environment), str(DEMO / "make_photos.py"), str(folder)]
        words += ["--count", str(count), "--seed", str(seed), "--force"]
        say("  " + run_command(words, environment).strip())
    return folder


def make_text(path: Path, environment: Mapping[str, str]) -> Path:
    """JSON lines of the sections of Python's manual."""
    with step("text: the sections of Python's manual"):
        words = [sys.executable, str(DEMO / "make_text.py"), str(path)]
        say("  " + run_command(words, environment).strip())
    return path


def read_classes(folder: str) -> list[str]:
    """The names of the classes in the order of their labels."""
    path = Path(folder) / "classes.json"
    if not path.is_file():
        raise DemoError("pictures must lie in class folders: FOLDER/<class>/*.jpg")
    return list(json.loads(path.read_text())["classes"])


def pack_everywhere(
    name: str, source: Path, size_limit: str, local: Path, remote: str, env: Mapping[str, str]
) -> list[Packed]:
    """Packs one source as MDS and as tar, into a folder and straight to S3, and checks it all."""
    made = []
    for layout in ("mds", "wds"):
        data = Packed(name, layout, str(local / f"{name}-{layout}"), f"{remote}{name}-{layout}")
        options = ["--format", layout, "--size-limit", size_limit, "--overwrite"]
        copies = []
        for place in (data.local, data.remote):
            data.pack = headrace(env, "pack", str(source), place, *options)
            data.info = headrace(env, "info", place)
            data.verify = headrace(env, "verify", place)
            if not data.verify["ok"]:
                raise DemoError(f"{place} is not as it was packed: {data.verify['problems'][:3]}")
            copies.append((data.info["samples"], data.info["stored_bytes"], data.info["fields"]))
        if copies[0] != copies[1]:
            raise DemoError(f"{data.local} and {data.remote} differ: {copies}")
        shards = data.info["shards"]["count"]
        say(
            f"  {name} as {layout}: {data.info['samples']:,} samples, "
            f"{data.info['stored_bytes'] / 1e6:,.1f} MB, {shards} shards, verified twice"
        )
        made.append(data)
    return made


def find_field(fields: Mapping[str, str], *types: str) -> str:
    """The first field of one of these types."""
    for wanted in types:
        for name, kind in fields.items():
            if kind.startswith(wanted):
                return name
    raise DemoError(f"no field of type {' or '.join(types)} among {json.dumps(dict(fields))}")

"""Arguments that people know from other loaders: used where they mean something, else explained."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import UsageError
from headrace.order import Order

_NO_CACHE = "a cache on disk comes in a later release; memory= bounds what is held in memory"

# Of other loaders, without a meaning here: what to use instead.
_SUBSTITUTES = {
    "sampler": "choose samples with ds.select(), ds.filter() or ds.split(), and their order with "
    "order=headrace.Order(...)",
    "batch_sampler": "use batch_size= and order=headrace.Order(...)",
    "worker_init_fn": "there are no worker processes; do such work before making the loader",
    "multiprocessing_context": "there are no worker processes; threads= is how many threads work",
    "prefetch_factor": "reading ahead is bounded by memory=, such as memory='4GiB'",
    "pin_memory_device": "batches lie in ordinary memory in this release",
    "generator": "use order=headrace.Order(seed=...)",
    "in_order": "batches always come in the run order",
    "cache": _NO_CACHE,
    "require_verified": "it comes in a later release",
    "num_canonical_nodes": "use order=headrace.Order(lanes=...)",
    "shuffle_block_size": "use order=headrace.Order(window=...)",
    "shuffle_algo": "use order=headrace.Order(...)",
    "predownload": "reading ahead is bounded by memory=, such as memory='4GiB'",
    "cache_limit": _NO_CACHE,
    "local": "a cache on disk comes in a later release; data is read where it lies",
    "remote": "give headrace.open() the URL",
    "image_dtype": "pictures are uint8; convert them on the accelerator",
}

_KNOWN = (
    "batch_size",
    "global_batch_size",
    "order",
    "rank",
    "world_size",
    "epoch_end",
    "decode",
    "transform",
    "transform_in",
    "collate",
    "bad_samples",
    "threads",
    "memory",
    "output",
    "assignment",
    "skip",
    "read_timeout",
    "batch_timeout",
)
_TRANSLATED = (
    "shuffle",
    "seed",
    "drop_last",
    "collate_fn",
    "num_workers",
    "pin_memory",
    "persistent_workers",
)


@dataclass
class Familiar:
    """Arguments that others may have set, resolved."""

    order: Order
    epoch_end: str
    collate: Callable[[list[Any]], Any] | None
    threads: int | None


def familiar_arguments(
    given: dict[str, Any],
    *,
    order: Order | None,
    epoch_end: str | None,
    collate: Callable[[list[Any]], Any] | None,
    threads: int | None,
) -> Familiar:
    """Translates what is known from elsewhere.

    Raises:
        UsageError: without a meaning here, or in conflict with our own argument.
    """
    rest = dict(given)

    def take(name: str, own: str, value: Any) -> Any:
        """Argument ``name``, unless it is absent; it stands for our argument ``own``."""
        theirs = rest.pop(name, None)
        if theirs is not None and value is not None:
            raise UsageError(f"{name}= and {own}= say the same; give {own}= alone")
        return theirs

    shuffle = take("shuffle", "order", order)
    seed = take("seed", "order", order)
    resolved = order if order is not None else Order()
    if not isinstance(resolved, Order):
        raise UsageError(f"order must be headrace.Order(...), not {type(order).__name__}")
    if shuffle is not None:
        resolved = replace(resolved, shuffle=bool(shuffle))
    if seed is not None:
        resolved = replace(resolved, seed=seed)

    drop_last = take("drop_last", "epoch_end", epoch_end)
    if drop_last is not None:
        epoch_end = "drop" if drop_last else "partial"
    collate_fn = take("collate_fn", "collate", collate)
    workers = take("num_workers", "threads", threads)
    if rest.pop("pin_memory", None):
        raise UsageError(
            "pin_memory= is not in this release: batches lie in ordinary memory, and "
            "tensor.to(device) copies them as usual"
        )
    rest.pop("persistent_workers", None)
    _refuse(rest)
    return Familiar(
        order=resolved,
        epoch_end="drop" if epoch_end is None else epoch_end,
        collate=collate if collate_fn is None else collate_fn,
        # 0 workers means "none besides the loader itself", which is how it works anyway.
        threads=threads if threads is not None else (workers or None),
    )


def _refuse(rest: dict[str, Any]) -> None:
    for name in rest:
        if name in _SUBSTITUTES:
            raise UsageError(f"Loader has no {name}=: {_SUBSTITUTES[name]}")
        close = difflib.get_close_matches(name, (*_KNOWN, *_TRANSLATED), n=1)
        hint = f"; did you mean {close[0]}=?" if close else ""
        raise UsageError(f"Loader has no argument {name!r}{hint}")

"""Runs ``transform=`` and ``collate=`` for the engine, on its threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.batch import batch_rows, is_tensor, to_numpy
from headrace.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.random import Generator

Transform = Callable[[dict[str, Any], "Generator"], Any]
Collate = Callable[[list[Any]], Any]

_MASK = (1 << 64) - 1
# Of an exception's text, in characters: enough to tell what happened.
_TEXT_MAX = 2000
_GAMMA = 0x9E3779B97F4A7C15


def _mix(z: int) -> int:
    """The finaliser of SplitMix64, as the core has it."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def sample_rng(seed: int, epoch: int, ordinal: int) -> Generator:
    """The generator of one sample in one epoch: the same on any rank, thread and resume."""
    import numpy as np

    high = _mix((_mix((seed + _GAMMA) & _MASK) ^ epoch) + _GAMMA & _MASK)
    return np.random.Generator(np.random.Philox(key=np.array([ordinal, high], dtype=np.uint64)))


def _names(sample: dict[Any, Any]) -> list[Any]:
    return sorted(sample, key=repr)  # keys of different types have no order of their own


def default_collate(samples: list[Any]) -> Any:
    """Stacks samples: equal arrays and tensors along a new first axis, numbers to an array.

    What cannot be stacked (text, bytes, arrays of different shapes) becomes a list.

    Raises:
        InvalidArgumentError: samples that are no dicts, or dicts with different keys.
    """
    first = samples[0]
    if not isinstance(first, dict):
        raise InvalidArgumentError(
            f"transform returned {type(first).__name__}, and only dicts are collated; return a "
            "dict, or give the loader collate=f(list of samples)"
        )
    for sample in samples:
        if not isinstance(sample, dict) or sample.keys() != first.keys():
            keys = _names(sample) if isinstance(sample, dict) else type(sample).__name__
            raise InvalidArgumentError(
                f"samples of one batch differ: one has {_names(first)}, another {keys}"
            )
    return {name: _stack([sample[name] for sample in samples]) for name in first}


def _stack(values: list[Any]) -> Any:
    import numpy as np

    first = values[0]
    if isinstance(first, (np.ndarray, np.generic)):
        same = all(
            isinstance(v, (np.ndarray, np.generic)) and v.shape == first.shape for v in values
        )
        return np.stack(values) if same else values
    if is_tensor(first):
        from headrace._host import imported_torch

        same = all(is_tensor(v) and v.shape == first.shape for v in values)
        return imported_torch().stack(values) if same else values
    for kinds, dtype in (((bool,), "bool"), ((int,), "int64"), ((int, float), "float64")):
        if all(isinstance(v, kinds) for v in values):
            try:
                return np.array(values, dtype=dtype)
            except OverflowError:
                return values
    return values


def _as_output(value: Any, output: str) -> Any:
    """Arrays as what the loader hands over."""
    import numpy as np

    if output == "torch" and isinstance(value, np.ndarray):
        from headrace._host import imported_torch

        try:
            return imported_torch().from_numpy(value)
        except TypeError:
            return value  # text and objects have no tensor
    return value


def _told(error: BaseException) -> str:
    """An exception as text, whatever its class makes of that."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as another:
        text = f"(its text cannot be had: str() raised {type(another).__name__})"
    if len(text) > _TEXT_MAX:
        text = f"{text[:_TEXT_MAX]} ... ({len(text)} characters)"
    return f"{name}: {text}".encode(errors="backslashreplace").decode()


class Stage:
    """Holds what was made of batches until the consumer takes it, and why samples failed.

    Called on threads of the core; every access to its tables is a single operation of a dict.
    """

    def __init__(self, transform: Transform | None, collate: Collate | None, output: str) -> None:
        self._transform = transform
        self._collate = collate
        self._output = output
        self._numbers = itertools.count()
        self._results: dict[int, Any] = {}
        self._failures: dict[int, BaseException] = {}
        self._generation = 0
        self._is_stopped = False
        self._running: set[int] = set()

    def __call__(
        self, batch: _core.Batch, seed: int, epochs: list[int]
    ) -> tuple[int, list[tuple[int, str]], str]:
        """What the core runs for each batch; see PythonStage in python/src/stage.h.

        After failed rows the core applies its policy and asks again for the rows that are left.
        """
        thread = threading.get_ident()
        self._running.add(thread)
        try:
            return self._make(batch, seed, epochs)
        finally:
            self._running.discard(thread)

    def _make(
        self, batch: _core.Batch, seed: int, epochs: list[int]
    ) -> tuple[int, list[tuple[int, str]], str]:
        generation = self._generation
        number = next(self._numbers)
        ordinals = to_numpy(batch.index).tolist()
        failed: list[tuple[int, str]] = []
        samples: list[Any] = []
        for row, sample in enumerate(batch_rows(batch, copy=False)):
            if self._is_stopped:
                return number, [], "the loader is closed"
            sample["__index__"] = ordinals[row]
            if self._transform is None:
                samples.append(sample)
                continue
            try:
                rng = sample_rng(seed, epochs[row], ordinals[row])
                samples.append(self._transform(sample, rng))
            except Exception as error:
                self._failures.setdefault(batch.begin, error)
                failed.append((row, f"transform raised {_told(error)}"))
            # SystemExit and the like mean more than one bad sample; no policy may swallow them.
            except BaseException as error:
                self._failures[batch.begin] = error
                return number, [], f"transform raised {_told(error)}"
        if failed:
            return number, failed, ""
        try:
            made = self._finish(batch, samples)
        except BaseException as error:
            self._failures[batch.begin] = error
            return number, [], f"collating a batch raised {_told(error)}"
        self._failures.pop(batch.begin, None)
        if generation == self._generation:
            self._results[number] = made
        return number, [], ""

    def _finish(self, batch: _core.Batch, samples: list[Any]) -> Any:
        if self._collate is not None and samples:
            return self._collate(samples)
        made = default_collate(samples) if samples else {}
        made["__index__"] = to_numpy(batch.index)
        if batch.mask is not None:
            made["__mask__"] = to_numpy(batch.mask)
        return {name: _as_output(value, self._output) for name, value in made.items()}

    def take(self, number: int) -> Any:
        """What was made of a batch; it is handed over once."""
        return self._results.pop(number)

    def failure(self, begin: int) -> BaseException | None:
        """Why the batch that begins at that run position failed."""
        return self._failures.pop(begin, None)

    def is_running_here(self) -> bool:
        """Whether the calling thread is in a transform or collate of this stage."""
        return threading.get_ident() in self._running

    def stop(self) -> None:
        """Lets batches that are being made end after the sample in hand."""
        self._is_stopped = True

    def clear(self) -> None:
        """Forgets everything, including what workers are still busy with."""
        self._generation += 1
        self._results.clear()
        self._failures.clear()

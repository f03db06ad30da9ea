"""What to make of encoded pictures on their way into a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headrace import _core
from headrace._sizes import whole_number
from headrace.errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ImageDecode", "image"]

_PIXELS_MAX = 1 << 27
_SIDE_MAX = 65535


@dataclass(frozen=True)
class ImageDecode:
    """Made by ``image``; give it to ``Loader(decode={"field": ...})``."""

    size: tuple[int, int] | None
    crop: Literal["random-resized", "center", "whole"] | None
    scale: tuple[float, float]
    ratio: tuple[float, float]
    resize: int | None
    flip: float
    pixels_max: int

    def _spec(self) -> _core.ImageSpec:
        height, width = self.size if self.size is not None else (0, 0)
        return _core.ImageSpec.make(
            self.crop or "none",
            height,
            width,
            self.scale,
            self.ratio,
            self.resize or 0,
            self.flip,
            self.pixels_max,
        )

    def __call__(
        self, encoded: bytes, *, seed: int = 0, epoch: int = 0, sample: int = 0
    ) -> NDArray[Any]:
        """Decodes one JPEG or PNG as a loader with that seed does: uint8 [height, width, 3].

        Raises:
            CorruptDataError: damaged, or no picture at all.
        """
        import numpy as np

        return np.asarray(_core.decode_image(encoded, self._spec(), seed, epoch, sample))


def image(
    size: int | tuple[int, int] = 224,
    crop: Literal["random-resized", "center", "whole"] | None = "random-resized",
    *,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    resize: int | None = None,
    flip: float | None = None,
    pixels_max: int = _PIXELS_MAX,
) -> ImageDecode:
    """Decodes JPEG and PNG to RGB, uint8 [height, width, 3] for each sample.

    Args:
        size: side of the square to make, or (height, width). Not used with ``crop=None``.
        crop: "random-resized" takes a random part, as for training; "center" resizes the shorter
            side to ``resize`` and cuts out the middle, as for evaluation; "whole" resizes the whole
            picture whatever its aspect; None keeps each picture at its own size (a ragged field).
        scale: with "random-resized", the part's share of the area, smallest and largest.
        ratio: with "random-resized", the part's width over its height, smallest and largest.
        resize: with "center", what the shorter side becomes; default: size * 256 / 224.
        flip: probability of a left-right flip; default 0.5 with "random-resized" and 0 otherwise.
        pixels_max: larger pictures are refused before memory is taken for them.

    Random choices are keyed by (seed, epoch, sample): the same for any number of ranks and threads
    and after any resume.

    Raises:
        InvalidArgumentError: values that cannot be.
    """
    sides: tuple[int, int] | None = None
    if crop is not None:
        pair = size if isinstance(size, tuple) else (size, size)
        if len(pair) != 2:
            raise InvalidArgumentError(f"size={size} is neither a side nor (height, width)")
        sides = (
            whole_number(pair[0], "size", 1, _SIDE_MAX),
            whole_number(pair[1], "size", 1, _SIDE_MAX),
        )
    if resize is not None:
        whole_number(resize, "resize", 1, _SIDE_MAX)
    whole_number(pixels_max, "pixels_max", 1, 1 << 62)
    if flip is None:
        flip = 0.5 if crop == "random-resized" else 0.0
    made = ImageDecode(sides, crop, scale, ratio, resize, float(flip), pixels_max)
    made._spec()  # checks everything now, where the mistake was made
    return made

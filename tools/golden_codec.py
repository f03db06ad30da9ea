"""Writes tests/golden/codec: small images and what Pillow makes of boxes of them.

Run by hand when cases are added: python tools/golden_codec.py
Needs pillow==13.0.0 and numpy, and cjpeg (Debian: libjpeg-turbo-progs) for the samplings
that Pillow does not write. The output is the same on every run.
"""

from __future__ import annotations

import hashlib
import io
import pathlib
import random
import struct
import subprocess
import zlib
from typing import Any

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "codec"
BOXES_PER_IMAGE = 8


def texture(width: int, height: int, seed: int) -> Image.Image:
    """Waves plus noise: smooth parts, edges and full-range values in every channel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        127 + 90 * np.sin(x / (5 + c) + y / (11 + 3 * c)) + rng.normal(0, 20, (height, width))
        for c in range(3)
    ]
    return Image.fromarray(np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8))


def pillow_file(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def cjpeg_file(image: Image.Image, *options: str) -> bytes:
    ppm = pillow_file(image, "PPM")
    command = ["cjpeg", "-quality", "80", *options]
    return subprocess.run(command, input=ppm, capture_output=True, check=True).stdout


def jpegs() -> dict[str, bytes]:
    big = texture(161, 123, 1)
    grey = big.convert("L")
    jpeg: dict[str, Any] = {"kind": "JPEG", "quality": 80}
    files = {
        "444.jpg": pillow_file(big, **jpeg, subsampling=0),
        "422.jpg": pillow_file(big, **jpeg, subsampling=1),
        "420.jpg": pillow_file(big, **jpeg, subsampling=2),
        "440.jpg": cjpeg_file(big, "-sample", "1x2"),
        "411.jpg": cjpeg_file(big, "-sample", "4x1"),
        "mixed.jpg": cjpeg_file(big, "-sample", "2x2,1x2,2x1"),
        "arithmetic.jpg": cjpeg_file(big, "-arithmetic"),
        "restart.jpg": pillow_file(big, **jpeg, subsampling=2, restart_marker_rows=1),
        "progressive.jpg": pillow_file(big, **jpeg, subsampling=2, progressive=True),
        "progressive_444.jpg": pillow_file(big, **jpeg, subsampling=0, progressive=True),
        "grey.jpg": pillow_file(grey, **jpeg),
        "grey_progressive.jpg": pillow_file(grey, **jpeg, progressive=True),
        "rgb.jpg": pillow_file(big, **jpeg, keep_rgb=True),
        "cmyk.jpg": pillow_file(big.convert("CMYK"), **jpeg),
        "tall.jpg": pillow_file(texture(67, 200, 2), **jpeg, subsampling=2),
    }
    for width, height in [(1, 1), (1, 70), (70, 1), (17, 9), (16, 16), (33, 64), (3, 310)]:
        image = texture(width, height, width * 1000 + height)
        files[f"{width}x{height}.jpg"] = pillow_file(image, **jpeg, subsampling=2)
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn, which Pillow and we ignore
    files["turned.jpg"] = pillow_file(texture(40, 30, 3), **jpeg, exif=exif)
    return files


def raw_png(samples: np.ndarray, depth: int, colour: int, interlaced: bool) -> bytes:
    """A PNG of the kinds Pillow does not write; samples are rows x columns x channels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    passes = [(0, 0, 1, 1)]  # first column and row, then the steps
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]  # fmt: skip
    body = b""
    for x, y, step_x, step_y in passes:
        part = samples[y::step_y, x::step_x].astype(">u2" if depth == 16 else "u1")
        if part.shape[1] > 0:
            body += b"".join(b"\0" + row.tobytes() for row in part)
    height, width = samples.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def pngs() -> dict[str, bytes]:
    image = texture(61, 43, 4)
    files = {}
    for mode in ["RGB", "RGBA", "L", "LA", "P", "1"]:
        picture = image.convert(mode)
        if mode in ("RGBA", "LA"):
            picture.putalpha(image.convert("L"))
        files[f"{mode.lower()}.png"] = pillow_file(picture, "PNG")
    files["p_transparent.png"] = pillow_file(image.convert("P"), "PNG", transparency=3)
    pixels = np.asarray(image).astype(np.uint16)
    files["interlaced.png"] = raw_png(pixels, 8, 2, True)
    files["interlaced_3x2.png"] = raw_png(pixels[:2, :3], 8, 2, True)
    files["rgb16.png"] = raw_png(pixels[:20, :30] * 256 + 171, 16, 2, False)
    files["grey16.png"] = raw_png(pixels[:20, :30, :1] * 256 + 171, 16, 0, False)
    files["two_bits.png"] = pillow_file(
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=4), "PNG", bits=2
    )
    return files


def boxes(width: int, height: int, rng: random.Random) -> list[tuple[int, ...]]:
    """x y w h, resized size, window corner, flip, output size (rows first)."""
    rows: list[tuple[int, ...]] = [(0, 0, width, height, width, height, 0, 0, 0, height, width)]
    for n in range(BOXES_PER_IMAGE - 1):
        w, h = rng.randint(1, width), rng.randint(1, height)
        x, y = rng.randint(0, width - w), rng.randint(0, height - h)
        if n % 3 == 0:
            resized = (64, 64)
        elif n % 3 == 1:
            resized = (w, h)
        else:
            resized = (rng.randint(1, 90), rng.randint(1, 90))
        out_w = resized[0] if n % 2 else rng.randint(1, resized[0])
        out_h = resized[1] if n % 2 else rng.randint(1, resized[1])
        left, top = rng.randint(0, resized[0] - out_w), rng.randint(0, resized[1] - out_h)
        rows.append((x, y, w, h, *resized, left, top, n % 2, out_h, out_w))
    return rows


def open_rgb(data: bytes) -> Image.Image:
    image: Image.Image = Image.open(io.BytesIO(data))
    if image.mode.startswith("I"):
        # Pillow would clip 16-bit grey to 255; we keep the upper 8 bits, as it does for colour.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGB")


def expected(image: Image.Image, row: tuple[int, ...]) -> str:
    x, y, w, h, resized_w, resized_h, left, top, flip, out_h, out_w = row
    box = (x, y, x + w, y + h)
    image = image.resize((resized_w, resized_h), Image.Resampling.BILINEAR, box=box)
    image = image.crop((left, top, left + out_w, top + out_h))
    if flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return hashlib.sha256(image.tobytes()).hexdigest()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rng = random.Random(20)
    lines = [
        "# file x y width height resized_width resized_height left top flip out_height out_width"
        " sha256 (made by tools/golden_codec.py)"
    ]
    for name, data in {**jpegs(), **pngs()}.items():
        (OUT / name).write_bytes(data)
        image = open_rgb(data)
        lines += [
            " ".join([name, *map(str, row), expected(image, row)])
            for row in boxes(image.width, image.height, rng)
        ]
    (OUT / "boxes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

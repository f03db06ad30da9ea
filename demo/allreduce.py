"""A sum over ranks on one machine: a star of Unix sockets with rank 0 in its middle.

This stands in for NCCL or Gloo, so that the demo needs nothing but numpy. A step ends on no rank
before every rank has brought its part: steps are truly synchronous. Ranks are added in their order,
so that the sum is the same in every run with as many ranks.
"""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_RANK = struct.Struct("<q")


class Star:
    """The connections of one rank; every operation ends or fails within `seconds`."""

    def __init__(self, path: Path, rank: int, world: int, seconds: float) -> None:
        self.rank, self.world = rank, world
        self._seconds = seconds
        self._peers: list[socket.socket] = []
        self._received = bytearray()
        until = time.monotonic() + seconds
        if rank == 0:
            self._gather(path, until)
        else:
            self._connect(path, until)

    def _gather(self, path: Path, until: float) -> None:
        found: dict[int, socket.socket] = {}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(self.world)
            while len(found) < self.world - 1:
                listener.settimeout(max(0.001, until - time.monotonic()))
                peer, _ = listener.accept()
                peer.settimeout(self._seconds)
                buffer = bytearray(_RANK.size)
                _receive(peer, buffer)
                found[_RANK.unpack(buffer)[0]] = peer
        self._peers = [found[rank] for rank in range(1, self.world)]

    def _connect(self, path: Path, until: float) -> None:
        while True:
            peer = socket.socket(socket.AF_UNIX)
            try:
                peer.settimeout(self._seconds)
                peer.connect(str(path))
                peer.sendall(_RANK.pack(self.rank))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                # Rank 0 does not listen yet.
                peer.close()
                if time.monotonic() > until:
                    raise TimeoutError(f"rank 0 is not at {path}") from None
                time.sleep(0.01)
        self._peers = [peer]

    def sum(self, vector: Vector) -> Vector:
        """The sum of the vectors that all ranks give to the same call."""
        mine = np.ascontiguousarray(vector, dtype=np.float64)
        if len(self._received) != mine.nbytes:
            self._received = bytearray(mine.nbytes)
        theirs = np.frombuffer(self._received, np.float64)
        if self.rank == 0:
            total = mine.copy()
            for peer in self._peers:
                _receive(peer, self._received)
                total += theirs
            for peer in self._peers:
                peer.sendall(total.data.cast("B"))
            return total
        self._peers[0].sendall(mine.data.cast("B"))
        _receive(self._peers[0], self._received)
        return theirs.copy()

    def __enter__(self) -> Star:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for peer in self._peers:
            peer.close()


def _receive(peer: socket.socket, buffer: bytearray) -> None:
    """Fills the buffer."""
    view = memoryview(buffer)
    while len(view):
        count = peer.recv_into(view)
        if count == 0:
            raise ConnectionError("another rank is gone")
        view = view[count:]

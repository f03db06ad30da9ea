"""A model small enough to train with numpy alone: softmax regression on coarse pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from common import write_whole
from numpy.typing import NDArray

# Sides of the picture that the model sees.
_SIDE = 16
_MOMENTUM = 0.9


class Softmax:
    """Which photograph is this crop from? Weights, their velocity, and the step they stand at."""

    def __init__(self, classes: int, rate: float) -> None:
        self.rate = rate
        self.weights = np.zeros((_SIDE * _SIDE * 3 + 1, classes))
        self.velocity = np.zeros_like(self.weights)

    @property
    def size(self) -> int:
        """Numbers in a gradient."""
        return self.weights.size

    def gradient(
        self, pictures: NDArray[Any], labels: NDArray[Any]
    ) -> tuple[NDArray[np.float64], float, int]:
        """Sums over the pictures, not means: the gradient, the loss, and how many were right."""
        inputs = _features(pictures)
        scores = inputs @ self.weights
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        shares = exponentials / exponentials.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = float(-np.log(np.maximum(shares[rows, labels], 1e-300)).sum())
        right = int((shares.argmax(axis=1) == labels).sum())
        shares[rows, labels] -= 1.0
        return (inputs.T @ shares).ravel(), loss, right

    def update(self, gradient: NDArray[np.float64]) -> None:
        """One step of descent with momentum along the mean gradient of a batch."""
        self.velocity *= _MOMENTUM
        self.velocity -= self.rate * gradient.reshape(self.weights.shape)
        self.weights += self.velocity

    def save(self, path: Path) -> None:
        out = io.BytesIO()
        np.savez(out, weights=self.weights, velocity=self.velocity)
        write_whole(path, out.getvalue())

    def load(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self.weights, self.velocity = stored["weights"], stored["velocity"]


def _features(pictures: NDArray[Any]) -> NDArray[np.float64]:
    """[n, h, w, 3] bytes to [n, 769]: means over squares, about -1 .. 1, and a one for the bias."""
    n, height, width, _ = pictures.shape
    squares = pictures.reshape(n, _SIDE, height // _SIDE, _SIDE, width // _SIDE, 3)
    flat = squares.mean(axis=(2, 4)).reshape(n, -1) / 127.5 - 1.0
    return np.concatenate([flat, np.ones((n, 1))], axis=1)

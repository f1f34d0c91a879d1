"""A link that loses frames."""

from __future__ import annotations

import random

from rltools_host.boards.transport import Link


class DisturbedLink(Link):
    """What `inner` carries, but for a part `loss` of it in either direction."""

    def __init__(self, inner: Link, loss: float = 0.0, seed: int = 0) -> None:
        self.inner = inner
        self.description = inner.description
        self._loss = loss
        self._chance = random.Random(seed)

    def read(self, timeout_s: float) -> bytes:
        data = self.inner.read(timeout_s)
        return b"" if self._chance.random() < self._loss else data

    def write(self, data: bytes) -> None:
        if self._chance.random() >= self._loss:
            self.inner.write(data)

    def close(self) -> None:
        self.inner.close()

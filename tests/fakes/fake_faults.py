"""What goes wrong with a fake board, and on its link."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Faults:
    """What goes wrong on the link, by chance, and what the board does wrong."""

    drop: float = 0.0  # share of frames that are lost
    repeat: float = 0.0  # share of frames that come twice
    flip: float = 0.0  # share of frames with one flipped bit
    noise: float = 0.0  # share of frames with noise before them
    drop_from_host: float = 0.0
    seed: int = 1
    unplug_at_step: int | None = None
    not_finite_at_step: int | None = None
    lose_messages: set[str] = field(default_factory=set)  # types that are lost once each
    wrong_state_sha256: bool = False
    wrong_fingerprint: int = 0  # bits that are wrong in the checkpoint's
    other_policy: bytes = b""  # instead of the state's
    refuse_parameter: str | None = None
    flip_upload: bool = False
    silent_refusals: bool = False  # a refused hyperparameter is not explained by a text
    strangers: bool = False  # before each message come wrong ones, for others or from others

    def spoil(self, frame: bytes, chance: random.Random) -> bytes:
        """What arrives where a frame was sent."""
        if chance.random() < self.drop:
            return b""
        if chance.random() < self.flip:
            damaged = bytearray(frame)
            damaged[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            frame = bytes(damaged)
        if chance.random() < self.repeat:
            frame += frame
        if chance.random() < self.noise:
            frame = chance.randbytes(chance.randrange(1, 40)) + frame
        return frame

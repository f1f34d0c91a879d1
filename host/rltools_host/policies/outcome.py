"""What comes of a push, a confirmation or a roll-back, and what is said of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rltools_host.clients.policies import Slots
from rltools_host.errors import RltError
from rltools_host.policies.image import PolicyImage

Say = Callable[[str], None]


@dataclass
class Outcome:
    """How a board stands after a push, a confirmation or a roll-back: the keys of `--json`."""

    board: str
    activated: bool = False  # what was asked for acts, for good
    active_sha256: str | None = None  # null where none is active
    slot: int | None = None
    reason: str = ""

    def take(self, slots: Slots) -> None:
        active = slots.active
        self.active_sha256 = active.sha256 if active else None
        self.slot = active.slot if active else None

    def document(self) -> dict[str, Any]:
        return asdict(self)


@contextlib.contextmanager
def reported(board: str) -> Iterator[Outcome]:
    """An outcome; where it comes to an error, that one carries it, and is its reason."""
    outcome = Outcome(board)
    try:
        yield outcome
    except RltError as error:
        outcome.activated = False
        outcome.reason = str(error)
        error.details = outcome.document()
        raise


@dataclass(frozen=True)
class Standing:
    """What policies a board has, as `rlt policies` shows it."""

    slots: Slots
    armed: bool  # or in the air
    contract: str
    device: str
    has_built_in: bool | None = None  # compiled in, and accepted; None: it does not say


def headline(image: PolicyImage) -> str:
    """The first line of a push: what is pushed."""
    return f"{image.experiment} of step {image.step:,}, {image.shape}: {short(image.sha256)}"


def short(sha256: str) -> str:
    return sha256[:12]

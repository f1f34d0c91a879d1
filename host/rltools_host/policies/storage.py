"""Looks into the file in which a board that is started here keeps its policies.

A start may write: firmware drops what it refuses, and what was in trial. Whoever looks starts it on
a copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rltools_host.boards.description import Board
from rltools_host.boards.storage import copied
from rltools_host.build import protocol
from rltools_host.clients.messages import Identity
from rltools_host.clients.policies import Slots
from rltools_host.clients.refusals import DROP_REASONS
from rltools_host.clients.session import BoardSession
from rltools_host.errors import UsageError
from rltools_host.link.board_link import open_board_link
from rltools_host.link.transport import Link

PROGRAM = "infer"
REFUSED = list(DROP_REASONS).index("refused")


@dataclass(frozen=True)
class Firmware:
    """A program that keeps policies, and what puts it on its board."""

    board: Board
    program: Path | None
    remedy: str

    def connected(self, link: Link) -> tuple[BoardSession, Identity]:
        session, identity = BoardSession.connect(link, protocol.load_dialect(), self.board.address)
        session.node.require_program(identity, self.board.name, PROGRAM, self.remedy)
        return session, identity


@dataclass(frozen=True)
class Found:
    """What firmware found in a storage when it was started."""

    checksum: int  # of the firmware's contract
    slots: Slots
    was_refused: bool  # a policy was there that it dropped, as it is not one for it

    @property
    def has_policy(self) -> bool:
        """Whether the policy that the storage keeps acts on this firmware."""
        return self.slots.active is not None and not self.was_refused


def look(firmware: Firmware, file: Path | None) -> Found:
    """What the firmware makes of a storage, of which no byte is changed; or of an empty memory."""
    with copied(file) if file is not None else contextlib.nullcontext() as copy:
        before = b"" if copy is None else copy.read_bytes()
        link = open_board_link(firmware.board, None, firmware.program, firmware.remedy, copy)
        with contextlib.closing(link):
            session, identity = firmware.connected(link)
            slots = session.policies.slots()
        after = b"" if copy is None else copy.read_bytes()
    return Found(identity.fingerprint, slots, before != after and slots.last_drop == REFUSED)


def require_kept(firmware: Firmware, file: Path) -> None:
    """UsageError where a start on this storage would drop the policy that it keeps."""
    if look(firmware, file).was_refused:
        raise UsageError(
            f"{file} keeps a policy that this firmware would drop, as that of another contract: "
            "name another file, or the contract that it was pushed for"
        )


@contextlib.contextmanager
def present_copy(file: Path) -> Iterator[Path | None]:
    """A copy that a board may be started on; None where there is no such file."""
    if not file.exists():
        yield None
        return
    with copied(file) as copy:
        yield copy

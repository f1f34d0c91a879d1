"""Sessions with a board that runs policies: the program infer, for some contract; and the storage
file of a board that is started here.

A start may write: firmware drops what it refuses, and what was in trial. So a command that only
looks starts the board on a copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from rltools_host.boards.board_link import copied, open_board_link
from rltools_host.boards.messages import DROP_REASONS, Identity
from rltools_host.boards.policies import Slots
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import Link
from rltools_host.build import cmake, experiments, firmware
from rltools_host.build.boards import Board, load_board
from rltools_host.environments.headers import contract_of_run
from rltools_host.errors import UsageError
from rltools_host.files import disk_error
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import PROJECT, command_line

DEFAULT_CONTRACT = "pendulum"
CRAZYFLIE = "crazyflie"  # firmware of its own, see drones/vehicles/crazyflie.py


class Storage(Enum):
    """The kinds of storage of a board that is started here."""

    FILE = "its file, created if missing"
    COPY = "a copy of its file, for commands that only look"
    MEMORY = "memory"


@dataclass(frozen=True)
class PolicyTarget:
    """A board that runs policies. Firmware that is started here is built for `contract`."""

    board: str
    port: str | None = None
    contract: str = DEFAULT_CONTRACT

    def __post_init__(self) -> None:
        whole = experiments.whole_name(self.contract, experiments.CONTRACT)
        object.__setattr__(self, "contract", whole)

    @property
    def is_crazyflie(self) -> bool:
        return self.board == CRAZYFLIE

    def described_board(self) -> Board:
        """Return the board's description; raise UsageError if it is not built with the program."""
        if self.is_crazyflie:
            raise UsageError(
                "--board crazyflie: it has firmware of its own, with which this does not work; "
                "push, policies, confirm and rollback do"
            )
        board = load_board(self.board)
        cmake.require_program(board, PROGRAM)
        experiments.require_subject(experiments.CONTRACT, self.contract, board)
        return board

    @property
    def further_words(self) -> list[str]:
        """Return the options that name it, besides --board."""
        words = ["--port", self.port] if self.port else []
        return words + (["--contract", self.contract] if self.contract != DEFAULT_CONTRACT else [])

    @property
    def trial_commands(self) -> tuple[str, str]:
        """Return the commands that keep the policy in trial, and that drop it."""
        return (
            command_line("confirm", "--board", self.board, *self.further_words),
            command_line("rollback", "--board", self.board, *self.further_words),
        )

    def ends_with_command(self, board: Board) -> bool:
        """Return whether the board is a program that is started for one command, and ends with
        it."""
        return self.port is None and not board.is_flashed

    def keeps_policies(self, board: Board) -> bool:
        """Return whether its policies are still there for the next command."""
        return not self.ends_with_command(board) or board.has_storage


def target_of_run(
    run: str | None, board: str, port: str | None, contract: str | None = None
) -> PolicyTarget:
    """Return the board for a run's policy. Firmware that is started here is built for the contract
    of the run, if no other one is asked for.

    Raises UsageError if the run has no contract that a board can be built for.
    """
    if contract is None and run is not None and board != CRAZYFLIE:
        contract = contract_of(RunFolder.open(run), is_needed=port is None)
    return PolicyTarget(board, port, contract or DEFAULT_CONTRACT)


def contract_of(folder: RunFolder, is_needed: bool) -> str | None:
    """Return the name by which builds know the contract of a run's policies."""
    if (generated := contract_of_run(folder.content)) is not None:
        return generated
    stated = folder.content.contract
    if stated is not None or not is_needed:
        return stated
    raise UsageError(
        f"run {folder.name} is of {folder.required('experiment')}, whose environment has channels "
        "of its own, and boards are built for contracts: move the channels to contracts/<name>.h "
        f"and derive the environment from it, as `{command_line('new', 'NAME', '--contract')}` does"
    )


def storage_file(board: Board, name: str) -> Path:
    """Return where a board that is started here keeps its policies, by the checksum of its
    contract."""
    return PROJECT.build / "policies" / board.name / f"{name}.bin"


@contextlib.contextmanager
def storage_of(started: Firmware, kind: Storage) -> Iterator[Path | None]:
    """Provide the file with which `open_board_link` is to start the board; None: memory."""
    if started.program is None or not started.board.has_storage or kind is Storage.MEMORY:
        yield None
        return
    # The firmware knows its contract's checksum.
    file = storage_file(started.board, f"{look(started, None).checksum:08x}")
    if kind is Storage.COPY:
        with copied(file) if file.exists() else contextlib.nullcontext() as copy:
            yield copy
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(file, error) from None
    yield file


@contextlib.contextmanager
def policy_session(
    target: PolicyTarget, kind: Storage = Storage.FILE
) -> Iterator[tuple[BoardSession, Identity]]:
    """Open a session with the board, which is started, or taken from its port, and close it."""
    board = target.described_board()
    program = None
    if target.ends_with_command(board):
        program = firmware.build_firmware(board, target.contract, PROGRAM)
    started = Firmware(board, program, load_remedy(board, target.contract))
    with storage_of(started, kind) as storage:
        link = open_board_link(board, target.port, program, started.remedy, storage)
        with contextlib.closing(link):
            yield started.connected(link)


def load_remedy(board: Board, contract: str) -> str:
    """Say what puts the program on the board."""
    name = board.name
    if board.flasher is not None:
        return f"run `{command_line('flash', name, contract, '--program', PROGRAM)}`"
    if board.emulator is not None:
        command = command_line("emulate", name, contract, "--program", PROGRAM)
        return f"start it with `{command}`"
    return "leave out --port, the board's own program is then started"


PROGRAM = "infer"
REFUSED = list(DROP_REASONS).index("refused")


@dataclass(frozen=True)
class Firmware:
    """A program that keeps policies, and how it comes onto its board."""

    board: Board
    program: Path | None
    remedy: str

    def connected(self, link: Link) -> tuple[BoardSession, Identity]:
        session, identity = BoardSession.connect(link, cmake.load_dialect(), self.board.address)
        session.node.require_program(identity, self.board.firmware, PROGRAM, self.remedy)
        return session, replace(identity, has_counter=self.board.has_counter)


@dataclass(frozen=True)
class StorageContent:
    """The content of a storage, as the firmware found it when it was started."""

    checksum: int  # of the firmware's contract
    slots: Slots
    was_refused: bool  # a policy was there that it dropped, as it is not one for it


def look(firmware: Firmware, file: Path | None) -> StorageContent:
    """Return what the firmware finds in a storage, of which no byte is changed; or in an empty
    memory."""
    with copied(file) if file is not None else contextlib.nullcontext() as copy:
        before = b"" if copy is None else copy.read_bytes()
        link = open_board_link(firmware.board, None, firmware.program, firmware.remedy, copy)
        with contextlib.closing(link):
            session, identity = firmware.connected(link)
            slots = session.policies.slots()
        after = b"" if copy is None else copy.read_bytes()
    return StorageContent(
        identity.fingerprint, slots, before != after and slots.last_drop == REFUSED
    )


def require_kept(firmware: Firmware, file: Path) -> None:
    """Raise UsageError if a start on this storage would drop the policy that it keeps."""
    if look(firmware, file).was_refused:
        raise UsageError(
            f"{file} keeps a policy that this firmware would drop, as that of another contract: "
            "name another file, or the contract that it was pushed for"
        )

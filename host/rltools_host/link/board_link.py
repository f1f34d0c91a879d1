"""The link to a board: a given port, a new process or emulator, or what is connected."""

from __future__ import annotations

from pathlib import Path

from rltools_host.boards import discovery
from rltools_host.boards.description import Board
from rltools_host.boards.emulator import Emulator
from rltools_host.errors import LinkLostError, PortError
from rltools_host.link.transport import DEFAULT_BAUD, Link, ProcessLink, SerialLink, open_link

EMULATOR_LIMIT_S = 6 * 3600.0
STORAGE_VARIABLE = "RLT_POLICY_STORAGE"  # firmware/host/file_storage.h
THREADS_VARIABLE = "RLT_THREADS"  # firmware/host/thread_count.h
ENVIRONMENTS_VARIABLE = "RLT_ENVIRONMENT_SERVER"  # rl/environments/external/connection.h


def open_board_link(
    board: Board,
    port: str | None,
    program: Path | None,
    remedy: str,
    storage: Path | None = None,
    threads: int | None = None,
    environments: str | None = None,
) -> Link:
    """A link to the given port; else `program` is started, or the connected board taken.

    `remedy` says what to do where none is connected; `storage` is the file in which a board that is
    started here keeps its policies, in place of memory; `threads` is how many compute in a process,
    in place of its own choice; `environments` is the socket's name of who plays its episodes.
    """
    if port is not None:
        return open_link(port, board.link.baud or DEFAULT_BAUD)
    if program is not None and board.link.kind == "process":
        environment = {
            STORAGE_VARIABLE: str(storage or ""),
            THREADS_VARIABLE: str(threads or ""),
            ENVIRONMENTS_VARIABLE: environments or "",
        }
        return ProcessLink([str(program)], f"the program of board {board.name}", environment)
    if program is not None and board.emulator is not None:
        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S, storage), board.name)
    ports = discovery.find_connected(board)
    if not ports:
        raise PortError(f"no {board.name} is connected: {remedy}")
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)


END_LIMIT_S = 5.0  # from its port's disappearance to the end of an emulator


class EmulatedLink(SerialLink):
    """The link to an emulated board, which ends with the link."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self.emulator = emulator
        description = f"{name} (emulated, {emulator.port})"
        try:
            super().__init__(emulator.port)
        except PortError as error:
            # QEMU names its port before it loads the program; where it cannot, the port is gone.
            self.description = description
            failure = self._lost(None) if emulator.has_ended(END_LIMIT_S) else error
            emulator.close()
            raise failure from None
        except BaseException:
            emulator.close()
            raise
        self.description = description

    def _close_descriptors(self) -> None:
        super()._close_descriptors()
        self.emulator.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        return LinkLostError(f"lost {self.description}: {self.emulator.ending()}")

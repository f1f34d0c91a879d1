"""The link to an emulated board."""

from __future__ import annotations

from rltools_host.boards.emulator import Emulator
from rltools_host.errors import LinkLostError
from rltools_host.link.transport import SerialLink


class EmulatedLink(SerialLink):
    """The link to an emulated board, which ends with the link."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        try:
            super().__init__(emulator.port)
        except BaseException:
            emulator.close()
            raise
        self.emulator = emulator
        self.description = f"{name} (emulated, {emulator.port})"

    def _close_descriptors(self) -> None:
        super()._close_descriptors()
        self.emulator.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        return LinkLostError(f"lost {self.description}: {self.emulator.ending()}")

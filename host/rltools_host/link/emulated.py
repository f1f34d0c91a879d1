"""The link to an emulated board."""

from __future__ import annotations

from rltools_host.boards.emulator import Emulator
from rltools_host.errors import LinkLostError, PortError
from rltools_host.link.transport import SerialLink

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

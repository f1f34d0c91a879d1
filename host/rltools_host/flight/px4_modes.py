"""PX4's flight modes, as MAVLink numbers them, and which of them belong to whom."""

from __future__ import annotations

from typing import NamedTuple


class Mode(NamedTuple):
    """PX4's main and sub mode: bits 16 to 23 and 24 to 31 of HEARTBEAT.custom_mode."""

    main: int
    sub: int = 0

    @classmethod
    def of(cls, custom_mode: int) -> Mode:
        return cls(custom_mode >> 16 & 0xFF, custom_mode >> 24 & 0xFF)

    @property
    def number(self) -> int:
        return self.main << 16 | self.sub << 24

    @property
    def is_piloted(self) -> bool:
        """Whether somebody's sticks fly it: then nobody else may."""
        return self.main in PILOTED

    def __str__(self) -> str:
        return NAMES.get(self, f"{self.main}.{self.sub}")


AUTO = 4
TAKE_OFF, HOLD, RETURN, LAND = (Mode(AUTO, sub) for sub in (2, 3, 5, 6))
OFFBOARD, TERMINATION = Mode(6), Mode(10)
DESCEND = Mode(AUTO, 20)  # PX4's own, where it does not know where it is
# Manual, Altitude, Position with its kinds, Acro, Stabilized, Altitude cruise
PILOTED = (1, 2, 3, 5, 7, 11)
NAMES = {
    Mode(1): "Manual",
    Mode(2): "Altitude",
    Mode(3): "Position",
    Mode(AUTO, 1): "Ready",
    TAKE_OFF: "Takeoff",
    HOLD: "Hold",
    Mode(AUTO, 4): "Mission",
    RETURN: "Return",
    LAND: "Land",
    Mode(AUTO, 9): "Precision land",
    DESCEND: "Descend",
    **{Mode(AUTO, 10 + number): f"External {number}" for number in range(1, 9)},
    Mode(5): "Acro",
    OFFBOARD: "Offboard",
    Mode(7): "Stabilized",
    TERMINATION: "Termination",
    Mode(11): "Altitude cruise",
}

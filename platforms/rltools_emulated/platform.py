"""PlatformIO platform for emulated boards: needs no download, the compiler is the system's."""

from platformio.public import PlatformBase


class Rltools_emulatedPlatform(PlatformBase):  # noqa: N801 - the name that PlatformIO looks for
    """Everything is in platform.json and builder/main.py."""

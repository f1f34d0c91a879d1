"""PlatformIO's script of library.json: the headers are compiled with the flags of the project that
includes them, and only with contraction off do they give the same bits on every device."""

Import("projenv")  # noqa: F821 - SCons provides it

projenv.Append(CCFLAGS=["-ffp-contract=off"])  # noqa: F821

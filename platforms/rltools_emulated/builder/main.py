"""Builds firmware.elf with the system's compiler; firmware/platformio_flags.py sets the flags."""

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(
    AR="arm-none-eabi-gcc-ar",
    AS="arm-none-eabi-g++",
    CC="arm-none-eabi-gcc",
    CXX="arm-none-eabi-g++",
    LINK="arm-none-eabi-g++",
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
Default(env.BuildProgram())

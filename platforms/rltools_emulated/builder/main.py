"""Builds firmware.elf with the system's compiler; firmware/platformio_flags.py sets the flags."""

import json
from pathlib import Path

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
toolchain = env.BoardConfig().get("rltools.toolchain")
tree = env.GetProjectOption("custom_tree", env.subst("$PROJECT_DIR"))
description = Path(tree) / "toolchains" / f"{toolchain}.json"
prefix = json.loads(description.read_text())["prefix"]
env.Replace(
    AR=f"{prefix}gcc-ar",
    AS=f"{prefix}g++",
    CC=f"{prefix}gcc",
    CXX=f"{prefix}g++",
    LINK=f"{prefix}g++",
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
Default(env.BuildProgram())

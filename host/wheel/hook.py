"""Puts the programs of host/wheel/build.py into a wheel, which is then for their system alone."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramsHook(BuildHookInterface):  # type: ignore[misc, type-arg]
    """The hook of pyproject.toml's wheel; RLT_PREBUILT is the folder of the programs, RLT_TAG the
    wheel's name for their system."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Add the folder and name the system, where RLT_PREBUILT is set."""
        if not (folder := os.environ.get("RLT_PREBUILT")):
            return
        build_data["force_include"][folder] = "rltools_host/tree/prebuilt"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['RLT_TAG']}"

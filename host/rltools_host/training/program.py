"""Builds what a plan's board is started with, and keeps what it was built from."""

from __future__ import annotations

import re

from rltools_host.build import firmware, subjects
from rltools_host.project import PROJECT
from rltools_host.runs.sources import read_sources
from rltools_host.training.plan import Plan

INCLUDE_BESIDE = re.compile(r'^#include "(\.\./[^"]+)"', re.MULTILINE)


def build_program(plan: Plan) -> None:
    """The sources are read first: what is written while the compiler runs is not in the program.

    Nor is what was written while the experiment's description was compiled in a program that was
    built beside it: Ninja goes by when a command began, and builds it again.

    A board that is flashed, or that is behind --port, has its program already. Its sources are
    taken to be those of now: what describes the experiment here has its fingerprint.
    """
    name = plan.subject
    plan.sources = read_sources(generated=generated_headers(name))
    if not plan.board.is_flashed:
        plan.program = firmware.build_firmware(plan.board, name)


def generated_headers(subject: str) -> list[str]:
    """Of a task of Gymnasium's: its experiment and its contract, relative to the project."""
    if not subjects.is_generated(subject):
        return []
    header = subjects.generated_header(subject)
    beside = INCLUDE_BESIDE.findall(header.read_text(encoding="utf-8"))
    headers = [header, *((header.parent / name).resolve() for name in beside)]
    return [str(header.relative_to(PROJECT.root)) for header in headers]

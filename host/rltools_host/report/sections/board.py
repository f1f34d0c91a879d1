"""The run on its board: memory, time, and the results of `rlt hil`, with the paper's figures beside
them.

The sizes of the memories come from run.json, and those of their parts from the firmware's ELF.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from rltools_host.boards import hil_result as result
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.documents import Unfit, typed
from rltools_host.errors import DamagedFileError, RltError
from rltools_host.files import read_json
from rltools_host.report.markup import Section, duration, number, table, text
from rltools_host.report.run_data import RunData, values_of
from rltools_host.runs.contents import Run, StatedIdentity
from rltools_host.runs.names import HIL, microseconds_of, result_file

STACK_SECTIONS = (".stack", ".handler_stack")
DATA_SECTION = ".bss"  # learner, scratch and the little that the application keeps
# Microseconds of one pass on real boards: arXiv 2306.03530, table 2.
PAPER_NETWORK = "13-64-64-4, ReLU"
PAPER_COLUMNS = ("generic", "DSP", "optimized")
PAPER_INFERENCE_US = {
    "Crazyflie": (743, 478, 293),
    "Pixhawk 6C": (133, 93, 53),
    "Teensy 4.1": (64, 45, 41),
    "ESP32": (4282, 279, 333),
    "ESP32-C3": (8716, 6950, 6645),
}


# -- memory ----------------------------------------------------------------------------------------


def memory(data: RunData) -> Section | None:
    regions = memory_map(data.run, len(data.image.data) if data.image else 0)
    if not regions:
        return None
    bars = []
    for region in regions:
        spans, items = [], []
        for part in region.parts:
            share = 100 * part.bytes / region.bytes
            spans.append(
                f'<span class="part-{text(part.kind)}" style="width:{share:.3f}%" '
                f'title="{text(part.name)}: {number(part.bytes)} bytes"></span>'
            )
            items.append(
                f'<li><i class="part-{text(part.kind)}"></i>{text(part.name)} '
                f"<b>{number(part.bytes)}</b></li>"
            )
        used = region.bytes - sum(part.bytes for part in region.parts if part.kind == "free")
        bars.append(
            f"<h3>{text(region.name)} · {number(used)} of {number(region.bytes)} bytes "
            f"({100 * used / region.bytes:.1f} %)</h3>"
            f'<div class="bar">{"".join(spans)}</div><ul class="parts">{"".join(items)}</ul>'
        )
    lead = (
        "The sections that the linker put into each memory, in bytes. The board has no other "
        "memory: what does not fit fails the build."
    )
    return Section("Memory", lead, "".join(bars))


@dataclass(frozen=True)
class MemoryPart:
    """Bytes of one purpose; `kind` is free, code, learner and so on."""

    kind: str
    name: str
    bytes: int


@dataclass(frozen=True)
class MemoryRegion:
    """A memory of the board; its parts fill it."""

    name: str
    bytes: int
    parts: tuple[MemoryPart, ...]


def memory_map(run: Run, policy_bytes: int = 0) -> list[MemoryRegion]:
    """Return the memories of the board that a run was trained on, by its run.json; none for the
    host."""
    if not run.memory:
        return []
    sections = sections_of_run(run)
    regions = []
    for index, entry in enumerate(run.memory):
        if len(run.memory) > 1 and index == len(run.memory) - 1:  # holds the bulk
            parts = [
                MemoryPart("replay", "replay buffer", run.identity.replay_bytes),
                MemoryPart("policy", "policy image", policy_bytes),
            ]
        else:
            parts = fast_parts(run.identity, sections, entry.used_bytes)
        regions.append(fill(entry.name, entry.bytes, entry.used_bytes, parts))
    return regions


def fast_parts(
    identity: StatedIdentity, sections: Mapping[str, int], used: int
) -> list[MemoryPart]:
    """Return code, learner, scratch and stack; in finer parts where the ELF's sections are
    known."""
    state = [
        MemoryPart("learner", "learner", identity.learner_bytes),
        MemoryPart("scratch", "scratch", identity.scratch_bytes),
    ]
    if not sections:
        return state
    code, constants = sections.get(".text", 0), sections.get(".data", 0)
    stack = sum(sections.get(name, 0) for name in STACK_SECTIONS)
    data = sections.get(DATA_SECTION, 0)
    return [
        MemoryPart("code", "code", code),
        MemoryPart("padding", "rest of its banks", used - code - constants - stack - data),
        MemoryPart("constants", "constants", constants),
        *state,
        MemoryPart("other", "other data", data - sum(part.bytes for part in state)),
        MemoryPart("stack", "stack", stack),
    ]


def fill(name: str, size: int, used: int, named: Iterable[MemoryPart]) -> MemoryRegion:
    """Return the region with other used bytes and the free ones added."""
    parts = [part for part in named if part.bytes != 0]
    rest = used - sum(part.bytes for part in parts)
    if rest < 0 or any(part.bytes < 0 for part in parts):  # not the sizes of this firmware
        parts, rest = [], used
    if rest > 0:
        parts = [*parts, MemoryPart("other", "everything else" if parts else "in use", rest)]
    return MemoryRegion(name, size, (*parts, MemoryPart("free", "free", size - used)))


def sections_of_run(run: Run) -> dict[str, int]:
    """Return the sizes of the sections of the run's firmware; empty where it is not there as it
    was."""
    try:
        board = load_board(run.board)
        program = firmware.program_path(board, run.experiment)
        if not program.is_file() or program.stat().st_mtime > latest_start_s(run):
            return {}
        if firmware.memory_usage(board, program) != [structs.asdict(entry) for entry in run.memory]:
            return {}
        return firmware.section_sizes(program)
    except (RltError, OSError):
        return {}


def latest_start_s(run: Run) -> float:
    """Return when the run was last started or resumed, in seconds since 1970; firmware is older."""
    try:
        started_us = microseconds_of(run.sessions[-1].started if run.sessions else run.started)
    except ValueError:
        return -math.inf
    return started_us / 1e6 + 1  # run.json has whole seconds


# -- time ------------------------------------------------------------------------------------------


def timings(data: RunData) -> Section | None:
    rows = []
    train_s = data.run.train_s
    if train_s:
        rows.append(("wall clock of the host", duration(train_s)))
        evaluation_s = data.run.evaluation_s or 0.0
        if evaluation_s:
            rows.append(("of that, in evaluations", duration(evaluation_s)))
        if train_s > evaluation_s:
            rate = data.steps_done / (train_s - evaluation_s)
            speed = f"{number(rate, 1)} steps per second"
            rows.append(("training speed, seen from the host, without them", speed))
    progress = data.rows("progress")
    counts = values_of(progress, "counter")
    total = float(data.run.guest_instructions or (counts[-1] if counts.size else 0))
    if not data.run.identity.has_counter:
        total = 0.0
    if math.isfinite(total) and total > 0:
        unit = "guest instructions" if data.is_emulated else "µs of the board's clock"
        rows.append((f"{unit}, training and evaluations", number(total)))
        share = number(total / max(data.steps_done, 1))
        rows.append((f"{unit} per environment step, all included", share))
        median = median_of_updates(progress)
        if median is not None:
            rows.append((f"{unit} per step with an update, median", number(median)))
    if not rows:
        return None
    lead = "Evaluations on the board count as well, and so do its messages."
    if not data.run.identity.has_counter:
        lead = (
            "The board is emulated, and its emulator counts no instructions. Wall clock and steps "
            "per second say how fast this host emulates."
        )
    elif data.is_emulated:
        lead = (
            "The board is emulated. Guest instructions are what the emulated processor executed, "
            "its talk with the host included; they are <strong>neither time nor cycles</strong> "
            "of a real board. Wall clock and steps per second say how fast this host emulates."
        )
    return Section("Timings", lead, table((), rows))


def median_of_updates(progress: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the median counts per step between two reports, where every step had an update."""
    counts, steps = values_of(progress, "counter"), values_of(progress, "step")
    updates = values_of(progress, "updates")
    step_gains = np.diff(steps)
    training_only = (np.diff(updates) == step_gains) & (step_gains > 0)
    if not training_only.any():
        return None
    return float(np.median(np.diff(counts)[training_only] / step_gains[training_only]))


# -- hardware in the loop --------------------------------------------------------------------------


def hardware_in_loop(data: RunData) -> Section | None:
    found = results(data)
    if not found:
        return None
    units = {each.unit for each in found}
    lead = (
        "By <code>rlt hil</code>: the policy on boards, each compared with this machine over "
        "random and extreme observations. Equal outputs have equal checksums. A tick is a call of "
        "the executor: its checks, the pass and the limits of the action."
    )
    if result.INSTRUCTIONS in units:
        lead += (
            " Guest instructions are what an emulated processor executed; they are <strong>neither "
            "time nor cycles</strong>, and cannot be compared with microseconds."
        )
    rows = [row for each in found for row in result.cost_rows(each)]
    body = table(result.PARITY_HEADER, [result.parity_row(each) for each in found])
    if rows:
        body += table(result.COST_HEADER, rows)
    return Section("Hardware in the loop", lead, body + paper())


def results(data: RunData) -> list[result.Found]:
    """Read the results in the run's folder; leave out those of another policy, and those of
    another version without the fields that are shown here."""
    found = []
    for path in sorted(data.folder.path.glob(result_file(HIL, "*"))):
        with contextlib.suppress(DamagedFileError, Unfit):
            each: result.Found = typed(read_json(path, data.folder.path), result.Found)
            # A run that went on has another policy now.
            if data.image is not None and each.policy_sha256 == data.image.sha256:
                found.append(each)
    return found


def paper() -> str:
    rows = [
        (board, *map(result.number_text, values), "microseconds")
        for board, values in PAPER_INFERENCE_US.items()
    ]
    return (
        "<h3>For comparison: the paper's table 2, real boards</h3>"
        f"<p>Of another network ({PAPER_NETWORK}), with the authors' library: microseconds of one "
        "pass with generic code, with the vendor's DSP library, and with optimized code.</p>"
        + table(("board", *PAPER_COLUMNS, "unit"), rows)
    )

"""The memory that training would occupy on each board, and a task's policy, with the widest hidden
layers that fit.

A board's description says what is in each memory (`use`). Where firmware for the experiment has
been linked since the last change of a source, code and stack are its own. Elsewhere they are at
most those of this tree's firmware: what an environment adds is not known before it is linked, and
on a Cortex-M7 a byte of code more may take a bank of 32 KB more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rltools_host.build import cmake, experiments, firmware
from rltools_host.build.boards import Board, MemoryRegion, list_boards
from rltools_host.build.catalog import algorithms
from rltools_host.build.firmware import memory_usage
from rltools_host.errors import BuildError
from rltools_host.policies.contract import Contract, Layer, output_dim
from rltools_host.policies.image_writing import EXAMPLES, Network, Origin, assembled
from rltools_host.runs.provenance import last_change_s
from rltools_host.runs.task import Task

# By the algorithm, what firmware with an experiment of this tree has at most: acrobot-dqn and
# pendulum-xqc on a Cortex-M4, and on a Cortex-M7 racing-car-ppo, whose environment is a third of
# it.
CODE_BYTES = {
    "TD3": 96 * 1024,
    "SAC": 96 * 1024,
    "DQN": 100 * 1024,
    "PPO": 128 * 1024,
    "XQC": 144 * 1024,
    "Distillation": 136 * 1024,
}
STACK_BYTES = 46 * 1024  # with constants, the link's messages and the application's own data
FAST_SCRATCH_BYTES = 192 * 1024  # more lies with the replay buffer (firmware/app/train/program.h)
SCRATCH_FLOATS = 1024  # that every board has to run a policy (firmware/app/infer/program.h)
WIDTHS = (16, 32, 48, 64, 80, 96, 128, 192, 256)  # as in host/native/describe_experiment.h
INFER = "infer"  # the program of boards that policies are pushed to
SLOT, SCRATCH = "policy slot", "scratch"
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class BoardFit:
    board: str
    title: str
    parts: dict[str, float]  # of each memory, of which 1 is all of it
    widest: int  # of the widths that were tried; 0: none fits
    is_linked: bool = False

    @property
    def fits(self) -> bool:
        return all(part <= 1.0 for part in self.parts.values())

    def document(self) -> dict[str, object]:
        return {
            "board": self.board,
            "fits": self.fits,
            "memory": self.parts,
            "linked": self.is_linked,
            "widest": self.widest,
        }


def with_code(algorithm: str, bytes_of_widths: Sequence[Sizes]) -> list[Sizes]:
    """Add to each of the sizes the code of firmware that learns by this algorithm."""
    code = CODE_BYTES.get(algorithm, max(CODE_BYTES.values()))
    return [{**sizes, "code": code} for sizes in bytes_of_widths]


def bytes_in(region: MemoryRegion, sizes: Sizes) -> int:
    """Return the bytes of what the region's `use` names."""
    is_fast = sizes["scratch"] <= FAST_SCRATCH_BYTES
    of_word = {
        "code": -(-sizes["code"] // region.code_step_bytes) * region.code_step_bytes,
        "stack": STACK_BYTES,
        "learner": sizes["learner"],
        "scratch": sizes["scratch"] if is_fast else 0,
        "replay buffer": sizes["replay"] + sizes["policy"] + (0 if is_fast else sizes["scratch"]),
    }
    return sum(of_word.get(word.strip(), 0) for word in region.use.split(","))


def parts_of(
    board: Board, sizes: Sizes, differences: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Return the occupied share of each memory. `differences` are the bytes that firmware has
    more."""
    differences = differences or {}
    return {
        region.name: (bytes_in(region, sizes) + differences.get(region.name, 0)) / region.bytes
        for region in board.memory
    }


def linked_differences(board: Board, experiment: str, own: Sizes) -> dict[str, int] | None:
    """Return the bytes that linked firmware occupies more than is computed, of each memory.

    None if there is no firmware that is younger than all sources.
    """
    program = firmware.program_path(board, experiment)
    if board.toolchain.builder != "cmake" or not program.is_file():
        return None
    if program.stat().st_mtime <= last_change_s():
        return None
    try:
        linked = {each["name"]: int(each["used_bytes"]) for each in memory_usage(board, program)}
    except BuildError:  # it is too large
        return None
    return {
        region.name: linked[region.name] - bytes_in(region, own)
        for region in board.memory
        if region.name in linked
    }


def fits(experiment: str, bytes_of_widths: Sequence[Sizes]) -> list[BoardFit]:
    """Return the fit of every board that the experiment is built for; the first sizes are its
    own."""
    found = []
    for board in boards_with(cmake.TRAIN):
        if not experiments.lacking(experiment, board):
            linked = linked_differences(board, experiment, bytes_of_widths[0])
            parts = [parts_of(board, sizes, linked) for sizes in bytes_of_widths]
            found.append(fit_of(board, bytes_of_widths, parts, linked is not None))
    return found


def boards_with(program: str) -> list[Board]:
    """Return the boards of known memory for which we build this program."""
    return [
        board
        for board in list_boards()
        if board.memory and board.has_own_firmware and program in cmake.programs_of(board)
    ]


def fit_of(
    board: Board,
    bytes_of_widths: Sequence[Sizes],
    parts: Sequence[dict[str, float]],
    is_linked: bool = False,
) -> BoardFit:
    """Return the fit of a board on which the sizes take these parts of its memories."""
    pairs = zip(bytes_of_widths[1:], parts[1:], strict=True)
    widths = (sizes["width"] for sizes, each in pairs if max(each.values()) <= 1.0)
    return BoardFit(board.name, board.title, parts[0], max(widths, default=0), is_linked)


# -- of a task's policy ----------------------------------------------------------------------------


def policy_fits(bytes_of_widths: Sequence[Sizes]) -> list[BoardFit]:
    """Return the fit of every board that policies are pushed to; the first sizes are the task's
    own."""
    return [
        fit_of(board, bytes_of_widths, [policy_parts(board, sizes) for sizes in bytes_of_widths])
        for board in boards_with(INFER)
    ]


def policy_parts(board: Board, sizes: Sizes) -> dict[str, float]:
    return {
        SLOT: sizes["policy"] / board.policy_slot_bytes,
        SCRATCH: sizes["scratch_floats"] / SCRATCH_FLOATS,
    }


def policy_sizes(task: Task) -> list[Sizes]:
    """Return the sizes of a policy's image, first with the task's own hidden layers, then with each
    of WIDTHS."""
    hidden = [task.hidden, *((width,) * len(task.hidden) for width in WIDTHS)]
    return [
        {"width": 0 if index == 0 else widths[0], **image_sizes(task, widths)}
        for index, widths in enumerate(hidden)
    ]


def image_sizes(task: Task, hidden: Sequence[int]) -> dict[str, int]:
    """Return the sizes of an image of zeros, with the parts that the core writes for this
    algorithm."""
    contract = Contract(task.observations, task.actions, task.step_interval_us)
    inputs, outputs = len(task.observations), output_dim(task.actions)
    widths = (inputs, *hidden, outputs)
    layers = [
        Layer("identity", np.zeros(pair, np.float32), np.zeros(pair[1], np.float32))
        for pair in pairwise(widths)
    ]
    is_normalized = task.normalizes or algorithms()[task.algorithm].has_normalizer
    normalizer = (np.zeros(inputs), np.zeros(inputs)) if is_normalized else None
    example_words = inputs + 1 + outputs + len(task.actions)  # docs/policy_image.md
    image = assembled(
        Network(normalizer, layers),
        contract,
        Origin("", "", 0, 0, "00" * 32),
        EXAMPLES,
        bytes(4 * EXAMPLES * example_words),
    )
    # scratch_floats_to_accept() of policy/runtime.h
    return {
        "policy": len(image),
        "scratch_floats": 2 * max(widths) + outputs + len(task.actions),
    }

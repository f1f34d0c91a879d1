"""What a check finds, and what it is told of the learning that is to follow; wrappers around a
task's environment that a policy elsewhere would be without.

What training would occupy of each board's memories, from the sizes of what is compiled, and what a
task's policy would, from its image; and the widest hidden layers that fit.

A board's description says what is in each memory (`use`). Where firmware for the experiment has
been linked since the last change of a source, code and stack are its own. Elsewhere they are at
most those of this tree's firmware: what an environment adds is not known before it is linked, and
on a Cortex-M7 a byte of code more may take a bank of 32 KB more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

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

# By the algorithm, what firmware with an experiment of this tree has at most: acrobot-dqn on a
# Cortex-M4, and on a Cortex-M7 racing-car-ppo, whose environment is a third of it.
CODE_BYTES = {
    "TD3": 96 * 1024,
    "SAC": 96 * 1024,
    "DQN": 100 * 1024,
    "PPO": 128 * 1024,
    "Distillation": 136 * 1024,
}
STACK_BYTES = 46 * 1024  # with constants, the link's messages and the application's own data
SCRATCH_FLOATS = 1024  # that every board has to run a policy (firmware/app/infer/program.h)
WIDTHS = (16, 32, 48, 64, 80, 96, 128, 192, 256)  # as in host/native/describe_experiment.h
INFER = "infer"  # the program of boards that policies are pushed to
SLOT, SCRATCH = "policy slot", "scratch"
Sizes = Mapping[str, int]
PartsOf = Callable[[Board, Sizes], dict[str, float]]


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

    def document(self) -> dict[str, Any]:
        return {
            "board": self.board,
            "fits": self.fits,
            "memory": self.parts,
            "linked": self.is_linked,
            "widest": self.widest,
        }


def with_code(algorithm: str, bytes_of_widths: Sequence[Sizes]) -> list[Sizes]:
    """The same, each with the code of firmware that learns by this algorithm."""
    code = CODE_BYTES.get(algorithm, max(CODE_BYTES.values()))
    return [{**sizes, "code": code} for sizes in bytes_of_widths]


def bytes_in(region: MemoryRegion, sizes: Sizes) -> int:
    """Of what lies in it, by its words."""
    of_word = {
        "code": -(-sizes["code"] // region.code_step_bytes) * region.code_step_bytes,
        "stack": STACK_BYTES,
        "learner": sizes["learner"],
        "scratch": sizes["scratch"],
        "replay buffer": sizes["replay"] + sizes["policy"],
    }
    return sum(of_word.get(word.strip(), 0) for word in region.use.split(","))


def parts_of(
    board: Board, sizes: Sizes, differences: Mapping[str, int] | None = None
) -> dict[str, float]:
    """differences: bytes of each memory that firmware has more, or fewer."""
    differences = differences or {}
    return {
        region.name: (bytes_in(region, sizes) + differences.get(region.name, 0)) / region.bytes
        for region in board.memory
    }


def linked_differences(board: Board, experiment: str, own: Sizes) -> dict[str, int] | None:
    """What firmware with the experiment's own sizes has more, or fewer, than is computed of them;
    None where there is none that is younger than all sources."""
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
    """Of every board with a memory of its own for which the experiment is built; the first sizes
    are the experiment's own."""
    boards = [
        board
        for board in list_boards()
        if cmake.TRAIN in cmake.programs_of(board) and not experiments.lacking(experiment, board)
    ]
    differences = {
        board.name: linked_differences(board, experiment, bytes_of_widths[0]) for board in boards
    }
    found = fits_of(
        boards,
        bytes_of_widths,
        lambda board, sizes: parts_of(board, sizes, differences[board.name]),
    )
    return [replace(each, is_linked=differences[each.board] is not None) for each in found]


def fits_of(
    boards: Iterable[Board], bytes_of_widths: Sequence[Sizes], parts: PartsOf
) -> list[BoardFit]:
    own, *others = bytes_of_widths
    found = []
    for board in boards:
        if board.memory:
            fitting = [sizes for sizes in others if max(parts(board, sizes).values()) <= 1.0]
            widest = max((sizes["width"] for sizes in fitting), default=0)
            found.append(BoardFit(board.name, board.title, parts(board, own), widest))
    return found


# -- of a task's policy ----------------------------------------------------------------------------


def policy_fits(bytes_of_widths: Sequence[Sizes]) -> list[BoardFit]:
    """Of every board that policies are pushed to; the first sizes are the task's own."""
    boards = [board for board in list_boards() if INFER in cmake.programs_of(board)]
    return fits_of(boards, bytes_of_widths, policy_parts)


def policy_parts(board: Board, sizes: Sizes) -> dict[str, float]:
    return {
        SLOT: sizes["policy"] / board.policy_slot_bytes,
        SCRATCH: sizes["scratch_floats"] / SCRATCH_FLOATS,
    }


def policy_sizes(task: Task) -> list[Sizes]:
    """Of the image of its policy, first with its own hidden layers, then with each of WIDTHS."""
    hidden = [task.hidden, *((width,) * len(task.hidden) for width in WIDTHS)]
    return [
        {"width": 0 if index == 0 else widths[0], **image_sizes(task, widths)}
        for index, widths in enumerate(hidden)
    ]


def image_sizes(task: Task, hidden: Sequence[int]) -> dict[str, int]:
    """Of an image of zeros, with the parts that the core writes for this algorithm."""
    contract = Contract(task.observations, task.actions, task.step_interval_us)
    inputs, outputs = len(task.observations), output_dim(task.actions)
    widths = (inputs, *hidden, outputs)
    layers = [
        Layer("identity", np.zeros(pair, np.float32), np.zeros(pair[1], np.float32))
        for pair in pairwise(widths)
    ]
    is_normalized = algorithms()[task.algorithm].has_rollouts
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


FAULT, ADVICE = "fault", "advice"


@dataclass(frozen=True)
class Finding:
    """`what` says what was seen and where, `remedy` what to do about it: a sentence each, which
    begin with a small letter. A fault is to be mended before training."""

    check: str  # for scripts: "range", "finite", ...
    what: str
    remedy: str
    level: str = FAULT


@dataclass(frozen=True)
class CompiledRequest:
    """What is to be examined: the library of an experiment's environment; `values` are those of
    hyperparameters, among them the environment's settings, that are not the experiment's."""

    name: str
    library: Path
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Learning:
    """How it is to be learnt, as far as it decides what suits the networks. Defaults are those of
    the algorithms for a task."""

    gamma: float = 0.99
    steps: int | None = None  # of a run
    reward_scale: float = 1.0
    is_normalized: bool = False  # observations are, on their way into the networks
    can_scale: bool = False  # there is a hyperparameter reward_scale


@dataclass
class Examination:
    """Of an environment by random actions. `passed` names what was tried and is in order; figures
    are numbers for people and scripts."""

    findings: list[Finding] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def note(self, *found: Finding | None) -> bool:
        """Whether something was found."""
        real = [finding for finding in found if finding is not None]
        self.findings += real
        return bool(real)

    def tried(self, passed: str, *found: Finding | None) -> bool:
        """Whether it is in order, which `passed` then names."""
        if self.note(*found):
            return False
        self.passed.append(passed)
        return True

    @property
    def faults(self) -> int:
        return sum(finding.level == FAULT for finding in self.findings)

    def document(self) -> dict[str, Any]:
        return {
            "findings": [vars(finding) for finding in self.findings],
            "passed": self.passed,
            "figures": self.figures,
        }

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> Examination:
        findings = [Finding(**entry) for entry in document["findings"]]
        return Examination(findings, list(document["passed"]), dict(document["figures"]))


def number(value: float) -> str:
    """With three digits: 1,240 or 0.0312."""
    if abs(value) >= 1e12 or 0.0 < abs(value) < 1e-4:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(part: int, whole: int) -> str:
    """A share in percent, never 0 for something."""
    percent = 100.0 * part / whole
    if percent < 0.1:
        return "less than 0.1 %"
    return f"{percent:.0f} %" if percent >= 10.0 else f"{percent:.2g} %"


def listed(names: list[str], most: int = 4) -> str:
    """Their names, or the first of them and the number of the rest."""
    rest = len(names) - most
    words = names if rest <= 1 else [*names[:most], f"{rest} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


MOST_WRAPPERS = 50
# By the names of Gymnasium's classes, whose texts a task's own classes may derive from.
NORMALIZED = (
    "its running mean and deviation are neither saved with a run nor exported with a policy",
    "take it away: learn by PPO, which normalizes and exports it, or scale by constants",
)
REWARDED = (
    "returns are of rewards that change while it learns, and compare with no others",
    "take it away, and scale rewards by a constant",
)
STACKED = (
    "a policy elsewhere does not get the past observations that it adds",
    "observe what is missing (a velocity, the last action) in the environment itself",
)
TIMED = (
    "it observes how long the episode has lasted, which a policy elsewhere does not know",
    "take it away",
)
RESETTING = (
    "it resets by itself, so the last observation of an episode is lost",
    "take it away: training resets",
)
SCALED = (
    "a policy acts in the units outside of it, and firmware would have to repeat it",
    "take it away: policies act in the whole range of a Box already",
)
OBSERVED = (
    "a policy observes what it makes, and firmware would have to repeat it",
    "move it into the environment, or write the same in the firmware",
)
STOCHASTIC = (
    "an action may not be the policy's",
    "take it away, if the place of use has nothing of the kind",
)
KNOWN = {
    "NormalizeObservation": (FAULT, NORMALIZED),
    "NormalizeReward": (ADVICE, REWARDED),
    "FrameStackObservation": (FAULT, STACKED),
    "FrameStack": (FAULT, STACKED),
    "DelayObservation": (ADVICE, STOCHASTIC),
    "TimeAwareObservation": (FAULT, TIMED),
    "Autoreset": (FAULT, RESETTING),
    "AutoResetWrapper": (FAULT, RESETTING),
    "StickyAction": (ADVICE, STOCHASTIC),
    "RescaleAction": (ADVICE, SCALED),
    "TransformAction": (ADVICE, SCALED),
    "ActionWrapper": (ADVICE, SCALED),
    "TransformObservation": (ADVICE, OBSERVED),
    "ObservationWrapper": (ADVICE, OBSERVED),
}
# Which change nothing, or what a policy elsewhere does by its contract: flat rows in range.
HARMLESS = ("ClipAction", "FlattenObservation", "ReshapeObservation", "DtypeObservation")


def chain(environment: Any) -> list[Any]:
    """The wrappers, from the outermost on, and the environment itself."""
    found = [environment]
    while len(found) <= MOST_WRAPPERS and hasattr(found[-1], "env"):
        found.append(found[-1].env)
    return found


def findings(environment: Any, episode_steps: int) -> list[Finding]:
    found = []
    for wrapper in chain(environment)[:-1]:
        classes = [kind.__name__ for kind in type(wrapper).__mro__]
        name = classes[0]
        if any(kind in HARMLESS for kind in classes):
            continue
        known = next((kind for kind in classes if kind in KNOWN), None)
        if known is not None:
            level, (why, remedy) = KNOWN[known]
            found.append(Finding("wrapper", f"{name} wraps the environment: {why}", remedy, level))
        elif (limit := time_limit(wrapper)) is not None and limit != episode_steps:
            found.append(
                Finding(
                    "wrapper",
                    f"a TimeLimit of {limit:,} steps is inside, and episodes are to last "
                    f"{episode_steps:,}",
                    f"say --episode-steps {min(limit, episode_steps)}, so that evaluations and the "
                    "export know of it",
                    ADVICE,
                )
            )
    return found


def time_limit(wrapper: Any) -> int | None:
    if type(wrapper).__name__ != "TimeLimit":
        return None
    limit = getattr(wrapper, "_max_episode_steps", None)
    return limit if isinstance(limit, int) else None

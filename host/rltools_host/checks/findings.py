"""Findings of an examination, its figures, and the words for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path

from msgspec import Struct, field

FAULT, ADVICE = "fault", "advice"


class Finding(Struct, frozen=True):
    """A fault or advice: `what` says what was seen and where, `remedy` what to do about it, each in
    one sentence that begins with a small letter. Faults are to be fixed before training."""

    check: str  # for scripts: "range", "finite", ...
    what: str
    remedy: str
    level: str = FAULT


@dataclass(frozen=True)
class CompiledRequest:
    """The library of an experiment's environment, to be examined.

    `values` are hyperparameters, among them the environment's settings, that are not the
    experiment's.
    """

    name: str
    library: Path
    values: Mapping[str, float] = dataclass_field(default_factory=dict)


@dataclass(frozen=True)
class Learning:
    """The learning for which numbers are judged. Defaults are those of the algorithms for a
    task."""

    gamma: float = 0.99
    steps: int | None = None  # of a run
    reward_scale: float = 1.0
    is_normalized: bool = False  # observations are, on their way into the networks
    can_scale: bool = False  # there is a hyperparameter reward_scale
    scales_rewards: bool = False  # the algorithm does so by itself


class Figures(Struct):
    """Numbers about an environment, for people and scripts; None: it was not measured."""

    environment: str | None = None
    observations: int = 0
    actions: int = 0
    algorithm: str | None = None
    hidden: Sequence[int] = ()
    bytes: list[Mapping[str, int]] | None = None  # of each width of the hidden layers
    episode_steps: int | None = None
    step_s: float | None = None
    wrappers: list[str] | None = None
    assumed: Sequence[str] = ()  # sentences on what nobody states of a task
    steps: int | None = None  # of random actions, as all that follows
    episodes: int = 0
    terminated: int = 0
    reward_mean: float = 0.0
    reward_std: float = 0.0
    reward_min: float = 0.0
    reward_max: float = 0.0
    episode_steps_mean: float | None = None
    return_mean: float | None = None
    return_std: float | None = None
    step_us: float | None = None
    reset_us: float | None = None
    steps_per_s: float | None = None


class Examination(Struct):
    """The findings of random actions in an environment; `passed` names what is in order."""

    findings: list[Finding] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)

    def note(self, *found: Finding | None) -> bool:
        """Keep the findings among these, and return whether there was one."""
        real = [finding for finding in found if finding is not None]
        self.findings += real
        return bool(real)

    def tried(self, passed: str, *found: Finding | None) -> bool:
        """Keep the findings, or `passed` where there is none; return whether there was none."""
        if self.note(*found):
            return False
        self.passed.append(passed)
        return True

    @property
    def faults(self) -> int:
        return sum(finding.level == FAULT for finding in self.findings)


def number(value: float) -> str:
    """Return the number with three digits: 1,240 or 0.0312."""
    if abs(value) >= 1e12 or 0.0 < abs(value) < 1e-4:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(part: int, whole: int) -> str:
    """Return a share in percent, never 0 for something."""
    percent = 100.0 * part / whole
    if percent < 0.1:
        return "less than 0.1 %"
    return f"{percent:.0f} %" if percent >= 10.0 else f"{percent:.2g} %"


def listed(names: list[str], limit: int = 4) -> str:
    """Return the names, or the first of them and the number of the rest."""
    rest = len(names) - limit
    words = names if rest <= 1 else [*names[:limit], f"{rest} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

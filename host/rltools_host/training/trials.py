"""The search space of a tuning, and its trials in Optuna's storage: SQLite in its folder, or a
database by its URL.

A name of the one list of hyperparameters, or a size, has a range or choices. Those that usually
matter are searched where nobody names any; a range of positive numbers over a factor of 30 or more
is drawn by its logarithm.

A trial is asked for, reports the evaluations of its runs, and ends: complete, pruned or failed.
Storage and runs are written one after the other, and either process may be killed in between. So a
trial that the storage has as running goes on where its head starts again, by its runs' folders: of
its own trials, which have its mark, and not of those of other heads at the same study.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import re
import sqlite3
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rltools_host.build import tools
from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.runs.task import Task
from rltools_host.training.hyperparameters import (
    SIZE_NAMES,
    of_experiment,
    parse_value,
    plain_number,
    require_names,
    resized,
    setting_texts,
    sizes_in,
)

if TYPE_CHECKING:
    import optuna


LOGARITHMIC_FROM = 30.0  # the highest over the lowest
MAX_CHOICES = 100
MAX_SHAPES = 1000  # that sizes make together
FIXED = ("seed", "steps", "eval_freq", "n_eval_episodes", "report_every")  # or runs do not compare
# Searched by default, with these values.
DEFAULT_SEARCH: Mapping[str, str] = {
    "learning_rate": "1e-5..1e-2",
    "gamma": "0.9,0.95,0.98,0.99,0.995,0.999",
    "tau": "0.001..0.05",
    "gae_lambda": "0.8,0.9,0.92,0.95,0.98,0.99,1",
    "clip_range": "0.1,0.2,0.3,0.4",
    "n_epochs": "1,5,10,20",
    "ent_coef": "1e-8..0.1",
    "action_noise": "0.02..0.5",
}
USUAL_SIZES: Mapping[str, str] = {"hidden": "64x64,128x128,256x256", "batch_size": "64,128,256"}
RANGE = re.compile(r"(.+?)\.\.(.+)")
WIDTHS = re.compile(r"[0-9]+(x[0-9]+)*")
GROUP = "tune"  # of Python packages
MARK = "rlt"  # which head's trial it is
SURPLUS = "rlt-surplus"  # of a trial that two heads began at once, where one was missing
COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
STARTUP_TRIALS = 5  # before any is pruned
LOCKED_S = 100.0  # that another process may write
OPENINGS = 20  # of a storage whose tables other heads write at the same moment


@dataclass(frozen=True)
class Dimension:
    """One name, with a range of numbers or with choices, which are texts as --set takes them."""

    name: str
    low: float | int = 0
    high: float | int = 0
    choices: tuple[str, ...] = ()

    @property
    def is_logarithmic(self) -> bool:
        return self.low > 0 and self.high / self.low >= LOGARITHMIC_FROM

    @property
    def is_size(self) -> bool:
        return self.name in SIZE_NAMES

    def text(self) -> str:
        """Return the dimension as --search takes it."""
        if not self.choices:
            return f"{self.name}={self.low}..{self.high}"
        return f"{self.name}={','.join(choice.replace(',', 'x') for choice in self.choices)}"

    def setting(self, value: float | int | str) -> str:
        """Return name=value as --set takes it; a number of a range has four digits."""
        if isinstance(value, float):
            value = min(max(float(f"{value:.4g}"), self.low), self.high)
        return f"{self.name}={value}"


def space_of(
    description: ExperimentDescription,
    task: Task | None,
    searched: Sequence[str],
    settings: Sequence[str],
) -> list[Dimension]:
    """Return the dimensions to search: those `searched`, as --search has them, or the default ones
    of the experiment.

    `settings` are fixed. UsageError names the text that is wrong.
    """
    texts = {}
    for text in searched:
        name, equals, values = (part.strip() for part in text.partition("="))
        if name in texts:
            raise UsageError(f"--search {name} is given twice: give it once")
        texts[name] = values if equals else ""
    hidden, numbers, others = sizes_in(settings)
    fixed = setting_texts(others)
    require_names(description, fixed)
    sizes = {*numbers, *(("hidden",) if hidden else ())}
    if not texts:
        known = {entry.name for entry in description.hyperparameters}
        texts = {name: "" for name in DEFAULT_SEARCH if name in known and name not in fixed}
        texts |= {name: "" for name in USUAL_SIZES if task is not None and name not in sizes}
    space = [dimension(description, name, values) for name, values in texts.items()]
    for found in space:
        if found.name in fixed or found.name in sizes:
            raise UsageError(f"{found.name} is searched and set: give either --search or --set")
    if not space:
        raise UsageError(
            f"{description.name} has nothing that is searched unless it is named: name it with "
            "--search NAME=LOW..HIGH"
        )
    require_shapes(description.name, task, space)
    return space


def dimension(description: ExperimentDescription, name: str, values: str) -> Dimension:
    if name in SIZE_NAMES:
        return size_dimension(name, values or USUAL_SIZES.get(name, ""))
    require_names(description, [name])
    entry = description.hyperparameter(name)
    if name in FIXED:
        raise UsageError(
            f"--search {name}: all trials have the same {name}, or they do not compare"
        )
    if not values and name not in DEFAULT_SEARCH:
        raise UsageError(f"--search {name}: give a range or values: --search {name}=LOW..HIGH")
    try:
        return hyperparameter_dimension(entry, values or DEFAULT_SEARCH[name])
    except RltError as error:
        raise UsageError(f"--search {name}: {error}") from None


def hyperparameter_dimension(entry: Parameter, text: str) -> Dimension:
    if found := RANGE.fullmatch(text):
        low, high = (parse_value(entry, end.strip()) for end in found.groups())
        if low >= high:
            raise UsageError(f"the range {text} has no width: write LOW..HIGH")
        return Dimension(entry.name, low, high)
    values = [parse_value(entry, part.strip()) for part in text.split(",")]
    return Dimension(entry.name, choices=distinct(text, [plain_number(entry, v) for v in values]))


def distinct(text: str, choices: Sequence[str]) -> tuple[str, ...]:
    if len(set(choices)) < len(choices) or not 2 <= len(choices) <= MAX_CHOICES:
        raise UsageError(
            f"{text}: write 2 to {MAX_CHOICES} values, each once, A,B, or a range, LOW..HIGH"
        )
    return tuple(choices)


def size_dimension(size: str, text: str) -> Dimension:
    """Return a dimension of choices: each is compiled."""
    parts = [part.strip() for part in text.split(",")]
    form = WIDTHS if size == "hidden" else re.compile("[0-9]+")
    if not all(form.fullmatch(part) for part in parts):
        example = "hidden=64x64,256x256" if size == "hidden" else f"{size}=64,256"
        raise UsageError(
            f"--search {size}={text}: sizes are compiled in: list them, as in --search {example}"
        )
    try:
        return Dimension(size, choices=distinct(text, [part.replace("x", ",") for part in parts]))
    except UsageError as error:
        raise UsageError(f"--search {size}={error}") from None


def require_shapes(experiment: str, task: Task | None, space: Sequence[Dimension]) -> None:
    """Raise UsageError if a combination of sizes cannot be compiled."""
    sizes = [found for found in space if found.is_size]
    if not sizes:
        return
    count = math.prod(len(found.choices) for found in sizes)
    if count > MAX_SHAPES:
        raise UsageError(f"--search: the sizes make {count:,} programs; {MAX_SHAPES:,} are allowed")
    for values in itertools.product(*(found.choices for found in sizes)):
        shape = [f"{found.name}={value}" for found, value in zip(sizes, values, strict=True)]
        try:
            of_experiment(experiment, shape) if task is None else resized(task, shape)
        except RltError as error:
            raise UsageError(f"--search {' '.join(shape)}: {error}") from None


@dataclass
class Trial:
    """A trial of Optuna: its settings, and its outcome so far."""

    number: int
    settings: tuple[str, ...]
    reported: set[int] = field(default_factory=set)  # steps

    @property
    def name(self) -> str:
        """Return the name of the trial's folder."""
        return f"t{self.number}"

    @property
    def label(self) -> str:
        return f"trial {self.number}"


def without_password(url: str) -> str:
    """Return the URL without its password, as a file may have it."""
    from sqlalchemy import make_url

    return str(make_url(url).render_as_string(hide_password=True))


class Trials:
    """A study of Optuna, of this process alone or shared with others by a database."""

    def __init__(
        self, storage: str | Path, study: str, mark: str, space: Sequence[Dimension], prunes: bool
    ) -> None:
        """Open the storage; `storage` is a URL, or the path of SQLite's file. DamagedFileError: it
        cannot be used."""
        tools.ensure_group(GROUP)
        import optuna

        if isinstance(storage, str):
            require_database(storage)

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        # A killed process samples again; the seed changes from trial to trial.
        pruner = (
            optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS)
            if prunes
            else optuna.pruners.NopPruner()
        )
        self._mark, self._space = mark, space
        try:
            with warnings.catch_warnings(action="ignore"):
                self._study = study_in(storage, study, pruner)
                known = self._study.get_trials(deepcopy=False)
                # Heads that share a database begin with different values.
                own = zlib.crc32(mark.encode()) if isinstance(storage, str) else 0
                self._study.sampler = optuna.samplers.TPESampler(seed=(own + len(known)) % 2**32)
        except Exception as error:  # of any database's driver
            raise storage_error(storage, error) from None
        self._storage, self._asked = storage, dict[int, optuna.Trial]()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Turn an error of the storage into one sentence."""
        from optuna.exceptions import OptunaError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with warnings.catch_warnings(action="ignore"):
                yield
        except (OptunaError, SQLAlchemyError) as error:
            raise storage_error(self._storage, error) from None
        except ValueError as error:
            raise UsageError(
                f"the study {self._study.study_name} was begun with another search ({error}): "
                "give another --name"
            ) from None

    def _state(self, name: str) -> optuna.trial.TrialState:
        from optuna.trial import TrialState

        return {
            COMPLETE: TrialState.COMPLETE,
            PRUNED: TrialState.PRUNED,
            FAILED: TrialState.FAIL,
        }[name]

    def ask(self, of: int) -> Trial | None:
        """Return a new trial, which is running in the storage; None where there are `of` already,
        finished or running, also those of other heads.

        A trial has its mark from the beginning. If heads begin one each at the same time, those
        with the lowest numbers go on.
        """
        from optuna.trial import Trial as Asked
        from optuna.trial import TrialState, create_trial

        with self._in_use():
            if len(self._counted()) >= of:
                return None
            own = create_trial(state=TrialState.RUNNING, user_attrs={MARK: self._mark})
            self._study._thread_local.cached_all_trials = None  # as Study.ask() does
            storage = self._study._storage
            asked = Asked(self._study, storage.create_new_trial(self._study._study_id, own))
            if sum(number < asked.number for number in self._counted()) >= of:
                asked.set_user_attr(SURPLUS, True)
                self._study.tell(asked, state=TrialState.FAIL)
                return None
            return self._drawn(asked)

    def _counted(self) -> list[int]:
        """Return the numbers of all trials that count: finished, or of a head that has begun it."""
        from optuna.trial import TrialState

        begun = (TrialState.RUNNING, TrialState.WAITING)
        return [
            trial.number
            for trial in self._study.get_trials(deepcopy=False)
            if SURPLUS not in trial.user_attrs
            and (trial.state not in begun or MARK in trial.user_attrs)
        ]

    def elsewhere(self) -> int:
        """Return how many trials run under other heads, or were left by them."""
        from optuna.trial import TrialState

        with self._in_use():
            running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        marks = [trial.user_attrs.get(MARK, self._mark) for trial in running]
        return sum(mark != self._mark for mark in marks)

    def unfinished(self) -> list[Trial]:
        """Own trials that the storage has as running: a head that was killed left them."""
        from optuna.trial import Trial as Asked
        from optuna.trial import TrialState

        with self._in_use():
            return [
                self._drawn(Asked(self._study, trial._trial_id), set(trial.intermediate_values))
                for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
                if trial.user_attrs.get(MARK) == self._mark
            ]

    def finished(self) -> dict[int, tuple[str, float]]:
        """Return the state and value of all finished trials by number, also those of other
        processes."""
        names = {self._state(name): name for name in (COMPLETE, PRUNED, FAILED)}
        with self._in_use():
            found = self._study.get_trials(deepcopy=False, states=tuple(names))
        return {
            trial.number: (names[trial.state], math.nan if trial.value is None else trial.value)
            for trial in found
            if SURPLUS not in trial.user_attrs
        }

    def report(self, trial: Trial, values: Mapping[int, float]) -> bool:
        """Report mean returns by step; return True if the trial is to be pruned."""
        asked = self._asked[trial.number]
        is_hopeless = False
        with self._in_use():
            for step in sorted(set(values) - trial.reported):
                trial.reported.add(step)
                asked.report(values[step], step)
                is_hopeless = is_hopeless or asked.should_prune()
        return is_hopeless

    def tell(self, trial: Trial, state: str, value: float = math.nan) -> None:
        if state == COMPLETE and not math.isfinite(value):
            state = FAILED
        with self._in_use():
            self._study.tell(
                self._asked.pop(trial.number),
                value if state == COMPLETE else None,
                state=self._state(state),
                skip_if_finished=True,
            )

    def _drawn(self, asked: optuna.Trial, reported: set[int] | None = None) -> Trial:
        """Draw the values that the storage does not have yet."""
        settings = []
        for each in self._space:
            value: float | int | str
            if each.choices:
                value = str(asked.suggest_categorical(each.name, each.choices))
            elif isinstance(each.low, int) and isinstance(each.high, int):
                value = asked.suggest_int(each.name, each.low, each.high, log=each.is_logarithmic)
            else:
                value = asked.suggest_float(each.name, each.low, each.high, log=each.is_logarithmic)
            settings.append(each.setting(value))
        self._asked[asked.number] = asked
        return Trial(asked.number, tuple(settings), reported or set())


def require_database(url: str) -> None:
    """Raise UsageError for what is no URL, and for SQLite in memory, which ends with this
    process."""
    from sqlalchemy import make_url

    try:
        parts = make_url(url)
    except Exception:  # of a URL whose port is no number, too
        raise UsageError(
            "--storage is not the URL of a database: write sqlite:///FILE or "
            "postgresql://USER@HOST/NAME"
        ) from None
    name = parts.database or ":memory:"
    in_memory = ":memory:" in name or "memory" in parts.normalized_query.get("mode", ())
    if parts.get_backend_name() == "sqlite" and in_memory:
        raise UsageError(
            f"--storage {url} is in memory, and its trials would be lost with this process: name a "
            "file, sqlite:///FILE, or leave it out"
        )


def study_in(
    storage: str | Path, name: str, pruner: optuna.pruners.BasePruner
) -> optuna.study.Study:
    """Return the study of a storage, which is begun where it is missing.

    Heads that start at the same moment all write a new storage's tables: one has them first, and
    the others look again.
    """
    import optuna

    for rest in reversed(range(OPENINGS)):
        try:
            return optuna.create_study(
                storage=opened(storage),
                study_name=name,
                direction="maximize",
                load_if_exists=True,
                pruner=pruner,
            )
        except Exception as error:  # of any database's driver
            if not rest or not is_begun_elsewhere(error):
                raise
            time.sleep(random.uniform(0.1, 0.5))
    raise AssertionError


def is_begun_elsewhere(error: BaseException) -> bool:
    """Return whether another process has just written what this one wanted to."""
    from sqlalchemy.exc import IntegrityError

    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return any(isinstance(c, IntegrityError) or "already exists" in str(c) for c in causes)


def opened(storage: str | Path) -> optuna.storages.RDBStorage:
    from optuna.storages import RDBStorage

    if isinstance(storage, str):
        return RDBStorage(storage)

    def connect() -> sqlite3.Connection:  # a URL cannot have every path
        return sqlite3.connect(storage, timeout=LOCKED_S, check_same_thread=False)

    return RDBStorage("sqlite:///study.db", {"creator": connect})


def storage_error(storage: str | Path, error: Exception) -> DamagedFileError:
    """Return the error of a storage, without a password."""
    cause: BaseException = error  # Optuna's own words guess at it
    while getattr(cause, "orig", None) is None and cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(getattr(cause, "orig", None) or cause).strip()
    reason = text.splitlines()[0] if text else type(cause).__name__
    shown = without_password(storage) if isinstance(storage, str) else storage
    return DamagedFileError(
        f"the trials' storage {shown} cannot be used ({reason}): restore it, or give another with "
        "--storage"
    )

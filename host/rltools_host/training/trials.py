"""The trials of a tuning, in Optuna's storage: SQLite in its folder, or any database by its URL.

A trial is asked for, reports what its runs evaluate to, and is told: complete, pruned or failed.
Storage and runs are written one after the other, and either process may be killed in between. So a
trial that the storage has as running goes on where its head starts again, by its runs' folders: of
its own trials, which have its mark, and not of those of other heads at the same study.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.toolchain import tools
from rltools_host.training.search import Dimension

if TYPE_CHECKING:
    import optuna

GROUP = "tune"  # of Python packages
MARK = "rlt"  # which head's trial it is
COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
STARTUP_TRIALS = 5  # before any is pruned
LOCKED_S = 100.0  # that another process may write


@dataclass
class Trial:
    """One trial: its settings, and what is known of it."""

    number: int
    settings: tuple[str, ...]
    reported: set[int] = field(default_factory=set)  # steps

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"t{self.number}"

    @property
    def label(self) -> str:
        return f"trial {self.number}"


def without_password(url: str) -> str:
    """The URL as a file may have it."""
    from sqlalchemy import make_url

    return str(make_url(url).render_as_string(hide_password=True))


class Trials:
    """A study of Optuna's, which this head shares with nobody, or with others by a database."""

    def __init__(
        self, place: str | Path, study: str, mark: str, space: Sequence[Dimension], prunes: bool
    ) -> None:
        """place: a URL, or SQLite's file. DamagedFileError where the storage cannot be used."""
        tools.ensure_group(GROUP)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        # A killed head samples anew; the seed goes on from trial to trial.
        pruner = (
            optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS)
            if prunes
            else optuna.pruners.NopPruner()
        )
        self._mark, self._space = mark, space
        try:
            with warnings.catch_warnings(action="ignore"):
                self._study = optuna.create_study(
                    storage=opened(place),
                    study_name=study,
                    direction="maximize",
                    load_if_exists=True,
                    pruner=pruner,
                )
                known = self._study.get_trials(deepcopy=False)
                self._study.sampler = optuna.samplers.TPESampler(seed=len(known))
        except Exception as error:  # of any database's driver
            raise storage_error(place, error) from None
        self._place, self._asked = place, dict[int, optuna.Trial]()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """What becomes of the storage meanwhile is one sentence."""
        from optuna.exceptions import OptunaError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with warnings.catch_warnings(action="ignore"):
                yield
        except (OptunaError, SQLAlchemyError) as error:
            raise storage_error(self._place, error) from None
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

    def ask(self) -> Trial:
        """A new trial; the storage has it as running."""
        with self._in_use():
            trial = self._study.ask()
            trial.set_user_attr(MARK, self._mark)
            return self._drawn(trial)

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
        """All trials that were told, other heads' too: state and value by number."""
        names = {self._state(name): name for name in (COMPLETE, PRUNED, FAILED)}
        with self._in_use():
            found = self._study.get_trials(deepcopy=False, states=tuple(names))
        return {
            trial.number: (names[trial.state], math.nan if trial.value is None else trial.value)
            for trial in found
        }

    def report(self, trial: Trial, values: Mapping[int, float]) -> bool:
        """What its runs evaluate to, by steps; whether it is to be pruned."""
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
        """Draws what the storage does not have yet."""
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


def opened(place: str | Path) -> optuna.storages.RDBStorage:
    from optuna.storages import RDBStorage

    if isinstance(place, str):
        return RDBStorage(place)

    def connect() -> sqlite3.Connection:  # a URL cannot have every path
        return sqlite3.connect(place, timeout=LOCKED_S, check_same_thread=False)

    return RDBStorage("sqlite:///study.db", {"creator": connect})


def storage_error(place: str | Path, error: Exception) -> DamagedFileError | UsageError:
    """One sentence, without a password."""
    cause: BaseException | None = error  # Optuna's own words guess at it
    while cause is not None and getattr(cause, "orig", None) is None:
        cause = cause.__cause__
    reason = str(getattr(cause, "orig", None) or error).strip().splitlines()[0]
    shown = str(place)
    if isinstance(place, str):
        try:
            shown = without_password(place)
        except Exception:
            return UsageError(
                "--storage is not the URL of a database: write sqlite:///FILE or "
                "postgresql://USER@HOST/NAME"
            )
        if isinstance(error, ImportError):
            cause = error.__cause__ or error.__context__ or error
            module = getattr(error, "name", None) or getattr(cause, "name", None) or "of its driver"
            return UsageError(f"--storage {shown} needs the Python package {module}: install it")
    return DamagedFileError(
        f"the trials' storage {shown} cannot be used ({reason}): restore it, or give another with "
        "--storage"
    )

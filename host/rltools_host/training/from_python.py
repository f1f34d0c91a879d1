"""What a Python program asks for, checked: seeds, settings, a run to go on with, widths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rltools_host.arguments import (
    LARGEST_SEED,
    optional_path,
    optional_whole_number,
    shown,
    table,
    whole_number,
)
from rltools_host.errors import UsageError
from rltools_host.runs.names import find_group
from rltools_host.runs.task import WIDEST_LAYER
from rltools_host.training.group_plan import MOST_SEEDS, GroupRequest
from rltools_host.training.plan import TrainingRequest

Seeds = tuple[Iterable[int] | None, int | None]  # and how many runs at once


def group_request(request: TrainingRequest, asked: Seeds, tensorboard: bool) -> GroupRequest | None:
    """What trains several seeds, or goes on with a group; None where one run is meant. One sentence
    says what is wrong with the seeds."""
    seeds, jobs = asked
    is_group = request.resume is not None and find_group(request.resume) is not None
    if seeds is None and not is_group:
        if jobs is not None:
            raise UsageError("jobs goes with seeds, or with resume and a group of runs")
        return None
    each: tuple[int, ...] = ()
    if seeds is not None:
        if isinstance(seeds, str) or not isinstance(seeds, Iterable):
            raise UsageError(f"seeds={shown(seeds)}: give whole numbers, such as range(10)")
        each = tuple(whole_number("seeds", seed, 0, LARGEST_SEED) for seed in seeds)
        if not each or len(each) != len(set(each)) or len(each) > MOST_SEEDS:
            raise UsageError(f"seeds: give 1 to {MOST_SEEDS:,} seeds, each once")
        if request.seed is not None:
            raise UsageError("seed does not go with seeds: name all in seeds")
        if request.resume is not None:
            raise UsageError("seeds does not go with resume: a resumed group keeps its seeds")
    return GroupRequest(
        request,
        each,
        jobs=optional_whole_number("jobs", jobs, 1, MOST_SEEDS),
        tensorboard=tensorboard,
    )


def as_typed(settings: Mapping[str, float | int | str] | None) -> tuple[str, ...]:
    """As --set has them."""
    return tuple(f"{name}={value}" for name, value in table("settings", settings).items())


def place_of(run: Any) -> str | None:
    """As --resume has it."""
    place = optional_path("resume", getattr(run, "path", run))
    return None if place is None else str(place)


def widths(hidden: Any) -> tuple[int, ...]:
    """Of hidden layers, as a tuple of numbers."""
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise UsageError(f"hidden={shown(hidden)}: give the widths of the layers, such as (64, 64)")
    return tuple(whole_number("hidden", width, 1, WIDEST_LAYER) for width in hidden)

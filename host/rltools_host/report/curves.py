"""Learning curves of a group of runs: what its evaluations returned, by variant, over steps."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rltools_host.errors import RltError
from rltools_host.report.plot import Values
from rltools_host.report.run_data import values_of
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder, RunName
from rltools_host.runs.names import is_run


@dataclass(frozen=True)
class VariantCurve:
    """The evaluations of a variant's runs at the steps that all of them have."""

    name: str
    label: str
    seeds: tuple[int, ...]
    steps: Values  # (points)
    returns: Values  # (runs, points): the mean return of each evaluation

    @property
    def mean(self) -> Values:
        return np.asarray(self.returns.mean(axis=0))

    @property
    def std(self) -> Values:
        """Between the runs; the population's, as boards report it."""
        return np.asarray(self.returns.std(axis=0))


def variant_curves(group: GroupFolder) -> list[VariantCurve]:
    """Of each variant that has evaluations: of the runs that have finished, where any have."""
    curves = []
    for variant in group.variants:
        runs = [(name, run) for name in group.run_names() if (run := run_of(group, name))]
        runs = [(name, run) for name, run in runs if name.variant == variant["name"]]
        finished = [entry for entry in runs if entry[1].metadata.get("state") == "finished"]
        points = {name.seed: evaluations(run) for name, run in finished or runs}
        points = {seed: values for seed, values in points.items() if values}
        if not points:
            continue
        steps = sorted(set.intersection(*(set(values) for values in points.values())))
        returns = [[values[step] for step in steps] for values in points.values()]
        curves.append(
            VariantCurve(
                variant["name"],
                variant["label"],
                tuple(points),
                np.array(steps, float),
                np.array(returns, float).reshape(len(points), len(steps)),
            )
        )
    return [curve for curve in curves if curve.steps.size]


def run_of(group: GroupFolder, name: RunName) -> RunFolder | None:
    """A run of the group, where it has begun and can be read."""
    path = group.path / name.folder
    try:
        return RunFolder.open(path) if is_run(path) else None
    except RltError:
        return None


def evaluations(run: RunFolder) -> Mapping[int, float]:
    """Mean return by step; a null is left out."""
    rows = [row for row in run.read_metrics() if row.get("kind") == "evaluation"]
    values = values_of(rows, "return_mean")
    return {
        int(row["step"]): float(value)
        for row, value in zip(rows, values, strict=True)
        if np.isfinite(value)
    }


def as_csv(curves: Sequence[VariantCurve]) -> str:
    """A row for each variant and step: mean and deviation, then each seed's return."""
    seeds = sorted({seed for curve in curves for seed in curve.seeds})
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["variant", "step", "mean", "deviation", *(f"seed_{seed}" for seed in seeds)])
    for curve in curves:
        by_seed = dict(zip(curve.seeds, curve.returns, strict=True))
        for index, step in enumerate(curve.steps):
            each = [repr(float(by_seed[s][index])) if s in by_seed else "" for s in seeds]
            row = [repr(float(value[index])) for value in (curve.mean, curve.std)]
            writer.writerow([curve.name, int(step), *row, *each])
    return stream.getvalue()

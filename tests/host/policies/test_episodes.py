"""A file of every step: its columns, its rows, and where it may be written."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.policies.episodes import Episode, check_trace_path, headings, write_trace
from rltools_host.policies.image import PolicyImage


def image(observations: list[str], actions: list[str]) -> PolicyImage:
    channels = [[Channel(name, "m", -1, 1) for name in names] for names in (observations, actions)]
    return cast(PolicyImage, SimpleNamespace(observations=channels[0], actions=channels[1]))


def episode(terminated: bool) -> Episode:
    return cast(
        Episode,
        SimpleNamespace(
            seed=7,
            step_s=0.5,
            observations=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            actions=np.array([[0.1], [0.2], [0.3]]),
            rewards=np.array([-1.0, -2.0, 1 / 3]),
            terminated=terminated,
        ),
    )


def test_columns_that_have_one_name_or_a_formulas_say_what_they_are() -> None:
    assert headings(image(["x", "same"], ["same", "=1+1", "-y", "+z", "@w", "a=b"])) == [
        "episode",
        "seed",
        "step",
        "time [s]",
        "x [m]",
        "observation same [m]",
        "action same [m]",
        "action =1+1 [m]",
        "action -y [m]",
        "action +z [m]",
        "action @w [m]",
        "a=b [m]",
        "reward",
        "terminated",
        "truncated",
    ]


@pytest.mark.all
def test_parquet_has_the_columns_and_numbers_of_the_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    check_trace_path(path)  # installs what it needs
    from pyarrow import parquet

    both, named = [episode(True), episode(False)], image(["x", "y"], ["u"])
    write_trace(path, named, both)
    write_trace(path.with_suffix(".csv"), named, both)
    table = parquet.read_table(path)
    with path.with_suffix(".csv").open() as file:
        rows = list(csv.reader(file))
    assert table.column_names == rows[0]
    columns = zip(*rows[1:], strict=True)
    for name, column, texts in zip(rows[0], table.columns, columns, strict=True):
        is_whole = name in ("episode", "seed", "step", "terminated", "truncated")
        assert str(column.type) == ("int64" if is_whole else "double")
        assert [f"{value:.9g}" for value in column.to_pylist()] == list(texts)
    assert table.column("reward").to_pylist()[2] == 1 / 3  # all of its digits

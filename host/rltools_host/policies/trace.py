"""Every step of every episode in a file: a table for spreadsheets and pandas, or NumPy's arrays.

Parquet is not written: its smallest libraries are of 20 to 45 MB, and `pandas.read_csv(FILE)` reads
what is written here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import UsageError
from rltools_host.files import disk_error, write_atomically
from rltools_host.policies.episodes import Episode
from rltools_host.policies.image import PolicyImage

CSV, NPZ = ".csv", ".npz"
OPTION = "--trace"


def check_trace_path(path: Path) -> None:
    """Before anything is played: UsageError where nothing can be written there."""
    if path.suffix == ".parquet":
        raise UsageError(
            f"{OPTION} {path}: parquet is not written, name a file {path.with_suffix(CSV).name}; "
            "pandas.read_csv(...).to_parquet(...) makes one of it"
        )
    if path.suffix not in (CSV, NPZ):
        raise UsageError(f"{OPTION} {path}: name a file that ends with {CSV} or {NPZ}")
    if path.is_dir():
        raise UsageError(f"{OPTION} {path} is a folder: name a file in it")


def write_trace(path: Path, image: PolicyImage, episodes: Sequence[Episode]) -> None:
    """As the file's name says: a row for each step.

    CSV: the columns of headings(), and numbers of nine digits, which tell floats apart. NPZ:
    `columns`, the same names, and `rows` of float64, (steps, columns).
    """
    columns = headings(image)
    rows = np.concatenate([rows_of(index, episode) for index, episode in enumerate(episodes)])
    if path.suffix == NPZ:
        stream = io.BytesIO()
        np.savez_compressed(stream, columns=np.array(columns), rows=rows)
        data = stream.getvalue()
    else:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([f"{value:.9g}" for value in row] for row in rows.tolist())
        data = text.getvalue().encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(path, error) from None
    write_atomically(path, data)


def headings(image: PolicyImage) -> list[str]:
    """`velocity [rad/s]`; with `observation` or `action` before it where two columns would have
    that name, or a spreadsheet would compute it."""
    names = [channel.name for channel in (*image.observations, *image.actions)]
    texts = []
    for kind, channels in (("observation", image.observations), ("action", image.actions)):
        for channel in channels:
            is_plain = names.count(channel.name) == 1 and channel.name[0] not in "=+-@"
            name = channel.name if is_plain else f"{kind} {channel.name}"
            texts.append(f"{name} [{channel.unit}]")
    return ["episode", "seed", "step", "time [s]", *texts, "reward", "terminated", "truncated"]


def rows_of(index: int, episode: Episode) -> NDArray[np.float64]:
    """(steps, columns). What an episode was cut off after is truncated, unless it is terminal."""
    steps = len(episode.rewards)
    last = np.zeros(steps)
    last[-1] = 1
    number = np.arange(steps, dtype=float)
    rows = [
        np.full(steps, index),
        np.full(steps, episode.seed),
        number,
        number * episode.step_s,
        *episode.observations.T,
        *episode.actions.T,
        episode.rewards,
        last * episode.terminated,
        last * (not episode.terminated),
    ]
    return np.stack(rows, axis=1)

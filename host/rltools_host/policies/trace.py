"""Every step of every episode in a file: a table for spreadsheets and pandas, or NumPy's arrays."""

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
from rltools_host.toolchain import tools

CSV, NPZ, PARQUET = ".csv", ".npz", ".parquet"
GROUP = "parquet"
COUNTS = ("episode", "seed", "step", "terminated", "truncated")  # columns of whole numbers
OPTION = "--trace"


def check_trace_path(path: Path) -> None:
    """Before anything is played: UsageError where nothing can be written there. What Parquet needs
    is installed."""
    if path.suffix not in (CSV, NPZ, PARQUET):
        raise UsageError(f"{OPTION} {path}: name a file that ends with {CSV}, {NPZ} or {PARQUET}")
    if path.is_dir():
        raise UsageError(f"{OPTION} {path} is a folder: name a file in it")
    if path.suffix == PARQUET:
        tools.ensure_group(GROUP)


def write_trace(path: Path, image: PolicyImage, episodes: Sequence[Episode]) -> None:
    """As the file's name says: a row for each step.

    CSV: the columns of headings(), and numbers of nine digits, which tell floats apart. NPZ:
    `columns`, the same names, and `rows` of float64, (steps, columns). Parquet: the columns of the
    CSV, as int64 and float64.
    """
    columns = headings(image)
    rows = np.concatenate([rows_of(index, episode) for index, episode in enumerate(episodes)])
    if path.suffix == NPZ:
        stream = io.BytesIO()
        np.savez_compressed(stream, columns=np.array(columns), rows=rows)
        data = stream.getvalue()
    elif path.suffix == PARQUET:
        data = parquet(columns, rows)
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


def parquet(columns: Sequence[str], rows: NDArray[np.float64]) -> bytes:
    import pyarrow
    from pyarrow import parquet as writer

    arrays = [
        pyarrow.array(values.astype(np.int64) if name in COUNTS else values)
        for name, values in zip(columns, rows.T, strict=True)
    ]
    stream = pyarrow.BufferOutputStream()
    writer.write_table(pyarrow.Table.from_arrays(arrays, names=list(columns)), stream)
    return bytes(stream.getvalue())


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

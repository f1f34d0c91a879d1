"""The command `rlt runs`: list, compare, rename and delete runs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal as size

from rltools_host.commands.options import Json, leave, refuse, run_named
from rltools_host.errors import UsageError
from rltools_host.files import plain_json
from rltools_host.lines import aside, columns, folded, without_commands
from rltools_host.runs.group import statistics_of
from rltools_host.runs.inventory import (
    Entry,
    delete,
    disk_bytes,
    entries,
    find_named,
    held,
    rename,
    seeds_of,
)
from rltools_host.runs.names import minute
from rltools_host.tree import PROJECT, command_line, near_path

if TYPE_CHECKING:
    from rltools_host.report.comparison import Comparison
    from rltools_host.runs.aggregates import Interval

COMPARE, RENAME, DELETE = "compare", "rename", "delete"


def by_result(entry: Entry) -> tuple[bool, float]:
    """Return the entries with the highest result first, and those without a result last."""
    return entry.result is None, -(entry.result or 0.0)


ORDERS: dict[str, Callable[[Entry], Any] | None] = {
    "when": None,  # as they began
    "result": by_result,
    "name": lambda entry: entry.name,
    "size": lambda entry: -entry.disk_bytes,
    "steps": lambda entry: -entry.step,
}


# -- the list --------------------------------------------------------------------------------------


def list_runs(words: Sequence[str], order: str, with_members: bool, json_output: bool) -> None:
    """Print the runs that have all of the words in their name, experiment, board, state or kind."""
    if order not in ORDERS:
        raise UsageError(f'--sort "{order}": choose one of {", ".join(ORDERS)}')
    found = entries(PROJECT.runs, with_members)
    chosen = [each for each in found if all(word.casefold() in each.words for word in words)]
    if (key := ORDERS[order]) is not None:
        chosen.sort(key=key)
    # Of a group that is listed with its runs, these are counted once.
    groups = {each.path for each in chosen if each.is_group}
    alone = [each for each in chosen if groups.isdisjoint(each.path.parents)]
    total = sum(each.disk_bytes for each in alone)
    if json_output:
        documents = [each.document() for each in chosen]
        where = {"folder": str(PROJECT.runs), "disk_bytes": total}
        print(json.dumps({"runs": documents, **where}))
        return
    if chosen:
        lines = folded([HEADS, *map(row_of, chosen)], columns(sys.stdout))
        lines += [f"note: {each.problem}" for each in chosen if each.problem]
        print(without_commands("\n".join(lines)), end="\n\n")
    count = f"{len(chosen):,}" + (f" of {len(found):,}" if words else "")
    folder = near_path(PROJECT.runs)
    print(without_commands(f"{count} in {folder}, {size(total)} of the disk"))


HEADS = (
    *("name", "experiment", "board", "seed", "steps", "return", "length", "began (UTC)", "size"),
    "state",
)


def row_of(entry: Entry) -> tuple[str, ...]:
    result = "-" if entry.result is None else f"{entry.result:,.1f}"
    if entry.result is not None and entry.deviation is not None:
        result += f" ± {entry.deviation:,.1f}"
    steps = f"{entry.step:,}"
    if entry.step < entry.steps:
        steps += f" of {entry.steps:,}"
    return (
        entry.name,
        entry.experiment or "-",
        entry.board or "-",
        seeds_of(entry),
        steps,
        result,
        "-" if entry.length is None else f"{entry.length:,.0f}",
        minute(entry.begun_us),
        size(entry.disk_bytes),
        entry.state or "-",
    )


# -- the comparison -------------------------------------------------------------------------------


def compare_runs(
    names: Sequence[str],
    threshold: float | None,
    takes_any: bool,
    output: Path | None,
    json_output: bool,
    joins: bool = False,
) -> None:
    """Print the comparison, and write its page where one is asked for."""
    from rltools_host.report.comparison import compare, write_comparison

    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--threshold {threshold}: give a number")
    runs = [str(run_named(name)) for name in names]
    comparison = compare(runs, threshold, takes_any, joins)
    document = comparison.document()
    if output is not None:
        document["path"] = str(write_comparison(comparison, output))
    for note in comparison.notes:
        aside(without_commands(f"note: {note}"))
    if json_output:
        print(json.dumps(plain_json(document)))
        return
    lines = comparison_lines(comparison, columns(sys.stdout))
    if output is not None:
        lines += ["", f"wrote {near_path(Path(str(document['path'])))}"]
    print(without_commands("\n".join(lines)))


def comparison_lines(comparison: Comparison, width: int) -> list[str]:
    """Return tables of final returns, of the threshold, and of probabilities."""
    from rltools_host.report.comparison import difference_lines
    from rltools_host.runs.aggregates import RESAMPLES

    contenders = comparison.contenders
    heads = "return algorithm runs IQM 95_% mean deviation median worst length"
    rows = [tuple(word.replace("_", " ") for word in heads.split())]
    for each in contenders:
        figures = statistics_of(each.returns)
        numbers = (figures[key] for key in ("mean", "std", "median", "worst"))
        shown = ["-" if value is None else f"{value:,.1f}" for value in numbers]
        of_runs = (each.first.algorithm or "-", str(len(each.runs)), f"{each.mean:,.1f}")
        length = "-" if each.length is None else f"{each.length:,.0f}"
        rows.append((each.name, *of_runs, interval(each.interval, 1), *shown, length))
    lines = folded(rows, width)
    reached = [each.reached for each in contenders if each.reached is not None]
    if reached:
        rows = [(f"return of {reached[0].threshold:g}", "reached", "steps", "seconds")]
        for each, when in zip(contenders, reached, strict=True):
            steps, seconds = when.median(when.steps), when.median(when.seconds)
            share = f"{when.count} of {len(when.steps)}"
            medians = (
                "-" if steps is None else f"{steps:,.0f}",
                "-" if seconds is None else f"{seconds:,.1f}",
            )
            rows.append((each.name, share, *medians))
        lines += ["", *folded(rows, width)]
    rows = [("probability of a higher return", "", "95 %")]
    rows += [
        (f"{each.of} over {each.over}", f"{each.probability:.2f}", interval(each.interval, 2))
        for each in comparison.improvements
    ]
    lines += ["", *folded(rows, width)]
    if differences := difference_lines(contenders):
        lines += ["", *(f"differs  {line}" for line in differences)]
    lines += ["", comparison.verdict]
    return [*lines, f"intervals: bootstrap over runs, {RESAMPLES:,} resamples, seed 0"]


def interval(ends: Interval | None, digits: int) -> str:
    return "-" if ends is None else " to ".join(f"{end:,.{digits}f}" for end in ends)


# -- what changes the disk -------------------------------------------------------------------------


def rename_run(names: Sequence[str], json_output: bool) -> None:
    if len(names) != 2:
        raise UsageError(f"`{command_line('runs', RENAME)}` takes a run and its new name")
    path = find_named(names[0])
    target = rename(path, names[1])
    if json_output:
        print(json.dumps({"run": str(target), "was": str(path)}))
    else:
        print(without_commands(f"{near_path(path)} is now {near_path(target)}"))


def delete_runs(names: Sequence[str], is_agreed: bool, json_output: bool) -> None:
    """Delete runs after one question for all; refuse all if one is in training, or a folder is not
    a run."""
    if not names:
        raise UsageError(f"`{command_line('runs', DELETE)}` takes names of runs")
    paths = list(dict.fromkeys(map(find_named, names)))
    paths = [path for path in paths if not any(other in path.parents for other in paths)]
    with held(paths):
        pass  # refused before anybody is asked
    sizes = {path: disk_bytes(path) for path in paths}
    if not is_agreed:
        agree(paths, sizes, json_output)
    left: list[Path] = []
    with held(paths):
        for path in paths:
            left += delete(path)
    freed = sum(sizes.values()) - sum(map(disk_bytes, paths))
    if json_output:
        document = {"deleted": list(map(str, paths)), "freed_bytes": freed}
        print(json.dumps({**document, "left": list(map(str, left))}))
        return
    lines = [f"deleted {near_path(path)}" for path in paths]
    lines += [f"left    {near_path(path)}, which is not of the run" for path in left]
    print(without_commands("\n".join([*lines, f"{size(freed)} freed"])))


def agree(paths: Sequence[Path], sizes: dict[Path, int], json_output: bool) -> None:
    """Return if the user agrees; else raise an error."""
    if json_output or not sys.stdin.isatty():
        raise UsageError(
            "not on a terminal, so nothing can be confirmed: --yes deletes without asking"
        )
    for path in paths:
        line = f"{near_path(path)}   {size(sizes[path])}"
        print(without_commands(line), file=sys.stderr)
    what = "this run" if len(paths) == 1 else f"these {len(paths)} runs"
    if not typer.confirm(f"Delete {what}?", err=True):
        print("nothing is deleted", file=sys.stderr)
        leave(1)


# -- the command -----------------------------------------------------------------------------------


EXAMPLE = "runs pendulum finished --sort result"


def command(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD…]",
            help="Words that name, experiment, board or state must contain. Or: compare RUN …, "
            "rename RUN NAME, or delete RUN …",
        ),
    ] = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help=f"By: {', '.join(ORDERS)}.")
    ] = "when",
    members: Annotated[
        bool, typer.Option("--members", help="List each run of a group as well.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="RETURN", help="With compare: say when the runs reach this return."),
    ] = None,
    takes_any: Annotated[
        bool, typer.Option("--any", help="With compare: also runs of different environments.")
    ] = False,
    joins: Annotated[
        bool,
        typer.Option("--join", help="With compare: one row for runs that differ only in seeds."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="With compare: write a page with the curves."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With delete: do not ask.")] = False,
    json_output: Json = False,
) -> None:
    """List the runs.

    `compare` shows a row for each run, and for each variant of a group: the return of the last
    evaluations as interquartile mean with a bootstrap interval over the runs (Agarwal et al. 2021),
    and the probability of a higher return.

    `rename` gives a run or a group another name. `delete` removes the files of runs and groups,
    after a question, and leaves all other files. Both refuse a run in training.
    """
    given = words or []
    first = given[0] if given else ""
    if first != COMPARE:
        refuse(context, f"without {COMPARE}", "threshold", "takes_any", "joins", "output")
    if first != DELETE:
        refuse(context, f"without {DELETE}", "yes")
    if first in (COMPARE, RENAME, DELETE):
        refuse(context, f"with {first}", "sort", "members")
    if first == COMPARE:
        compare_runs(given[1:], threshold, takes_any, output, json_output, joins)
    elif first == RENAME:
        rename_run(given[1:], json_output)
    elif first == DELETE:
        delete_runs(given[1:], yes, json_output)
    else:
        list_runs(given, sort, members, json_output)

"""Names of runs, and the run that a name means.

And the time as names and files say it, always in UTC: what comes later also sorts later.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rltools_host.errors import UsageError, unknown_name
from rltools_host.files import disk_error, load_json
from rltools_host.tree import PROJECT, near_path, quoted

RUN_FILE = "run.json"
GROUP_FILE = "group.json"  # of a folder of runs
LATEST = "latest"
LAST, BEST = WHICH = ("last", "best")  # of a run's policies
# What commands leave beside run.json: flights through a gate, one with its page, `rlt hil`.
GATE, FLIGHT, HIL = "gate", "flight", "hil"
RESULT_FILE = re.compile(rf"(?:{GATE}|{FLIGHT}|{HIL})-.+\.json|{FLIGHT}-.+\.html")
BEGUN = "begun_us"  # in both, since 1970
SHOWN = 5  # of the names that there are
NUMBER = re.compile(r"([0-9]{1,18})")


def result_file(kind: str, name: str, suffix: str = ".json") -> str:
    """Return the file of a gate's or a board's result; `*` for all of them."""
    return f"{kind}-{name}{suffix}"


def find_run(run: str | Path) -> Path:
    """Return the folder of a run; UsageError if there is none.

    `run` is a path, a name under runs/, or `latest`, the newest run in the folder before it:
    `latest` and `runs/latest` are that of runs/. UsageError if the newest is a group: an older run
    is not what was meant.
    """
    path = Path(run)
    if str(run) and is_run(path):
        return path
    if path.name == LATEST:
        folder = folder_of_latest(path, (RUN_FILE,))
        if names := run_names(folder, (RUN_FILE, GROUP_FILE)):
            if not is_run(folder / names[-1]):
                raise group_instead(folder / names[-1])
            return folder / names[-1]
        raise UsageError(f"there is no run in {folder}: train one first, or name its folder")
    if str(run):
        for candidate in (PROJECT.runs / path, PROJECT.root / path):
            if is_run(candidate):
                return candidate
        if (group := find_group(run)) is not None:
            raise group_instead(group)
    raise unknown_name("run", str(run), run_names(PROJECT.runs), last=SHOWN)


def find_group(name: str | Path) -> Path | None:
    """Return the folder of a group; None if the name is a run's, or unknown.

    `latest` is a group if the newest of runs and groups is one.
    """
    path = Path(name)
    if not str(name):
        return None
    if path.name == LATEST and not is_group(path):
        files = (RUN_FILE, GROUP_FILE)
        folder = folder_of_latest(path, files)
        path = folder / run_names(folder, files)[-1] if run_names(folder, files) else path
    candidates = (path, PROJECT.runs / path, PROJECT.root / path)
    return next((candidate for candidate in candidates if is_group(candidate)), None)


def folder_of_latest(path: Path, files: Sequence[str]) -> Path:
    folder = path.parent
    is_runs = folder == Path(PROJECT.runs.name) and not run_names(folder, files)
    return PROJECT.runs if folder == Path() or is_runs else folder


def is_run(path: Path) -> bool:
    return os.path.exists(path / RUN_FILE)


def is_group(path: Path) -> bool:
    return os.path.exists(path / GROUP_FILE)


def group_instead(group: Path) -> UsageError:
    """Return the error for a group where one run is asked for."""
    return UsageError(f"{near_path(group)} is a group of runs: name one of them{example_of(group)}")


def of_one_run(option: str, group: Path) -> UsageError:
    """Return the error for an option that a group cannot have."""
    return UsageError(
        f"{option} is of one run, and {near_path(group)} is a group: name a run of it"
        f"{example_of(group)}"
    )


def example_of(group: Path) -> str:
    """Return a clause with a run of the group."""
    for found in sorted(group.rglob(RUN_FILE)):
        return f", such as {quoted(near_path(found.parent))}"
    return ""


def run_names(folder: Path, files: Sequence[str] = (RUN_FILE,)) -> list[str]:
    """Return the names of the runs in a folder, in the order in which they began."""
    found = []
    for path in (found for file in files for found in folder.glob(f"*/{file}")):
        with contextlib.suppress(OSError):  # removed meanwhile
            found.append((begun_us(path), path.parent.name))
    found.sort(key=lambda entry: (entry[0], in_numbers(entry[1])))
    return [*dict.fromkeys(name for _, name in found)]


def begun_us(path: Path) -> int:
    """Return when the run or group of this file began, in microseconds since 1970; where it does
    not say, when the file was written."""
    try:
        document = load_json(path, path.parent)
    except (OSError, ValueError):
        document = None
    stated = document if isinstance(document, dict) else {}
    begun = stated.get(BEGUN)
    if isinstance(begun, int) and not isinstance(begun, bool) and 0 <= begun <= LAST_US:
        return begun
    return path.stat().st_mtime_ns // 1000


def begun_us_now(path: Path) -> int:
    """Return the time in microseconds, later than the beginning of every run and group beside this
    one, also if the clock was set back."""
    last = -1
    for file in (RUN_FILE, GROUP_FILE):
        for other in path.parent.glob(f"*/{file}"):
            with contextlib.suppress(OSError):
                last = max(last, begun_us(other))
    return min(max(now_us(), last + 1), LAST_US)


def in_numbers(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which `run-2` comes before `run-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(name)]


def require_empty(path: Path) -> None:
    """Raise UsageError unless `path` does not exist or is an empty folder."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is not a folder: choose another with --out")
    if path.is_dir() and any(path.iterdir()):
        remedy = (
            f", or resume the run with --resume {quoted(path)}"
            if is_run(path) or is_group(path)
            else ""
        )
        raise UsageError(f"{path} is not empty: choose another folder with --out{remedy}")


def make_empty(path: Path) -> None:
    """Create the folder; UsageError if it is not empty, DiskError if it cannot be created."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        pass  # no folder: `require_empty` says so
    except OSError as error:
        raise disk_error(path, error) from None
    require_empty(path)


def new_run_path(name: str) -> Path:
    """Create the folder `runs/<name>`, or `runs/<name>-2` and so on if it exists."""
    path = PROJECT.runs / name
    for number in itertools.count(2):
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:
            path = PROJECT.runs / f"{name}-{number}"
        except OSError as error:
            raise disk_error(path, error) from None
    return path


# -- the time --------------------------------------------------------------------------------------

LAST_US = 2**53 - 1  # in 2255; every reader of JSON has it exactly


def timestamp(precision: str = "seconds") -> str:
    """Return `2026-11-23T17:05:00+00:00`."""
    return datetime.now(UTC).isoformat(timespec=precision)


def date() -> str:
    """Return `2026-11-23`."""
    return datetime.now(UTC).date().isoformat()


def folder_date() -> str:
    """Return `20261123-170500`, with which the name of a run's folder begins."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}"


def minute(moment_us: int) -> str:
    """Return `2026-11-23 17:05`, for microseconds since 1970."""
    return f"{datetime.fromtimestamp(moment_us / 1_000_000, UTC):%Y-%m-%d %H:%M}"


def now_us() -> int:
    """Return microseconds since 1970."""
    return time.time_ns() // 1000


def microseconds_of(stamp: str) -> int:
    """Return the microseconds since 1970 of a `timestamp`, which is UTC if it has no offset;
    ValueError if it is none."""
    moment = datetime.fromisoformat(stamp)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)

"""Which tests run.

Tests marked `all` run with `--all` only, as with `rlt test --all`; slow, exhaustive and hil ones
with the options of these names.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from rltools_host.build.toolchains import hide_optional_tools, system_tools
from rltools_host.errors import MissingToolError
from rltools_host.tree import MARKER, PROJECT, TREE, VARIABLE, Tree

OPT_IN = {
    "slow": "takes minutes: full training runs on the emulated board",
    "exhaustive": "goes through all floats, or through many seeds",
    "hil": "needs a real board, connected",
}
FOLDER = Path(__file__).parent
os.environ.pop(VARIABLE, None)  # the tests' project is the checkout
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a worker for each processor already
hide_optional_tools()  # where RLT_HIDE_OPTIONAL says so
ALL = "all"
ONLY_WITH = "only with"  # begins the reason why a test of OPT_IN is skipped
# The tests of a whole run that lacked something: `rlt test --rest` runs them with all that it has.
SKIPPED_TESTS = PROJECT.build / "skipped_tests.txt"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        f"--{ALL}", action="store_true", help="also what `rlt test` leaves to `rlt test --all`"
    )
    parser.addoption(
        "--rest",
        action="store_true",
        help="only what --all adds, and what the last run of all others had to skip",
    )
    for marker, description in OPT_IN.items():
        parser.addoption(
            f"--{marker}",
            action="store_true",
            help=f"also run tests marked {marker}: {description}",
        )


def pytest_configure(config: pytest.Config) -> None:
    for marker, description in OPT_IN.items():
        config.addinivalue_line("markers", f"{marker}: {description}; only with --{marker}")
    config.addinivalue_line("markers", f"{ALL}: for `rlt test --all`; only with --{ALL}")
    # How long an example takes depends on who else has the processors.
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("rlt", deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("rlt")
    # Tests press Ctrl-C and close terminals. A shell that starts them in the background, or nohup,
    # ignores that, and so would they and the programs that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays: to look for garbage in it takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Not item.keywords, which has the names of folders as well.
    rest, chosen = config.getoption("--rest"), items[:]
    if rest:
        skipped = set(SKIPPED_TESTS.read_text().splitlines()) if SKIPPED_TESTS.is_file() else set()
        chosen = [
            item
            for item in items
            if item.get_closest_marker(ALL) is not None
            or not skipped.isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))
        ]
    elif not config.getoption(f"--{ALL}"):
        chosen = [item for item in items if item.get_closest_marker(ALL) is None]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen
    for marker in OPT_IN:
        if config.getoption(f"--{marker}"):
            continue
        skip = pytest.mark.skip(reason=f"{ONLY_WITH} --{marker}")
        for item in items:
            if item.get_closest_marker(marker) is not None:
                item.add_marker(skip)
    if hasattr(config, "workerinput"):
        begin_with_the_longest(items)


def begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Put the files with the longest limit of a test first, then those with most tests: at the end
    no worker has a long file while the others have none."""
    limits: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for item in items:
        file = item.nodeid.partition("::")[0]
        numbers[file] += 1
        limit = item.get_closest_marker("timeout")
        if limit is not None and item.get_closest_marker("skip") is None:
            limits[file] = max(limits[file], limit.args[0])

    def rank(item: pytest.Item) -> tuple[float, int]:
        file = item.nodeid.partition("::")[0]
        return -limits[file], -numbers[file]

    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Note which tests a run of all of them skipped because this machine lacks something."""
    if config.args != ["tests"] or config.option.keyword or config.getoption("--rest"):
        return
    skipped = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", ())
        if not report.longrepr[2].startswith(f"Skipped: {ONLY_WITH}")
    ]
    SKIPPED_TESTS.parent.mkdir(exist_ok=True)
    SKIPPED_TESTS.write_text("".join(f"{name}\n" for name in skipped))


TOOLS = system_tools().values()
MISSING = {tool.name for tool in TOOLS if tool.path() is None or tool.is_stood_in}
IS_BARE = any(t.name in MISSING and not t.optional and not t.is_of_group for t in TOOLS)


def skip_where_missing(error: MissingToolError | FileNotFoundError) -> None:
    """Skip a test that ends with the name of a tool that this machine lacks: one of the table, or
    on a machine that lacks what `rlt test` installs elsewhere, any program."""
    if isinstance(error, MissingToolError):
        lacked = [n for n in MISSING if re.search(rf"(?<!\S){re.escape(n)}(?![\w+])", str(error))]
    else:
        program = str(error.filename)
        is_lacked = program in MISSING or (IS_BARE and "/" not in program)
        lacked = [program] if is_lacked and shutil.which(program) is None else []
    if lacked:
        pytest.skip(f"{', '.join(sorted(lacked))} not found")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    try:
        return (yield)
    except (MissingToolError, FileNotFoundError) as error:
        skip_where_missing(error)
        raise


pytest_runtest_call = pytest_runtest_setup  # a hook has the name under which pytest finds it


@pytest.fixture
def move_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Puts a folder, a copy of the sources, in the place of this checkout."""

    def move(folder: Path) -> None:
        monkeypatch.setattr(Tree, "virtual_environment", TREE.virtual_environment)
        monkeypatch.setattr(TREE, "root", folder)
        monkeypatch.setattr(PROJECT, "root", folder)

    return move


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project of the test's own, elsewhere than the tree."""
    root = tmp_path / "a project"
    root.mkdir()
    (root / MARKER).touch()
    monkeypatch.setattr(PROJECT, "root", root)
    return root


@pytest.fixture
def project_in_tree() -> Iterator[Path]:
    """An empty project within the checkout."""
    PROJECT.build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="project-", dir=PROJECT.build) as folder:
        (Path(folder) / MARKER).touch()
        yield Path(folder)


@pytest.fixture(scope="session")
def doctest_main(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object with doctest's own code, for programs that tests compile: it takes the compiler
    as long as most of them, and with the sanitizers, which it is without, three times as long."""
    from programs import output_of  # this file is also copied without the folder of it

    folder = tmp_path_factory.mktemp("doctest")
    source, target = folder / "main.cpp", folder / "main.o"
    source.write_text("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n")
    output_of("g++", "-std=c++17", "-c", source, "-o", target)
    return target

"""Each command in README.md and docs/ is one that there is, with names of this tree; those of code
blocks run, or the reason why they do not is stated here. Tutorials are run by themselves
(tests/host/commands/test_docs.py), and the reference is written."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from command_lines import problem
from programs import in_project
from rltools_host.build.boards import list_boards
from rltools_host.build.experiments import list_experiments
from rltools_host.build.tools import missing_names
from rltools_host.policies.export import FORMATS
from rltools_host.policies.folders import FOLDERS
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.tree import MARKER, PROJECT, TREE

DOCUMENTS = (
    TREE.root / "README.md",
    *(
        path
        for path in sorted((TREE.root / "docs").rglob("*.md"))
        if not {"tutorials", "reference"} & set(path.parts)
    ),
)
TUTORIALS = sorted((TREE.root / "docs" / "tutorials").glob("*.md"))
CELL = re.compile(r'^(?:\w+ = )?%rlt (?:--fails "[^"\n]*" )?(.+)$', re.MULTILINE)
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`(?:\./)?rlt ([^`]+)`")
CALL = re.compile(r"(?:\./)?rlt ")
PLACEHOLDER = re.compile(r"[A-Z][A-Z.\d_a-z]*|.*[…<].*|ID")  # RUN, FILE.csv, <board>
MADE = ("ball-on-beam",)  # by `rlt new`, in these documents
DESCRIBED = ("my-board",)  # by the reader


def lines_of(document: Path) -> list[str]:
    """The command lines of its blocks, without comments."""
    found = []
    for kind, body in BLOCK.findall(document.read_text(encoding="utf-8")):
        for line in body.replace("\\\n", " ").splitlines():
            text = line.removeprefix("$ ")
            if text.strip() and (kind == "sh" or text != line):
                found.append(shlex.join(shlex.split(text, comments=True)))
    return [line for line in found if line]


def quoted_in(document: Path) -> list[str]:
    """What stands in backticks."""
    return [" ".join(each.split()) for each in QUOTED.findall(document.read_text(encoding="utf-8"))]


@cache
def sources_of_tests() -> str:
    """Paths and texts of all tests."""
    paths = [path for path in (TREE.root / "tests").rglob("*") if path.suffix in (".py", ".cpp")]
    return "\n".join(f"{path}\n{path.read_text(encoding='utf-8')}" for path in paths)


@cache
def names() -> dict[str, set[str]]:
    """What may stand behind an option."""
    boards = {board.name for board in list_boards()} | {"all-emulated", "crazyflie", *DESCRIBED}
    return {
        "--board": boards,
        "--gate": {path.stem.replace("_", "-") for path in TREE.experiments.glob("gates/*.json")},
        "study": {
            "NAME",
            *(path.stem.replace("_", "-") for path in TREE.experiments.glob("studies/*.json")),
        },
        "experiment": {*list_experiments(), *MADE},
        "--to": {*FORMATS, *FRAMEWORK_FORMATS, *FOLDERS, *FRAMEWORK_FOLDERS},
    }


def unknown_names(words: list[str]) -> Iterator[str]:
    known = names()
    for option, value in pairwise(words):
        if option in known and not PLACEHOLDER.fullmatch(value) and value not in known[option]:
            yield f"{shlex.join(words)}: there is no {option} {value}"
        if option == "-k" and value not in sources_of_tests():
            yield f"{shlex.join(words)}: no test has {value}"
    if words[0] in ("train", "check") and len(words) > 1 and not words[1].startswith(("-", "gym:")):
        name = words[1]
        if not PLACEHOLDER.fullmatch(name) and name not in known["experiment"]:
            yield f"{shlex.join(words)}: there is no experiment {name}"
    if words[0] == "study" and not {*words[1:2]} <= known["study"]:
        yield f"{shlex.join(words)}: there is no such study"
    for word in words:
        file, _, name = word.partition(":")  # and a function of it
        path = TREE.root / file
        is_there = path.exists() and (not name or f"def {name}(" in path.read_text())
        if word.startswith("examples/") and not is_there:
            yield f"{shlex.join(words)}: there is no {word}"


# What the mention of a command, or of an option, leaves out.
LEFT_OUT = re.compile(r": (Missing parameter|Option '[-\w]+' requires an argument|Missing command)")


def complaints(line: str, is_whole: bool = True) -> list[str]:
    """is_whole: it is to be typed as it stands."""
    words = ["1" if word == "N" else word for word in shlex.split(line)]
    if words[:1] == ["--yes"]:  # of ./rlt itself
        del words[0]
    if words in (["…"], ["bench"]):
        return []
    found = problem(words)
    if found is not None and not is_whole and LEFT_OUT.search(found):
        found = None
    return [*([found] if found else []), *unknown_names(words)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_are_those_that_there_are(document: Path) -> None:
    lines = [CALL.sub("", line, count=1) for line in lines_of(document) if CALL.match(line)]
    found = [text for line in lines for text in complaints(line)]
    found += [text for line in quoted_in(document) for text in complaints(line, is_whole=False)]
    assert found == []


def test_commands_of_tutorials_are_those_that_there_are() -> None:
    """Most tutorials are executed with --slow only."""
    lines = {path.stem: CELL.findall(path.read_text(encoding="utf-8")) for path in TUTORIALS}
    assert sum(map(len, lines.values())) >= 30
    assert [text for found in lines.values() for line in found for text in complaints(line)] == []


def test_a_command_that_there_is_not_is_noticed() -> None:
    for line in (
        "trian pendulum-td3",
        "train pendulum-td3 --sedes 0-9",
        "train pendulum-td4 --board host",
        "train pendulum-td3 --board teensy99",
        "evaluate RUN --gate hovering",
        "evaluate RUN --episodes many",
        "export RUN --to onxx",
        "fit examples/fit/none.csv",
        "bench layers",
        "bench vertical --step 300",
        f"test -k no_test_{'has'}_this",
    ):
        assert complaints(line), line
    assert complaints("train pendulum-td3 --board host --seeds 0-9") == []


# What runs, in the order of each list, in a project of its own; words behind a line make it short.
SHORT = ("--steps", "300")
FEW = ("--episodes", "4")
TRAIN_OVEN = "./rlt train gym:experiments/slow_oven.py:SlowOven"
OVEN = ("--set", "learning_starts=100", "--set", "hidden=8")  # and the line's own steps
SESSIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "pendulum": {
        "./rlt check pendulum-td3": (),
        "./rlt doctor": (),
        "./rlt train pendulum-td3": (),
        "./rlt evaluate latest --in gymnasium": (),
        "./rlt push latest --board host": (),
        "./rlt train pendulum-td3 --board qemu-cortex-m7 --steps 300": (),
        "./rlt train pendulum-td3 --steps 300 --seed 0": (),
    },
    "ball-on-beam": {
        "./rlt new ball-on-beam --contract": (),
        "./rlt train ball-on-beam": SHORT,
        "./rlt evaluate latest": FEW,
        "./rlt report latest": (),
        "./rlt check ball-on-beam": (),
        "./rlt train ball-on-beam --out runs/ball": SHORT,
        "./rlt evaluate runs/ball --against random": FEW,
        "./rlt report runs/ball": (),
        "./rlt train ball-on-beam --seeds 0-2": SHORT,
        "./rlt push runs/ball --board host": (),
        "./rlt export runs/ball --to c": (),
    },
    "slow-oven": {
        "./rlt new slow-oven --gymnasium": (),
        f"{TRAIN_OVEN} --algorithm xqc --out runs/oven --steps 5000": OVEN,
        "./rlt evaluate runs/oven --against zero": FEW,
    },
    "fit": {"./rlt fit examples/fit/flight.csv": ()},
}
SHORTENED = {line for session in SESSIONS.values() for line in session}
EMULATED = "./rlt train pendulum-td3 --board qemu-cortex-m7 --steps 300"
NEEDS = ["arm-none-eabi-g++", "qemu-system-arm"]

LONGER = "seconds to minutes of training or flights; with fewer steps the figure is another one: "
ON_GPU = "a GPU is needed; tests/host/training/test_gpu_runs.py has a stand-in for its driver"
ELSEWHERE = "what the reader has is named: a log, a module, a file, a board"
REASONS = {
    "./rlt demo": "tests/host/commands/test_demo.py tells it with --quick",
    "./rlt test": "it is what runs this",
    "./rlt hil --board qemu-cortex-m7": "tests/device/test_hil_on_boards.py runs it",
    "./rlt hil --run runs/ball --board qemu-cortex-m7": "the same, with a firmware to build",
    "./rlt train ball-on-beam --board qemu-cortex-m7 --steps 130": "test_next_steps.py",
    "./rlt train crazyflie-ppo": f"{LONGER}docs/tutorials/a_drone.md trains it",
    "./rlt evaluate latest --gate hover-nominal": f"{LONGER}docs/tutorials/a_drone.md",
    "./rlt fly latest --board qemu-stm32f405": f"{LONGER}docs/tutorials/a_drone.md",
    ".venv/bin/python examples/gymnasium_task/servo.py": "tests/examples runs it",
    "./rlt fit LOG --mass 0.0306 --rotors 0.028 0.028 --out drone.json": ELSEWHERE,
    "./rlt fit flight.ulg": ELSEWHERE,
    "./rlt fit LOG.csv --mass 0.031 --rotors 0.028 0.028 --out drone.json": ELSEWHERE,
    "./rlt train quadrotor-ppo --set-file drone.json": ELSEWHERE,
    "./rlt train quadrotor-ppo --set-file drone.json --set spread=0.1": ELSEWHERE,
    "./rlt train gym:my_module:MyTask-v0": ELSEWHERE,
    "./rlt train gym:path/to/my_task.py:MyTask --channels channels.json": ELSEWHERE,
    "./rlt train pendulum-td3 --board '<board>' --steps 300 --seed 0": ELSEWHERE,
    "./rlt train gym:Pendulum-v1 --seeds 0-3": "tests/host/test_next_steps.py trains it shorter",
    "./rlt evaluate RUN --against zero": "tests/host/policies/test_evaluate.py has baselines",
    "./rlt evaluate RUN --against examples/gymnasium_task/plants.py:hold_level": (
        "the same; tests/examples plays the controller"
    ),
    "./rlt train gym:CartPole-v1": "tests/host/environments trains tasks with choices",
    "./rlt train gym:HalfCheetah-v5 --algorithm sac --set hidden=256,256": LONGER,
    "./rlt train foundation-quadrotor": LONGER,
    "./rlt evaluate latest --gate any-airframe": LONGER,
    "./rlt train quadrotor-ppo --set airframe=8 --steps 20000000": LONGER,
    "./rlt evaluate latest --gate hover": LONGER,
    "./rlt train quadrotor-wind-ppo": LONGER,
    "./rlt evaluate latest --gate steady-wind": LONGER,
    "./rlt adapt examples/fit/flight.csv --board qemu-stm32f405": "commands/test_adapt.py",
    "./rlt train quadrotor-ppo --set airframe=6": LONGER,
    "./rlt train pendulum-td3 --board cuda --seeds 0-1023": ON_GPU,
    "./rlt tune pendulum-td3 --board cuda --trials 1000 --jobs 256": ON_GPU,
    "./rlt fly latest --px4 udp:127.0.0.1:18570 --starts 8": "PX4's tree is needed",
}


def test_each_line_runs_or_says_why_not() -> None:
    lines = {line for document in DOCUMENTS for line in lines_of(document)}
    known = SHORTENED | {*REASONS}
    assert lines - known == set()
    assert known - lines == set()  # of earlier documents
    assert SHORTENED & {*REASONS} == set()


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "session",
    [
        # The lines of a guide, which test_your_environment.py follows.
        pytest.param(name, marks=pytest.mark.slow) if name in MADE else name
        for name in SESSIONS
    ],
)
def test_lines_of_the_documents_run(session: str) -> None:
    can_emulate = not missing_names(NEEDS)
    PROJECT.build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reader-", dir=PROJECT.build) as place:
        folder = Path(place)
        (folder / MARKER).touch()
        shutil.copytree(TREE.root / "examples/fit", folder / "examples/fit")
        for line, more in SESSIONS[session].items():
            if line != EMULATED or can_emulate:
                words = [*shlex.split(CALL.sub("", line, count=1)), *more]
                in_project(folder, "-m", "rltools_host", *words)

"""`rlt demo`: trains here, begins the same run on an emulated board, and finishes that one here.

Both end in the same state, to the last bit. The board's part is left out where a tool for it is
missing, with a line that names the tool.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from rltools_host.build import cmake, experiments, firmware, tools
from rltools_host.build.boards import Board, load_board
from rltools_host.build.toolchains import system_tools
from rltools_host.commands.options import Json
from rltools_host.errors import Interrupted, MissingToolError, RefusedError, UsageError
from rltools_host.files import disk_error
from rltools_host.lines import columns, wrapped
from rltools_host.policies import evaluation
from rltools_host.policies.image import read_run_policy
from rltools_host.report.markup import duration
from rltools_host.report.page import write_report as write_report_of
from rltools_host.runs.folder import RunFolder
from rltools_host.screen.training_screen import make_screen
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import PausingScreen, Screen, TrainingView
from rltools_host.training.run import train
from rltools_host.tree import MARKER, command_line, in_project, near_path, quoted

EXPERIMENT = "pendulum-td3"
EMULATED_BOARD = "qemu-cortex-m7"
PORTABLE_BOARD = "unicorn-cortex-m7"  # the same, by an emulator from PyPI
HOST_BOARD = "host"
SEED = 0
EPISODES = 100
QUICK_STEPS = 1000
OWN_PROJECT = "rlt-demo"  # where the demo is called outside of a project
PAUSE_AT = 300
OF_A_RUN = ("run", "experiment", "board", "seed", "steps", "train_s", "steps_per_s", "state_sha256")

COLUMNS = 80


@dataclass
class Story:
    """The state that the steps share."""

    board: Board
    steps: int | None  # None: the experiment's own
    here: bool  # whether this machine trains too
    whole: bool  # whether the board trains to the end, or is paused on the way
    stream: TextIO
    workers: ThreadPoolExecutor
    left_out: str = ""  # the reason
    firmware: Future[Path] | None = None  # which is built in the background
    paused: dict[str, Any] = field(default_factory=dict)  # the board's run
    document: dict[str, Any] = field(default_factory=dict)
    project: Path | None = None  # that was created for the demo
    number: int = 0  # of the step

    def begin(self, step: str) -> None:
        self.number += 1
        heading = emphasized(f"[{self.number}] {step}", self.stream)
        print(f"\n{heading}", file=self.stream, flush=True)

    def say(self, line: str) -> None:
        width = min(COLUMNS, columns(self.stream))
        print("\n".join(wrapped(line, width, " " * 4, " " * 6)), file=self.stream, flush=True)

    @property
    def board_name(self) -> str:
        return "an emulated microcontroller" if self.board.emulator else self.board.name

    def request(self, board: Board) -> TrainingRequest:
        return TrainingRequest(EXPERIMENT, board.name, SEED, self.steps)


def run(
    json_output: bool = False,
    board: str | None = None,
    quick: bool = False,
    whole: bool = False,
) -> dict[str, Any]:
    """Run all steps and return the keys that `--json` prints."""
    began = time.monotonic()
    folder = None if in_project() else own_project()
    chosen = default_board() if board is None else load_board(board)
    if chosen.is_flashed:
        raise UsageError(
            f"the demo runs on emulated boards and on this machine, not on {chosen.name}: flash "
            f"that one with `{command_line('flash', chosen.name, EXPERIMENT)}`, then train there "
            f"with `{command_line('train', EXPERIMENT, '--board', chosen.name)}`"
        )
    here = chosen.name != HOST_BOARD
    stream = sys.stderr if json_output else sys.stdout
    with ThreadPoolExecutor(1) as workers:
        whole = whole or not here or chosen.emulator is None
        story = Story(chosen, QUICK_STEPS if quick else None, here, whole, stream, workers)
        story.project = folder
        if folder is not None:
            story.say(f"this folder is in no project: the demo is in {folder}")
        tell(story)
    story.document["left_out"] = story.left_out or None
    story.document["seconds"] = time.monotonic() - began
    close(story)
    if json_output:
        print(json.dumps(story.document), flush=True)
    return story.document


def default_board() -> Board:
    """Return the Cortex-M7 in QEMU where QEMU is installed or may be, else the one in Unicorn."""
    board = load_board(EMULATED_BOARD)
    assert board.emulator is not None
    is_missing = bool(tools.missing_names([board.emulator.program]))
    return load_board(PORTABLE_BOARD) if is_missing and tools.apt_prefix() is None else board


def own_project() -> Path:
    """Create a project for the demo in the current folder, and go there; return its path."""
    folder = Path(OWN_PROJECT)
    try:
        folder.mkdir(exist_ok=True)
        (folder / MARKER).touch()
    except OSError as error:
        raise disk_error(folder, error) from None
    os.chdir(folder)
    return folder


def tell(story: Story) -> None:
    """Run the steps, each of which may change the later ones; print to the story's stream."""
    with contextlib.redirect_stdout(story.stream):
        look_for_tools(story)
        story.begin("Train on this machine")
        if not story.here:
            train_on_board(story)
            prove_policy(story)
        else:
            train_here(story)
        evaluate_policy(story)
        write_report(story)
        if story.left_out:
            explain(story)
        elif story.here:
            story.begin(f"Train the same on {story.board_name}")
            train_on_board(story)
            prove_policy(story)
            if not story.whole:
                finish_here(story)
            compare(story)


def emphasized(text: str, stream: TextIO) -> str:
    """Return the text in bold on a terminal."""
    return f"\033[1m{text}\033[0m" if stream.isatty() else text


def found_as(name: str) -> str:
    """Return a tool's name, or that of what stands in for it."""
    tool = system_tools()[name]
    return Path(tool.stand_in).name if tool.is_stood_in else name


def look_for_tools(story: Story) -> None:
    """Install the compiler of this machine, where the wheel did not bring the programs.

    Leave the board's part out where a tool for it is missing, unless only the board trains.
    """
    story.begin("Look for the tools")
    host = load_board(HOST_BOARD)
    program = cmake.firmware_target(EXPERIMENT)
    names = dict.fromkeys(cmake.required_tools(host, [program, f"describe-{EXPERIMENT}"]))
    tools.require(*names)
    of_board = cmake.required_tools(story.board, [program], to_run=True)
    try:
        tools.require(*of_board)
        names |= dict.fromkeys(of_board)
    except MissingToolError as error:
        if not story.here:
            raise
        story.left_out = str(error)
    if found := dict.fromkeys(map(found_as, names)):
        story.say(f"found {', '.join(found)}")
    if not names.keys() >= {*cmake.required_tools(host)}:
        story.say("the programs came with the wheel, as there is no compiler")
        return
    story.say("the rest takes about a minute of two processors, and some more to compile once")


def build_in_background(story: Story) -> None:
    targets = [cmake.firmware_target(EXPERIMENT)]
    build = lambda: cmake.build_targets(story.board, targets, announcement="")  # noqa: E731
    story.firmware = story.workers.submit(build)


def train_here(story: Story) -> None:
    host = load_board(HOST_BOARD)
    experiments.describe(EXPERIMENT, host)  # builds the training program beside
    if not story.left_out:
        build_in_background(story)
    document: Mapping[str, Any] = train(story.request(host), screen_on(story))
    story.say(f"{document['steps']:,} steps in {document['train_s']:.2f} s")
    story.say(f"state {document['state_sha256']}")
    story.document |= {name: document[name] for name in OF_A_RUN}
    story.document |= {
        "host_run": document["run"],
        "host_state_sha256": document["state_sha256"],
        "host_train_s": document["train_s"],
    }


def screen_on(story: Story) -> Callable[[TrainingView], Screen]:
    return lambda view: make_screen(view, story.stream)


def train_on_board(story: Story) -> None:
    """Train to the end, or pause as after Ctrl-C."""
    if story.firmware is not None:
        story.firmware.result()
    program = firmware.build_firmware(story.board, EXPERIMENT)
    usage = firmware.memory_usage(story.board, program)
    for line in firmware.memory_lines(usage):
        story.say(line.strip())
    if story.board.emulator is not None:
        story.say(f"{story.board.title}, over a serial port; {program.name} is all it runs")
    if not story.whole:
        story.say(f"it is paused after {PAUSE_AT} steps, as by Ctrl-C")
    pausing: list[PausingScreen] = []

    def make(view: TrainingView) -> Screen:
        screen = screen_on(story)(view)
        if story.whole:
            return screen
        pausing.append(PausingScreen(screen, PAUSE_AT))
        return pausing[0]

    try:
        document: Mapping[str, Any] = train(story.request(story.board), make)
        story.whole = True  # it finished before the pause
    except Interrupted as error:
        if not (pausing and pausing[0].has_asked and "step" in error.details):
            raise
        document = story.paused = error.details
        story.say(f"paused at step {document['step']:,} of {document['steps']:,}, and saved here")
    if document["guest_instructions"]:
        story.say(f"{document['guest_instructions']:,} guest instructions")
    story.document |= {name: document[name] for name in OF_A_RUN}
    story.document["board_steps"] = document["step"]


def prove_policy(story: Story) -> None:
    story.begin("Take the policy home and prove it")
    image = read_run_policy(RunFolder.open(story.document["run"]))
    image.verify()
    story.say(
        f"policy.rltp: {len(image.data):,} bytes, network {image.shape}, checksum and state agree"
    )
    story.say(f"its {len(image.examples)} examples give the board's bits here too, layer by layer")
    story.document["examples_reproduced"] = len(image.examples)


def finish_here(story: Story) -> None:
    story.begin("Finish that run here")
    run_path, step = story.paused["run"], story.paused["step"]
    command = ("train", "--board", HOST_BOARD, "--resume", near_path(Path(run_path)))
    story.say(command_line(*command))
    document: Mapping[str, Any] = train(TrainingRequest(board=HOST_BOARD, resume=run_path), Screen)
    story.say(f"from the board's step {step:,} to {document['steps']:,}")
    story.document |= {name: document[name] for name in OF_A_RUN if name != "board"}


def compare(story: Story) -> None:
    """Raise RefusedError unless both trainings ended in the same state."""
    story.begin("Compare")
    ours, theirs = story.document["host_state_sha256"], story.document["state_sha256"]
    name = story.board.name
    begun = name if story.whole else f"{name}, then {HOST_BOARD}"
    steps = story.document["steps"]
    story.say(f"weights, optimizer moments and replay buffer after {steps:,} steps:")
    for board_name, digest in ((HOST_BOARD, ours), (begun, theirs)):
        story.say(f"{board_name}:")
        story.say(f"  {digest}")
    if ours != theirs:
        raise RefusedError(
            f"{name} and {HOST_BOARD} end in different states for seed {SEED}: one of "
            f"them computes wrongly, run `{command_line('test')}`"
        )
    story.say("the same bits")
    story.document["same_bits"] = True


def evaluate_policy(story: Story) -> None:
    story.begin("Evaluate it in gymnasium, the reference simulator")
    run_path = story.document["run"]
    image = read_run_policy(RunFolder.open(run_path))
    result = evaluation.evaluate_policy(image, run_path, EPISODES, 0, evaluation.GYMNASIUM)
    for line in result.lines():
        story.say(line)
    if story.steps is not None:
        story.say(f"after {story.steps:,} steps only: leave out --quick for a policy that works")
    story.document |= {
        "episodes": result.episodes,
        "return_mean": result.mean,
        "return_std": result.std,
        "success_rate": result.success_rate,
    }


def write_report(story: Story) -> None:
    story.begin("Write the report")
    story.document["report"] = str(write_report_of(story.document["run"]))
    story.say("learning curve, an episode, memory, timings, provenance: one file, no network")


def explain(story: Story) -> None:
    story.begin(f"Left out: the same on {story.board_name}")
    reason, _, line = story.left_out.rpartition(": ")
    story.say(f"{reason}:")
    print(f"      {line}", file=story.stream, flush=True)  # whole, to be copied
    story.say(f"then `{command_line('demo')}` begins this run there and finishes it here")


def close(story: Story) -> None:
    """Print the report and the state at the end."""
    document = story.document
    lines = [
        "",
        f"Done in {duration(document['seconds'])}. Next, for example:",
        *([] if story.project is None else [f"    cd {quoted(story.project)}"]),
        f"    {command_line('train', EXPERIMENT, '--seed', '1')}",
        f"    {command_line('export', near_path(Path(document['run'])), '--to', 'c')}",
        "",
        emphasized(f"The report: {near_path(Path(document['report']))}", story.stream),
        emphasized(f"The state: {document['state_sha256']}", story.stream),
    ]
    print("\n".join(lines), file=story.stream, flush=True)


EXAMPLE = "demo --quick"


def command(
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="An emulated board, or host. "
            f"[default: {EMULATED_BOARD}, or without QEMU {PORTABLE_BOARD}]",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Train 1,000 steps only.")] = False,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Train the whole run on the board instead of pausing it."),
    ] = False,
    json_output: Json = False,
) -> None:
    run(json_output, board, quick, whole)

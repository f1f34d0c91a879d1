"""`rlt demo`: the whole story on an emulated board, from nothing to a report, in numbered steps."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from rltools_host.boards.description import Board, load_board
from rltools_host.build import cmake, firmware, memory
from rltools_host.commands import train
from rltools_host.commands.options import Json
from rltools_host.errors import UsageError, VerificationError
from rltools_host.hints import command_line, near_path
from rltools_host.policies import evaluation
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.report.markup import duration
from rltools_host.report.page import write_report as write_report_of
from rltools_host.runs.folder import RunFolder
from rltools_host.toolchain import tools
from rltools_host.training.plan import TrainingRequest

EXPERIMENT = "pendulum-td3"
DEFAULT_BOARD = "qemu-cortex-m7"
HOST_BOARD = "host"
SEED = 0
EPISODES = 100
QUICK_STEPS = 1000


@dataclass
class Story:
    """What the steps know of each other."""

    board: Board
    steps: int | None  # None: the experiment's own
    compare_host: bool
    stream: TextIO
    document: dict[str, Any] = field(default_factory=dict)

    def say(self, line: str = "") -> None:
        print(f"    {line}" if line else "", file=self.stream, flush=True)


@dataclass(frozen=True)
class Step:
    heading: str
    act: Callable[[Story], None]


def run(
    json_output: bool = False,
    board: str = DEFAULT_BOARD,
    quick: bool = False,
    compare_host: bool | None = None,
) -> dict[str, Any]:
    """Tells the story; returns the keys that `--json` prints. Where nobody says whether to compare,
    it is done where there is something to compare."""
    began = time.monotonic()
    chosen = load_board(board)
    if chosen.is_flashed:
        raise UsageError(
            f"the demo runs on emulated boards and on this machine, not on {board}: flash that one "
            f"with `{command_line('flash', board, EXPERIMENT)}`, then train there with "
            f"`{command_line('train', EXPERIMENT, '--board', board)}`"
        )
    comparable = chosen.bit_identical and board != HOST_BOARD
    if compare_host and not comparable:
        raise UsageError(
            f"--compare has no effect with --board {board}: leave it out, another board's bits are "
            "compared with this machine's"
        )
    stream = sys.stderr if json_output else sys.stdout
    compares = comparable and compare_host is not False
    story = Story(chosen, QUICK_STEPS if quick else None, compares, stream)
    tell(story, steps_of(story))
    story.document["seconds"] = time.monotonic() - began
    close(story)
    if json_output:
        print(json.dumps(story.document), flush=True)
    return story.document


def steps_of(story: Story) -> list[Step]:
    where = "the emulated board" if story.board.emulator else "this machine"
    steps = [
        Step("Look for the tools", check_tools),
        Step(f"Build the firmware for {story.board.name}", build_firmware),
        Step(f"Train on {where}", train_on_board),
        Step("Take the policy home and prove it", prove_policy),
        Step("Evaluate it in gymnasium, the reference simulator", evaluate_policy),
        Step("Write the report", write_report),
    ]
    if story.compare_host:
        steps.insert(4, Step("Train the same on this machine and compare", train_on_host))
    return steps


def tell(story: Story, steps: list[Step]) -> None:
    """Runs the steps; what they print goes to the story's stream."""
    with contextlib.redirect_stdout(story.stream):
        for number, step in enumerate(steps, 1):
            heading = f"[{number}/{len(steps)}] {step.heading}"
            print(f"\n{emphasised(heading, story.stream)}", file=story.stream, flush=True)
            step.act(story)


def emphasised(text: str, stream: TextIO) -> str:
    """Bold on a terminal."""
    return f"\033[1m{text}\033[0m" if stream.isatty() else text


def check_tools(story: Story) -> None:
    boards = [story.board, load_board(HOST_BOARD)]
    names = dict.fromkeys(tool for board in boards for tool in cmake.required_tools(board))
    if story.board.emulator is not None:
        names[story.board.emulator.program] = None
    tools.require(*names)
    story.say(f"found {', '.join(names)}")


def build_firmware(story: Story) -> None:
    began = time.time()
    program = firmware.build_firmware(story.board, EXPERIMENT)
    usage = memory.memory_usage(story.board, program)
    if program.stat().st_mtime < began:  # a new build has printed them already
        for line in memory.memory_lines(usage):
            story.say(line.strip())
    story.say(f"{program.name}: experiment and application are the same for every board")
    if usage:
        story.say("exceeding a memory fails the build")


def train_on_board(story: Story) -> None:
    if story.board.emulator is not None:
        story.say(f"{story.board.title}, over a serial port")
    document = train.run(TrainingRequest(EXPERIMENT, story.board.name, SEED, story.steps))
    story.document |= {
        name: document[name]
        for name in ("run", "experiment", "board", "seed", "steps", "train_s", "steps_per_s")
    }
    story.document["state_sha256"] = document["state_sha256"]


def policy_of(story: Story) -> PolicyImage:
    return read_run_policy(RunFolder.open(story.document["run"]))


def prove_policy(story: Story) -> None:
    image = policy_of(story)
    image.verify()
    story.say(
        f"policy.rltp: {len(image.data):,} bytes, network {image.shape}, checksum and state agree"
    )
    story.say(f"its {len(image.examples)} examples give the board's bits here too, layer by layer")
    story.document["examples_reproduced"] = len(image.examples)


def train_on_host(story: Story) -> None:
    """The same seed on this machine must end in the same state, or something computes wrongly."""
    with hidden_output(story):
        document = train.run(TrainingRequest(EXPERIMENT, HOST_BOARD, SEED, story.steps))
    ours, theirs = document["state_sha256"], story.document["state_sha256"]
    names = (story.board.name, HOST_BOARD)
    width = max(map(len, names))
    story.say(f"weights, optimiser moments and replay buffer after {document['steps']:,} steps:")
    for name, digest in zip(names, (theirs, ours), strict=True):
        story.say(f"{name:<{width}}  {digest}")
    if ours != theirs:
        raise VerificationError(
            f"{story.board.name} and {HOST_BOARD} end in different states for seed {SEED}: one of "
            f"them computes wrongly, run `{command_line('test')}`"
        )
    seconds = f"{story.document['train_s']:.0f} s there, {document['train_s']:.1f} s here"
    story.say(f"the same bits ({seconds})")
    story.document |= {
        "host_run": document["run"],
        "host_state_sha256": ours,
        "host_train_s": document["train_s"],
        "same_bits": True,
    }


@contextlib.contextmanager
def hidden_output(story: Story) -> Iterator[None]:
    """Keeps a training screen from the story, unless training fails."""
    hidden = io.StringIO()
    try:
        with contextlib.redirect_stdout(hidden):
            yield
    except BaseException:
        story.stream.write(hidden.getvalue())
        raise


def evaluate_policy(story: Story) -> None:
    image = policy_of(story)
    run_path = story.document["run"]
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
    path = write_report_of(story.document["run"])
    story.document["report"] = str(path)
    story.say("learning curve, an episode, memory, timings, provenance: one file, no network")


def close(story: Story) -> None:
    """Ends by naming the report."""
    seconds = story.document["seconds"]
    lines = [
        "",
        f"Done in {duration(seconds)}. Next, for example:",
        f"    {command_line('train', EXPERIMENT, '--board', 'host', '--seed', '1')}",
        f"    {command_line('export', near_path(Path(story.document['run'])), '--to', 'c')}",
        "",
        emphasised(f"The report: {near_path(Path(story.document['report']))}", story.stream),
    ]
    print("\n".join(lines), file=story.stream, flush=True)


EXAMPLE = "demo --quick"


def command(
    board: Annotated[
        str, typer.Option(metavar="BOARD", help="An emulated board, or host.")
    ] = DEFAULT_BOARD,
    quick: Annotated[bool, typer.Option("--quick", help="Train 1,000 steps only.")] = False,
    compare_host: Annotated[
        bool | None,
        typer.Option(
            "--compare/--no-compare",
            help="Train the same on this machine and compare. [default: where it is another]",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    run(json_output, board, quick, compare_host)

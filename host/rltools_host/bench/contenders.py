"""Who takes part in `rlt bench train` and `ppo`: this repository as users run it, its loop alone,
peers, and what only simulates.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import rltools_host
from rltools_host.bench import harness
from rltools_host.bench.harness import Contender, Row, TakesTurns
from rltools_host.boards.description import load_board
from rltools_host.build import firmware
from rltools_host.policies import evaluation
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.toolchain import tools
from rltools_host.tree import TREE

OURS = "ours"
PEER_LIMIT_S = 1800.0
TERMINAL_SIZE = (40, 120)  # lines, columns


def train_ours(experiment: str, seed: int, steps: int, episodes: int) -> Row:
    """`rlt train --board host` as users run it: with the live screen, log and checkpoint."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "run"
        words = ["--board", "host", "--seed", str(seed), "--steps", str(steps)]
        started = time.monotonic()
        document = train_on_a_terminal(experiment, words, folder, harness.ONE_THREAD)
        total_s = time.monotonic() - started
        image = read_run_policy(RunFolder.open(str(folder)))
        outcome = evaluation.evaluate_policy(image, str(folder), episodes, 0, evaluation.GYMNASIUM)
    return {
        "version": rltools_host.__version__,
        "setup_s": total_s - document["train_s"],
        "train_s": document["train_s"],
        "host_cpu_s": document["host_cpu_s"],
        "return_mean": outcome.mean,
        "seed": seed,
        "steps": steps,
    }


def train_on_a_terminal(
    experiment: str, words: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> dict[str, Any]:
    """What `rlt train --json` says of a run, which has the live screen."""
    words = ["train", experiment, *words, "--out", str(folder)]
    with terminal() as screen:
        return rlt(words, {**variables, "TERM": "xterm-256color"}, screen)


def rlt(
    words: Sequence[str], variables: Mapping[str, str], error_stream: int = subprocess.PIPE
) -> dict[str, Any]:
    """What a command says with `--json`, in a process of its own."""
    command = [sys.executable, "-m", "rltools_host", *words, "--json"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(TREE.root / "host")}
    name = f"rlt {words[0]}"
    result = harness.run_to_end(name, command, PEER_LIMIT_S, environment, error_stream=error_stream)
    document = harness.last_document(result.stdout)
    if result.returncode != 0:
        said = document.get("error") or harness.last_line(result.stderr or "")
        raise harness.MeasurementError(f"{name}: {said}")
    return document


@contextmanager
def terminal() -> Iterator[int]:
    """A terminal to write to, whose other side takes all there is as a terminal's window would."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", *TERMINAL_SIZE, 0, 0))

    def take_all() -> None:
        with suppress(OSError):  # EIO: nobody writes any more
            while os.read(reader, 65536):
                pass

    window = threading.Thread(target=take_all, daemon=True)
    window.start()
    try:
        yield writer
    finally:
        os.close(writer)
        window.join(1.0)
        os.close(reader)


def train_loop(algorithm: str, steps: int) -> Row:
    """The same training in one process, without link, screen and log."""
    raw, _ = harness.run_program("training_loop", algorithm, steps)
    return {
        "version": rltools_host.__version__,
        "setup_s": 0.0,
        "train_s": raw["wall_s"],
        "cpu_s": raw["cpu_s"],
        "evaluations_s": raw["evaluations_s"],
        "return_mean": None,
        "seed": 0,
        "steps": steps,
    }


def peer(
    name: str, folder: Path, algorithm: str, environments: Path, steps: int, episodes: int
) -> Callable[[int], Row]:
    """A peer in its own environment, which is made here and now."""
    python = harness.python_of(name, folder / "requirements.txt", environments)
    script = folder / f"{algorithm}.py"

    def measure(seed: int) -> Row:
        arguments = ["--seed", seed, "--steps", steps, "--episodes", episodes]
        row = harness.measure(name, python, script, arguments, PEER_LIMIT_S)
        return harness.complete(name, row, ("version", "setup_s", "train_s", "return_mean", "seed"))

    return measure


TRAIN = "ours, rlt train"
ROLLOUT = "mujoco.rollout"
ENVPOOL = "envpool"
SIMULATORS = (ENVPOOL, ROLLOUT)  # they learn nothing
PPO_PEERS_DIRECTORY = harness.PEERS_DIRECTORY / "ppo"
OBSERVATION_DIM, ACTION_DIM = 27, 8  # of Ant-v4, without contact forces
SETUP_LIMIT_S = 600.0
BOARD, EXPERIMENT = "host-threads", "ant-ppo"


class Setting(NamedTuple):
    threads: int
    seed: int
    steps: int  # of a whole run
    published: bool  # with each library's own settings for the task


def start_ours(setting: Setting, directory: Path) -> Contender:
    tools.ensure_group("mujoco")
    program = harness.build_program("ppo_loop", BOARD)
    command = [str(program), str(setting.seed), str(setting.steps)]
    variables = {"RLT_THREADS": str(setting.threads)}
    contender = Contender(OURS, command, variables, directory / "ours.log", SETUP_LIMIT_S)
    contender.introduction["version"] = rltools_host.__version__
    return contender


class Train:
    """`rlt train` as users run it, from the beginning in every turn; evaluations do not count."""

    name = TRAIN

    def __init__(self, setting: Setting, introduction: Row) -> None:
        self._setting = setting
        self.introduction = introduction

    def turn(self, order: str, limit_s: float) -> Row:
        del limit_s  # the run has its own
        words = ["--board", BOARD, "--threads", str(self._setting.threads)]
        words += ["--seed", str(self._setting.seed), "--steps", order]
        words += ["--set", f"eval_every={self._setting.steps}", "--set", "eval_episodes=1"]
        variables = harness.thread_variables(self._setting.threads)
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory) / "run"
            said = train_on_a_terminal(EXPERIMENT, words, folder, variables)
        done = int(said["step"])
        return {"steps": done, "wall_s": done / said["steps_per_s"], "cpu_s": None}

    def end(self) -> None:
        """Nothing is left of a turn."""


def start_train(setting: Setting, directory: Path) -> TakesTurns:
    """What our loop says of itself is true of it too."""
    loop = start_ours(setting, directory)
    loop.end()
    firmware.build_firmware(load_board(BOARD), EXPERIMENT)
    return Train(setting, loop.introduction)


def start_rollout(setting: Setting, directory: Path) -> Contender:
    tools.ensure_group("mujoco")
    script = harness.PEERS_DIRECTORY / "mujoco_rollout.py"
    command = [sys.executable, str(script), "--threads", str(setting.threads)]
    return Contender(
        ROLLOUT, command, script_variables(setting), directory / "rollout.log", SETUP_LIMIT_S
    )


def start_peer(name: str, setting: Setting, directory: Path, peers: Path) -> Contender:
    """A peer in its own environment, which is made here and now."""
    folder = peers / name
    python = harness.python_of(name, folder / "requirements.txt", directory)
    command = [
        *(str(python), str(folder / "run.py"), "--threads", str(setting.threads)),
        *("--seed", str(setting.seed), "--steps", str(setting.steps)),
        *(("--published",) if setting.published else ()),
    ]
    temporary = python.parent.parent / "tmp"  # what a peer compiles or leaves behind is its own
    temporary.mkdir(exist_ok=True)
    variables = {**script_variables(setting), "TMPDIR": str(temporary)}
    return Contender(name, command, variables, temporary / f"{name}.log", SETUP_LIMIT_S)


def script_variables(setting: Setting) -> dict[str, str]:
    """For scripts. PyTorch's threads sleep while they wait unless the caller's environment says
    something else: where they spin, as they do by default, they take the cores from EnvPool's.
    """
    return {
        **harness.thread_variables(setting.threads),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "PYTHONPATH": str(harness.PEERS_DIRECTORY),
    }


def starters(
    names: list[str], setting: Setting, directory: Path, peers: Path
) -> dict[str, Callable[[], TakesTurns]]:
    """How each contender is started, in the order of their turns."""

    def starter(name: str) -> Callable[[], TakesTurns]:
        return lambda: start_peer(name, setting, directory, peers)

    learning = {name: starter(name) for name in names if name not in SIMULATORS}
    simulating = {name: starter(name) for name in names if name in SIMULATORS}
    return {
        OURS: lambda: start_ours(setting, directory),
        TRAIN: lambda: start_train(setting, directory),
        **learning,
        **simulating,
        ROLLOUT: lambda: start_rollout(setting, directory),
    }


def require_the_task(contender: TakesTurns, setting: Setting) -> None:
    """Refuses a contender that does something else, or with other threads than all."""
    said = contender.introduction
    try:
        observation, action = said["observation_dim"], said["action_dim"]
        threads = dict(said["threads"])
        _ = said["version"], said["simulator"], said["settings"]
    except (KeyError, TypeError, ValueError):
        raise harness.MeasurementError(f"{contender.name} did not identify itself") from None
    if observation not in (OBSERVATION_DIM, None) or action != ACTION_DIM:
        raise harness.MeasurementError(
            f"{contender.name} has {observation} observations and {action} actions, "
            f"Ant-v4 {OBSERVATION_DIM} and {ACTION_DIM}"
        )
    other = {part: count for part, count in threads.items() if count != setting.threads}
    if other and not setting.published:  # a library's own may be a single environment
        raise harness.MeasurementError(
            f"{contender.name} computes with other threads than {setting.threads}: {other}"
        )

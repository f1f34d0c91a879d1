"""Who takes part in `rlt bench train`: this repository as users run it, its loop alone, peers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import rltools_host
from rltools_host.bench import harness, peer_environment
from rltools_host.bench.training_result import Row
from rltools_host.policies import evaluation
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE

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
    command = [
        *(sys.executable, "-m", "rltools_host", "train", experiment),
        *(*words, "--out", str(folder), "--json"),
    ]
    own = {"PYTHONPATH": str(TREE.root / "host"), "TERM": "xterm-256color"}
    environment = {**os.environ, **variables, **own}
    with terminal() as screen:
        result = harness.run_to_end(
            "rlt train", command, PEER_LIMIT_S, environment, error_stream=screen
        )
    document = last_document(result.stdout)
    if result.returncode != 0:
        raise harness.MeasurementError(f"rlt train: {document.get('error', 'it said nothing')}")
    return document


def last_document(output: str) -> dict[str, Any]:
    """The object that `--json` prints on the last line."""
    text = (output.splitlines() or ["{}"])[-1]
    document = json.loads(text) if text.startswith("{") else {}
    return document if isinstance(document, dict) else {}


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
    python = peer_environment.python_of(name, folder / "requirements.txt", environments)
    script = folder / f"{algorithm}.py"

    def measure(seed: int) -> Row:
        arguments = ["--seed", seed, "--steps", steps, "--episodes", episodes]
        row = peer_environment.measure(name, python, script, arguments, PEER_LIMIT_S)
        for key in ("version", "setup_s", "train_s", "return_mean", "seed"):
            if key not in row:
                raise harness.MeasurementError(f"{name} did not say its {key}")
        return row

    return measure

"""`rlt doctor --self-test`: known bits, threads, a board's link and its storage, on this machine.

Everything happens in a temporary project by the commands that a user calls, so nothing of the
user's is read or changed. The result is a table in Markdown, to be pasted into an issue.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.errors import RefusedError, RltError
from rltools_host.runs import provenance
from rltools_host.tree import MARKER, TREE, VARIABLE

EXPERIMENT = "pendulum-td3"
SHORT, WHOLE = 300, 10_000  # steps whose final states are known
HEADS = ("check", "result", "", "seconds")
RULES = ("---", "---", "---", "---:")
KILLED_AFTER_S = (0.2, 0.4, 0.6, 0.8)  # of a push, which takes about a second
LIMIT_S = 600.0  # for one command; a compiler may have to be compiled for first


@dataclass(frozen=True)
class Check:
    """A check and its outcome."""

    name: str
    passed: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class Workbench:
    """A temporary project, and the commands that are called in it."""

    project: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        main = str(TREE.file("host/rltools_host/__main__.py"))
        return subprocess.Popen(
            [sys.executable, "-I", main, *words, "--json"],
            cwd=self.project,
            env={**os.environ, VARIABLE: str(self.project)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str) -> Any:
        """Return the JSON object of a command; raise RefusedError with its last line otherwise."""
        with self.start(*words) as process:
            try:
                output, errors = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise RefusedError(f"{words[0]} took over {LIMIT_S:g} s") from None
            if process.returncode != 0:
                last = (errors.strip() or f"exit code {process.returncode}").splitlines()[-1]
                raise RefusedError(f"{' '.join(words)}: {last}")
        return json.loads(output.splitlines()[-1])

    def train(self, steps: int, threads: int) -> str:
        """Return how the final state of a training compares with the known one."""
        from rltools_host.web.site import known_states  # imported late: `rlt doctor` needs none

        known = {(state["experiment"], state["steps"]): state["hash"] for state in known_states()}
        expected = known[EXPERIMENT, steps]
        words = ("train", EXPERIMENT, "--board", "host-threads", "--threads", str(threads))
        document = self.call(*words, "--steps", str(steps), "--out", f"runs/{steps}-{threads}")
        if (found := document["state_sha256"]) != expected:
            raise RefusedError(f"{found} in place of {expected}")
        return f"{found[:12]}… in {document['train_s']:.2f} s"

    def link(self) -> str:
        """Return how many actions and calls of a board over its link have this machine's bits."""
        self.call("push", f"runs/{WHOLE}-1", "--board", "host")
        parity = self.call("hil", "--board", "host", "--samples", "100")["parity"]
        inputs = parity["inputs"] + parity["not_finite_inputs"]
        return f"{inputs:,} actions and {parity['executor_calls']} calls are the same bits"

    def storage(self) -> str:
        """Return how many pushes were killed, after each of which a whole policy acts."""
        from rltools_host.web.site import known_states

        states = {state["hash"] for state in known_states() if state["experiment"] == EXPERIMENT}
        for after_s in KILLED_AFTER_S:
            with self.start("push", f"runs/{SHORT}-1", "--board", "host") as process:
                time.sleep(after_s)
                process.kill()
                process.communicate()
            slots = self.call("policies", "--board", "host")["slots"]
            acting = [slot["state_sha256"] for slot in slots if slot["use"] == "active"]
            if len(acting) != 1 or acting[0] not in states:
                raise RefusedError(f"after a push that was killed these act: {acting}")
        return f"{len(KILLED_AFTER_S)} pushes were killed; the old or the new policy acts, whole"


def checks_of(bench: Workbench) -> list[tuple[str, Callable[[], str]]]:
    """Return what is tried, in this order: later ones use the runs of those before."""
    return [
        (f"{SHORT:,} steps of {EXPERIMENT}, one thread", partial(bench.train, SHORT, 1)),
        (f"{WHOLE:,} steps of {EXPERIMENT}, one thread", partial(bench.train, WHOLE, 1)),
        (f"{WHOLE:,} steps of {EXPERIMENT}, two threads", partial(bench.train, WHOLE, 2)),
        ("a board that is a process here", bench.link),
        ("its policies, when pushes are killed", bench.storage),
    ]


def run(json_output: bool = False) -> int:
    """Print the table as it grows; return the exit code of a policy that is refused where a check
    has failed."""
    results = []
    print("\n".join(heading()), flush=True)
    with tempfile.TemporaryDirectory(prefix="rlt-self-test-") as folder:
        project = Path(folder).resolve()
        (project / MARKER).touch()
        for name, check in checks_of(Workbench(project)):
            began = time.monotonic()
            try:
                passed, detail = True, check()
            except RltError as error:
                passed, detail = False, str(error)
            result = Check(name, passed, detail, time.monotonic() - began)
            results.append(result)
            print(row(result), flush=True)
    succeeded = all(result.passed for result in results)
    if json_output:
        document = {"ok": succeeded, "machine": machine(), "checks": list(map(asdict, results))}
        print(json.dumps(document))
    return 0 if succeeded else RefusedError.exit_code


def machine() -> dict[str, str | int | None]:
    """Return what a reader of the result must know of this machine."""
    board = load_board("host")
    compiler = Path(board.toolchain.stand_in or board.toolchain.compiler).name
    needed = cmake.required_tools(board, [cmake.firmware_target(EXPERIMENT)])
    return {
        **provenance.machine(),
        "python": platform.python_version(),
        "compiler": compiler if needed else "none, programs of the wheel",
        "rltools_host": provenance.version(),
    }


def heading() -> list[str]:
    """Return the lines before the table's rows."""
    facts = [f"- {name}: {value}" for name, value in machine().items()]
    return ["### rlt doctor --self-test", "", *facts, "", *map(cells, (HEADS, RULES))]


def row(check: Check) -> str:
    outcome = "passed" if check.passed else "FAILED"
    return cells((check.name, outcome, check.detail.replace("|", "/"), f"{check.seconds:.1f}"))


def cells(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"

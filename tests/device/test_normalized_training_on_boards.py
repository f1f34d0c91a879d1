"""TD3 and SAC with a normalizer of observations and an average of the actor, and XQC with its means
and variances: the same bits here, with threads, and on an emulated Cortex-M7, and each goes on from
the other's checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from boards_under_test import EMULATED
from rltools_host.tree import MARKER, VARIABLE

HEADER = """\
// {base} with a normalizer of observations and an average of the actor.
#pragma once
#include "pendulum_{algorithm}.h"
namespace rlt {{
struct Normalized{base} : {base} {{
  static constexpr const char* kName = "normalized-pendulum-{algorithm}";
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 3;
}};
}}  // namespace rlt
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose experiments learn from normalized observations."""
    root = tmp_path_factory.mktemp("project")
    (root / MARKER).touch()
    (root / "experiments").mkdir()
    for algorithm, base in (("td3", "PendulumTd3"), ("sac", "PendulumSac")):
        header = root / "experiments" / f"normalized_pendulum_{algorithm}.h"
        header.write_text(HEADER.format(algorithm=algorithm, base=base))
    return root


def trained(project: Path, *words: str) -> str:
    """The hash of the state that a run ends with."""
    done = subprocess.run(
        [sys.executable, "-m", "rltools_host", "train", *words, "--no-tensorboard", "--json"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=project,
        env={**os.environ, VARIABLE: str(project), "TERM": "dumb"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    state: str = json.loads(done.stdout.splitlines()[-1])["state_sha256"]
    return state


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "boards"),
    [
        pytest.param("normalized-pendulum-td3", ("host", "host-threads"), marks=pytest.mark.slow),
        pytest.param("normalized-pendulum-sac", ("host", EMULATED), marks=pytest.mark.slow),
        ("pendulum-xqc", ("host", EMULATED)),
    ],
)
def test_it_learns_with_the_same_bits(name: str, boards: tuple[str, str], project: Path) -> None:
    """Learning starts after 100 steps: six updates before the checkpoint, six after it. What is
    normalized is the same code for both (off_policy.h), so one of them has threads and the other
    is emulated, as TD3 is every day (test_training_on_board.py). Threads with --slow: they are
    those of any TD3 (test_training_on_threads.cpp)."""
    settings = ["--set", "eval_freq=1000", "--set", "n_eval_episodes=1"]
    if name == "pendulum-xqc":
        settings += ["--set", "learning_starts=100"]
    states = []
    for board in boards:
        words = [name, "--board", board, "--steps", "106", *settings]
        states.append(trained(project, *words, "--out", f"{name}-{board}"))
    assert set(states) == {states[0]}
    ends = []
    for board, begun_on in (boards, boards[::-1]):
        words = ["--resume", f"{name}-{begun_on}", "--board", board, "--steps", "112"]
        ends.append(trained(project, *words))
    assert ends[0] == ends[1] != states[0]

"""PPO on an emulated board and on this machine: the same bits, from the middle of an iteration that
the board has begun."""

from __future__ import annotations

import pytest

from boards_under_test import (
    EMULATED,
    Connect,
    Programs,
    pause_after,
    run_to_rest,
    set_run,
    train,
)
from rltools_host.boards.session import BoardSession
from rltools_host.build import experiments
from rltools_host.build.description import ExperimentDescription
from rltools_host.runs.checkpoint import parse_image

EXPERIMENT = "pendulum-ppo"
ITERATION = 2048  # steps
# Two iterations of 8 minibatches an epoch, which compute the advantages anew.
RUN = {
    "seed": 5,
    "steps": 2 * ITERATION,
    "n_epochs": 2,
    "recompute_advantage": 1,
    "report_every": 64,
    "eval_freq": ITERATION,
    "n_eval_episodes": 2,
}


@pytest.fixture(scope="module")
def description() -> ExperimentDescription:
    return experiments.describe(EXPERIMENT)


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs(EXPERIMENT)


def number_in(payload: bytes, description: ExperimentDescription, name: str) -> int:
    """A tensor of one U32."""
    offset = next(tensor.offset for tensor in description.tensors if tensor.name == name)
    return int.from_bytes(payload[offset : offset + 4], "little")


def pause_in_iteration(
    session: BoardSession, description: ExperimentDescription, step: int
) -> tuple[int, bytes]:
    """Pauses where a rollout or its learning is under way; the step, and the checkpoint."""
    paused = pause_after(session, step)
    while True:
        assert not paused.finished
        checkpoint = session.files.download("/checkpoint.rltc")
        payload = parse_image(checkpoint, "the board").payload
        names = ("rollout/size", "progress/minibatches")
        if any(number_in(payload, description, name) for name in names):
            return paused.step, checkpoint
        session.training.resume()
        paused = pause_after(session, paused.step + 1)


def resume_from(
    session: BoardSession, description: ExperimentDescription, checkpoint: bytes, **run: int
) -> str:
    """The hash that the run ends with."""
    set_run(session, description, **run)
    session.training.upload_checkpoint(checkpoint)
    session.training.resume()
    result, _ = run_to_rest(session)
    assert result.finished
    return result.state_sha256


@pytest.mark.all
def test_this_machine_goes_on_where_the_emulated_board_was_learning(
    connect: Connect, description: ExperimentDescription
) -> None:
    expected, _ = train(connect("host"), description, **RUN)
    board = connect(EMULATED)
    set_run(board, description, **RUN)
    board.training.start()
    _, checkpoint = pause_in_iteration(board, description, ITERATION)
    assert resume_from(connect("host"), description, checkpoint, **RUN) == expected.state_sha256

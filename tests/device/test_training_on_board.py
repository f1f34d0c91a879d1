"""Training on emulated boards and on this machine: one application, the same bits."""

from __future__ import annotations

import math
import struct
import time
from operator import sub
from pathlib import Path
from types import ModuleType

import pytest

from boards_under_test import (
    EMULATED,
    LIMIT_S,
    SHORT_RUN,
    TRAINING_BOARDS,
    Connect,
    Programs,
    computes_on_integers,
    run_to_rest,
    set_run,
    train,
)
from rltools_host.boards.board_link import Emulator
from rltools_host.boards.file_transfer import BEST_PATH
from rltools_host.boards.messages import Evaluation, Event, Result, State, TrainingProgress
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import ProcessLink, open_link
from rltools_host.build.boards import load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.errors import BrokenEnvironmentError, FileNotThereError
from rltools_host.runs.checkpoint import build_image, parse_image
from rltools_host.runs.saves import (
    step_of_policy,
)
from waiting import wait_for

BOARDS = ["host", EMULATED]
# Past the end of an episode, with two evaluations; updates are what takes long.
RUN_OF_240 = {
    "seed": 1,
    "steps": 240,
    "learning_starts": 200,
    "report_every": 40,
    "eval_freq": 120,
    "n_eval_episodes": 2,
}


def short_run_on_host(connect: Connect, description: ExperimentDescription) -> str:
    result, _ = train(connect("host"), description, **SHORT_RUN)
    return result.state_sha256


def marks_of(board: str) -> list[pytest.MarkDecorator]:
    """Where integers compute what floating-point units do elsewhere, it takes half a minute."""
    others = [] if board == EMULATED else [pytest.mark.all]
    return [*others, pytest.mark.slow] if computes_on_integers(load_board(board)) else others


@pytest.fixture(scope="module")
def reference_run(
    reference_program: Path, description: ExperimentDescription, dialect: ModuleType
) -> tuple[Result, list[Event]]:
    """What 240 steps are with the reference kernels."""
    session, identity = BoardSession.connect(ProcessLink([str(reference_program)]), dialect)
    assert identity.device == "Generic"
    with session:
        return train(session, description, **RUN_OF_240)


@pytest.mark.parametrize(
    "board", ["host", *(pytest.param(name, marks=marks_of(name)) for name in TRAINING_BOARDS)]
)
def test_240_steps_give_the_references_bits(
    board: str,
    connect: Connect,
    description: ExperimentDescription,
    reference_run: tuple[Result, list[Event]],
) -> None:
    """On the kernels of each board's device."""
    expected, expected_events = reference_run
    result, events = train(connect(board), description, **RUN_OF_240)
    assert result.state_sha256 == expected.state_sha256
    assert result.step == 240
    assert result.finished
    assert len(events) == len(expected_events)
    for event, expected_event in zip(events, expected_events, strict=True):
        check_alike(event, expected_event)


def check_alike(event: Event, expected: Event) -> None:
    """The same report, but for the counters and the order in which a loss is added up."""
    assert type(event) is type(expected)
    for name, value in vars(expected).items():
        if name == "metrics":
            assert getattr(event, name) == pytest.approx(value, rel=1e-5, nan_ok=True)
        elif not name.endswith("counter"):
            assert repr(getattr(event, name)) == repr(value), name  # as text: a NaN is not itself


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_whole_run_gives_the_same_bits(
    connect: Connect,
    description: ExperimentDescription,
    programs: Programs,
    dialect: ModuleType,
) -> None:
    expected, _ = train(connect("host"), description, seed=0)
    emulator = Emulator(load_board(EMULATED), programs[EMULATED], 3500, serves=True)
    with emulator, BoardSession.connect(open_link(emulator.port), dialect)[0] as session:
        result, events = train(session, description, seed=0)
    assert result.step == 10000
    assert result.state_sha256 == expected.state_sha256
    assert sum(isinstance(event, Evaluation) for event in events) == 10


@pytest.mark.all
def test_each_run_counts_the_same_instructions_and_the_stack_is_large_enough(
    connect: Connect, description: ExperimentDescription
) -> None:
    counts: list[list[int]] = []
    # A heartbeat of the host, which the board answers, comes by the clock and is counted, too.
    for _ in range(5):
        session = connect(EMULATED)
        _, events = train(session, description, **{**SHORT_RUN, "steps": 40, "eval_freq": 40})
        assert sum(isinstance(event, Evaluation) for event in events) == 1
        reports = [event for event in events if isinstance(event, TrainingProgress)]
        assert [report.step for report in reports] == [10, 20, 30, 40]
        counts.append([report.counter for report in reports])
        # A tick of the counter is 1.25 instructions.
        if any(max(map(abs, map(sub, counts[-1], other))) <= 2 for other in counts[:-1]):
            break
    else:
        pytest.fail(f"no two runs have the same counts: {counts}")
    per_step = (counts[-1][-1] - counts[-1][-2]) / 10
    assert 1e6 < per_step < 20e6
    session.files.download("/policy.rltp")
    use = session.node.stack_use()
    assert set(use) == {"stack", "stack_peak"}
    assert 512 < use["stack_peak"] <= use["stack"] * 3 // 4, use


@pytest.mark.all
@pytest.mark.parametrize("board", BOARDS)
def test_a_board_says_which_step_of_its_environment_is_broken(
    board: str, connect: Connect, description: ExperimentDescription
) -> None:
    """A checkpoint's state is finite, and the square of its angle, a reward, is not."""
    run = {**SHORT_RUN, "learning_starts": 1000}
    session = connect(board)
    train(session, description, **{**run, "steps": 15})
    image = parse_image(session.files.download("/checkpoint.rltc"), board)
    (at,) = (t.offset for t in description.tensors if t.name == "environment_state/angle_rad")
    payload = image.payload[:at] + struct.pack("<f", -1e38) + image.payload[at + 4 :]
    set_run(session, description, **run)
    session.training.upload_checkpoint(build_image(image.fingerprint, image.step, payload))
    session.training.resume()
    sentence = (
        r": a reward is not finite; state angle_rad -1e38, velocity_rad_s -?\d[0-9.]*; "
        r"action torque -?0\.\d+; fix the environment, or end its episodes before$"
    )
    with pytest.raises(BrokenEnvironmentError, match=sentence):
        list(session.training.events())
    assert session.node.identity().state == State.FAULT


@pytest.mark.all
def test_the_best_policy_is_kept_where_a_board_says_that_it_has_memory(
    connect: Connect, description: ExperimentDescription
) -> None:
    """Here it has; an emulated board, which counts instructions, says nothing and has no file. It
    rests where it is asked to, and its host then has the same policy."""
    assert "RLT_WHOLE_BATCH" in load_board("host").defines
    assert not any("RLT_BULK_BYTES" in define for define in load_board(EMULATED).defines)
    run = {**SHORT_RUN, "learning_starts": 1000, "steps": 30, "eval_freq": 10}
    here, there = (connect(board) for board in BOARDS)
    end, _ = train(here, description, **run)
    kept = here.files.download(BEST_PATH)
    assert step_of_policy(kept) in (10, 20, 30)

    set_run(there, description, **run)
    largest, best = -math.inf, b""
    there.training.start(largest)
    result, events = run_to_rest(there)
    while result.is_best:
        largest = max(event.return_mean for event in events if isinstance(event, Evaluation))
        best = there.files.download("/policy.rltp")
        if result.finished:
            break
        there.training.resume(largest)
        result, events = run_to_rest(there)
    assert best == kept
    assert (result.finished, result.state_sha256) == (True, end.state_sha256)
    assert there.files.download("/policy.rltp") == here.files.download("/policy.rltp")
    with pytest.raises(FileNotThereError):
        there.files.download(BEST_PATH)

    there.training.start(-math.inf)
    assert run_to_rest(there)[0].is_best
    there.training.upload_checkpoint(there.files.download("/checkpoint.rltc"))
    assert not there.training.result().is_best, "no evaluation of it is known"


def test_training_goes_on_without_a_host(
    connect: Connect,
    description: ExperimentDescription,
    programs: Programs,
    dialect: ModuleType,
) -> None:
    expected = short_run_on_host(connect, description)
    with Emulator(load_board(EMULATED), programs[EMULATED], LIMIT_S, serves=True) as emulator:
        session, _ = BoardSession.connect(open_link(emulator.port), dialect)
        set_run(session, description, **SHORT_RUN)
        session.training.start()
        session.close()  # unplugged: nobody reads
        time.sleep(1.0)
        session, _ = BoardSession.connect(open_link(emulator.port), dialect)  # plugged in again
        with session:
            result, _ = run_to_rest(session)
    assert result.state_sha256 == expected


def test_a_process_ends_with_its_host(programs: Programs, dialect: ModuleType) -> None:
    link = ProcessLink([str(programs["host"])])
    session, _ = BoardSession.connect(link, dialect)
    session.close()
    process = Path(f"/proc/{link.process_id}")
    wait_for(lambda: not process.exists(), 60, "the program runs on without a host")

"""Policies that see their own last actions and sums: what they ask for, what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.boards.hil import HilRequest, check_board, require_parity
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, push
from rltools_host.build.description import Channel
from rltools_host.errors import BoardMismatchError, RefusedError
from rltools_host.policies import episodes
from rltools_host.policies.acting import History, normalized
from rltools_host.policies.contract import ObservationSum, PastAction
from rltools_host.policies.image import PolicyImage, parse_policy

NAME_OFFSET = 144 + 3 * 8  # of the first channel, behind three layers


@pytest.fixture
def image() -> PolicyImage:
    return parse_policy(sample_images()["remembering_pendulum"])


def test_an_image_says_what_it_asks_for(image: PolicyImage) -> None:
    assert image.shape == "5-32-32-1"
    assert image.added_inputs == (PastAction(0, 1), PastAction(0, 2))
    assert [channel.name for channel in image.contract.observations] == [
        *("cos_angle", "sin_angle", "velocity"),
    ]
    without = parse_policy(sample_images()["pendulum"])
    assert without.added_inputs == ()
    assert without.contract == without.inputs == image.contract
    assert image.added_inputs_at(without.contract.checksum) == image.added_inputs
    assert image.added_inputs_at(image.inputs.checksum) == ()  # a place that observes them
    assert image.added_inputs_at(1) is None


def test_a_sum_is_of_what_the_policy_acted_on_and_stays_in_its_range() -> None:
    asked = (ObservationSum(1, -0.01, 0.02, 2000), PastAction(0, 1))
    history = History(asked, 1, 2)
    seen = np.array([[9.0, 4.0], [9.0, -2.0]], np.float32)
    output = np.zeros((2, 1), np.float32)
    assert history.inputs(seen, [0, 1])[:, 2].tolist() == [0.0, 0.0]
    history.add(output, [0, 1], seen)
    assert history.inputs(seen, [0, 1])[:, 2] == pytest.approx([0.008, -0.004])
    history.add(output, [0, 1])  # a fault
    history.add(output[:1], [1], np.full((1, 2), np.nan, np.float32))
    assert history.inputs(seen, [0, 1])[:, 2] == pytest.approx([0.008, -0.004])
    for _ in range(5):
        history.add(output, [1, 0], seen[::-1])
    assert history.inputs(seen, [0, 1])[:, 2] == pytest.approx([0.02, -0.01])


def test_the_history_against_a_list_of_all_actions() -> None:
    random = np.random.default_rng(3)
    asked = (PastAction(1, 1), PastAction(0, 3), PastAction(1, 3), PastAction(1, 1))
    history = History(asked, 2, 3)
    given: list[list[Any]] = [[], [], []]
    for turn in range(12):
        places = [0, 2] if turn % 3 else [2, 1, 0]
        observations = random.normal(size=(len(places), 4)).astype(np.float32)
        inputs = history.inputs(observations, places)
        for row, place in enumerate(places):
            done = given[place]
            past = [done[-p.ticks][p.action] if p.ticks <= len(done) else 0.0 for p in asked]
            assert inputs[row].tolist() == [*observations[row].tolist(), *past]
        outputs = random.normal(size=(len(places), 2)).astype(np.float32)
        history.add(outputs, places)
        for row, place in enumerate(places):
            given[place].append(np.clip(outputs[row], -1, 1).tolist())


def test_a_physical_action_normalized() -> None:
    channels = [Channel("a", "N", -2.0, 2.0), Channel("b", "1", 0.0, 1.0)]
    actions = np.array([[1.0, 0.25], [-3.0, 2.0], [0.0, 0.5]], np.float32)
    assert normalized(actions, channels).tolist() == [[0.5, -0.5], [-1.0, 1.0], [0.0, 0.0]]


# -- boards ----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, storage: Path) -> Path:
    assert storage  # of its own
    return make_policy_run(tmp_path / "run", sample_images()["remembering_pendulum"])


@pytest.mark.parametrize(
    ("sample", "contract"),
    [
        ("remembering_quadrotor_4", "quadrotor"),
        ("summing_quadrotor", "quadrotor"),
        ("recurrent_pendulum", "pendulum"),
        ("recurrent_quadrotor", "quadrotor"),
        ("lstm_quadrotor", "quadrotor"),
    ],
)
def test_the_board_gives_the_policy_its_last_actions_and_sums_and_its_state(
    sample: str, contract: str, tmp_path: Path
) -> None:
    run = make_policy_run(tmp_path / sample, sample_images()[sample])
    result = check_board(
        HilRequest(PolicyTarget("host", contract=contract), str(run), 20, 40), lambda *_: None
    )
    require_parity(result)
    assert result.parity.ticks.checked > 70


@pytest.mark.usefixtures("run")
def test_a_policy_for_other_observations_is_refused(tmp_path: Path) -> None:
    name = b"another".ljust(24, b"\0")
    other = patched(sample_images()["remembering_pendulum"], NAME_OFFSET, "24s", name)
    path = make_policy_run(tmp_path / "other", other)
    with pytest.raises(BoardMismatchError, match=r'observation 0 is "cos_angle".* "another"'):
        push(PushRequest(str(path), PolicyTarget("host")), lambda _: None)


@pytest.mark.usefixtures("run")
def test_older_actions_than_a_board_keeps_are_refused(tmp_path: Path) -> None:
    name = b"torque_t-65".ljust(24, b"\0")
    long = patched(sample_images()["remembering_pendulum"], NAME_OFFSET + 4 * 48, "24s", name)
    path = make_policy_run(tmp_path / "long", long)
    with pytest.raises(RefusedError, match="history_too_long: asks for older actions than are"):
        push(PushRequest(str(path), PolicyTarget("host")), lambda _: None)


# -- evaluation and export -------------------------------------------------------------------------


def test_gymnasiums_environment_does_not_show_them(image: PolicyImage) -> None:
    episode = episodes.gymnasium_episodes(image, 2, 5)[1]
    alone = episodes.gymnasium_episodes(image, 1, 6)[0]
    assert episode.observations.tobytes() == alone.observations.tobytes()
    assert episode.observations.shape == (200, 5)
    done = np.clip(image.output(episode.observations)[:, 0], -1, 1)
    assert episode.observations[0, 3:].tolist() == [0.0, 0.0]
    assert episode.observations[1:, 3].tolist() == done[:-1].tolist()
    assert episode.observations[2:, 4].tolist() == done[:-2].tolist()
    assert episode.actions.tobytes() == image.evaluate(episode.observations).tobytes()
    assert episodes.gymnasium_has(image.environment)
    assert not episodes.gymnasium_has("Nothing-v1 +2 actions")

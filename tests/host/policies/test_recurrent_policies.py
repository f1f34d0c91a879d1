"""Policies with a hidden state, as images of format 2: read, written, run, exported to C."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from policy_samples import patched, sample_images
from programs import output_of
from rltools_host.errors import RefusedError, RltError
from rltools_host.policies import episodes
from rltools_host.policies.contract import Recurrence
from rltools_host.policies.export import c_header, identifier
from rltools_host.policies.image import DamagedPolicyError, PolicyImage, parse_policy
from rltools_host.policies.image_writing import Network, Origin, write_image
from rltools_host.runs.saves import HEADER

RECURRENT = ("recurrent_pendulum", "recurrent_quadrotor", "lstm_quadrotor")
RESET_AT_OFFSET = 144 + 10
LAYERS_OFFSET = 160


@pytest.fixture(params=RECURRENT)
def image(request: pytest.FixtureRequest) -> PolicyImage:
    return parse_policy(sample_images()[request.param])


@pytest.fixture
def pendulum() -> PolicyImage:
    return parse_policy(sample_images()["recurrent_pendulum"])


def test_it_reads_as_documented(pendulum: PolicyImage) -> None:
    assert pendulum.shape == "3-16-GRU16-1"
    assert pendulum.parameter_count == 4 * 16 + 2 * 17 * 48 + 17
    assert pendulum.recurrence == Recurrence(50_000, 200_000, 16)
    assert [example.begins for example in pendulum.examples] == [i in (0, 10) for i in range(16)]
    both = parse_policy(sample_images()["lstm_quadrotor"])
    assert both.shape == "13-16-LSTM12-GRU6-4"
    assert both.parameter_count == 14 * 16 + (17 + 13) * 48 + (13 + 7) * 18 + 7 * 4
    assert both.recurrence == Recurrence(10_000, 40_000, 12 + 12 + 6)
    quadrotor = parse_policy(sample_images()["recurrent_quadrotor"])
    assert quadrotor.recurrence == Recurrence(10_000, 40_000, 16)
    assert quadrotor.step_interval_us == 2_000
    assert quadrotor.contract.checksum == quadrotor.inputs.checksum


def test_runs_go_on_from_states_of_their_own(image: PolicyImage) -> None:
    image.verify()
    observations = np.array([example.observation for example in image.examples])
    states = image.runner.begin(2)
    for example in image.examples:
        if example.begins:
            states[0] = 0
        rows = np.array([example.observation, observations[3]])
        outputs, actions = image.runner.run(rows, states)
        assert outputs[0].tobytes() == example.output.tobytes()
        assert actions[0].tobytes() == example.action.tobytes()
    alone = image.runner.begin()
    for _ in image.examples:
        image.runner.run(observations[3], alone)
    assert alone[0].tobytes() == states[1].tobytes()
    # Without states each is the first of an episode.
    assert image.output(observations)[0].tobytes() == image.examples[0].output.tobytes()
    with pytest.raises(RltError, match=r"hidden states of shape \(16, \d\d\)"):
        image.runner.run(observations, image.runner.begin(2))


def test_the_hosts_writer_writes_the_cores_bytes(image: PolicyImage) -> None:
    assert image.recurrence is not None
    ticks = image.recurrence.trained_interval_us // image.step_interval_us
    network = Network(image.normalizer, image.layers, ticks)
    origin = Origin(
        *(image.experiment, image.environment, image.step, image.seed),
        *(image.state_sha256, image.fingerprint),
    )
    observations = np.array([example.observation for example in image.examples])
    assert write_image(network, image.contract, origin, observations) == image.data


def test_a_step_of_training_that_is_no_number_of_ticks_is_refused(pendulum: PolicyImage) -> None:
    assert pendulum.recurrence is not None
    interval_us = pendulum.recurrence.trained_interval_us + 1
    with pytest.raises(DamagedPolicyError, match="of its hidden state contradicts itself"):
        parse_policy(patched(pendulum.data, HEADER.size, "I", interval_us))


def test_another_hidden_weight_is_not_reproduced(pendulum: PolicyImage) -> None:
    offset = LAYERS_OFFSET + 3 * 8 + 4 * 48 + 4 * (4 * 16 + 17 * 48)
    (weight,) = struct.unpack_from("<f", pendulum.data, offset)
    assert pendulum.layers[1].hidden is not None
    assert weight == pendulum.layers[1].hidden[0][0, 0]
    other = parse_policy(patched(pendulum.data, offset, "f", 1.0001 * weight), "policy.rltp")
    with pytest.raises(RefusedError, match=r"policy\.rltp: example \d+ gives other bits"):
        other.verify()


def test_each_episode_in_gymnasium_has_a_state_of_its_own(pendulum: PolicyImage) -> None:
    together = episodes.gymnasium_episodes(pendulum, 2, 5)[1]
    alone = episodes.gymnasium_episodes(pendulum, 1, 6)[0]
    assert together.actions.tobytes() == alone.actions.tobytes()
    state = pendulum.runner.begin()
    expected = [pendulum.runner.run(row[None], state)[1][0] for row in alone.observations]
    assert np.array(expected).tobytes() == alone.actions.tobytes()
    assert expected[1:] != [*pendulum.evaluate(alone.observations)[1:]]


# -- exports ---------------------------------------------------------------------------------------

PROGRAM = """\
#include <stdio.h>
#include "policy.h"
int main(void) {
  float state[RECURRENT_POLICY_STATE_DIM], action[RECURRENT_POLICY_ACTION_DIM];
  float observation[RECURRENT_POLICY_OBSERVATION_DIM];
  unsigned char is_right = recurrent_policy_verify();
  fwrite(&is_right, 1, 1, stdout);
  recurrent_policy_reset(state);
  while (fread(observation, sizeof(observation), 1, stdin) == 1) {
    unsigned char acted = recurrent_policy_evaluate(observation, state, action);
    fwrite(&acted, 1, 1, stdout);
    fwrite(action, sizeof(action), 1, stdout);
  }
  return 0;
}
"""


@pytest.mark.parametrize(("standard", "reset_at"), [("c99", 15), ("c++11", 1)])
def test_the_header_gives_the_bits_and_ends_the_state_as_the_image_says(
    standard: str, reset_at: int, image: PolicyImage, tmp_path: Path
) -> None:
    image = parse_policy(patched(image.data, RESET_AT_OFFSET, "H", reset_at))
    (tmp_path / "policy.h").write_text(c_header(image))
    source = tmp_path / f"program.{standard[:1] if standard == 'c99' else 'cpp'}"
    name = identifier(image.experiment)
    source.write_text(PROGRAM.replace("recurrent", name).replace("RECURRENT", name.upper()))
    program = tmp_path / "program"
    compiler = "gcc" if standard == "c99" else "g++"
    flags = ("-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-std={standard}")
    output_of(compiler, *flags, source, "-o", program)
    rows = np.array([example.observation for example in image.examples] * 2)
    rows[20, 1] = np.nan
    result = subprocess.run(
        [program], input=rows.astype("<f4").tobytes(), capture_output=True, timeout=60, check=True
    ).stdout
    record = np.dtype([("acted", "u1"), ("action", "<f4", (len(image.actions),))])
    found = np.frombuffer(result[1:], record)
    assert result[0] == 1
    assert found["acted"].tolist() == [*[1] * 20, 0, *[1] * 11]
    state = image.runner.begin()
    for index, row in enumerate(rows):
        if index == 20:
            assert found["action"][index].tobytes() == image.runner.safe_action()[0].tobytes()
            state = image.runner.begin() if reset_at == 15 else state
            continue
        _, action = image.runner.run(row[None], state)
        assert found["action"][index].tobytes() == action.tobytes()

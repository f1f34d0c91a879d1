"""What a policy may be handed: where flights begin, what a search finds, what leaves a run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from policy_run import make_policy_run
from policy_samples import sample_images
from rltools_host.drones.flight.entry import envelope, parts_of
from rltools_host.drones.flight.entry_box import MAX_YAW, EntryBox, starts_within
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.simulator import Rule, flight_library, fly
from rltools_host.errors import DamagedFileError
from rltools_host.policies.contract import QUADROTOR, EntryEnvelope
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import PolicyImage, parse_policy

BOX = EntryBox(5.0, 2.0, 30.0, 3.0)
ENTRY = EntryEnvelope(2.0, 0.5, 0.5, 1.5, 1.25)


def quadrotor() -> PolicyImage:
    return parse_policy(sample_images()["lstm_quadrotor"])


def test_starts_lie_within_the_box_and_at_each_of_its_bounds() -> None:
    starts = starts_within(BOX, 7, 4000).astype(float)
    x, y = starts[:, 7], starts[:, 8]
    tilt = np.degrees(np.arccos(1.0 - 2.0 * (x * x + y * y)))
    parts = np.stack(
        [
            np.linalg.norm(starts[:, 3:6], axis=1) / 5.0,
            np.linalg.norm(starts[:, 0:3], axis=1) / 2.0,
            tilt / 30.0,
            np.linalg.norm(starts[:, 10:13], axis=1) / 3.0,
        ]
    )
    assert parts.max() <= 1.0 + 1e-5
    assert ((parts > 0.9999).mean(axis=1) > 0.3).all()
    assert ((parts > 0.9999).all(axis=0)).mean() > 0.03  # corners
    assert np.allclose(np.linalg.norm(starts[:, 6:10], axis=1), 1.0, atol=1e-6)
    assert (starts[:, 6] > 0).all()
    yaw = np.degrees(2.0 * np.arctan2(starts[:, 9], starts[:, 6]))
    assert np.abs(yaw).max() <= MAX_YAW + 1e-3
    directions = starts[:, 3:6] / np.linalg.norm(starts[:, 3:6], axis=1, keepdims=True)
    assert np.abs(directions.mean(axis=0)).max() < 0.05
    assert not np.array_equal(starts[:9], starts_within(EntryBox(5, 2, 30, 3, 9), 7, 9))


def test_a_tilt_that_is_too_large_ends_a_flight_and_lost_height_is_counted() -> None:
    """Without thrust: from rest it falls by g t^2 / 2, and a turn rate of 2 rad/s tilts it."""
    starts = np.zeros((2, 13), np.float32)
    starts[:, 6] = 1.0
    starts[1, 10] = 2.0
    starts[1, 2] = 1.0  # above its target, from which a loss counts
    excursions = np.zeros(2, flight_library().records["Excursion"])
    calm = {"gust_m_s2": 0, "start_share": 0, "limit_position": 5, "limit_velocity": 20}
    outcomes, _ = fly(
        lambda _tick, index, _seen: np.zeros((len(index), 4)),
        Rule(0.5, 0.1, 5.0, 1.0, 45.0),
        calm,
        3,
        count=2,
        starts=starts,
        excursions=excursions,
    )
    assert outcomes["cause"].tolist() == [0, 6]
    tilted = np.degrees(excursions["max_tilt_rad"])
    assert tilted[0] < 1.0
    assert 45.0 < tilted[1] < 46.0
    assert 0.8 < excursions["height_lost_m"][0] < 1.3
    assert excursions["height_lost_m"][1] < 0.2


def test_a_height_leaves_each_flight_a_margin() -> None:
    gate = load_gate("entry")
    starts = parts_of(gate)
    lost = np.where(starts > 0.99, 1.0, 0.2)
    assert envelope(gate, lost, True).height_m == pytest.approx(1.5)
    assert envelope(gate, lost, False) == EntryEnvelope(0, 0, 0, 0, 0)
    lost[starts.argmin()] = 0.25 + 2.0 * starts.min()  # what a small state loses counts in its part
    assert envelope(gate, lost, True).height_m == pytest.approx(2.5)


def test_the_image_that_leaves_a_run_states_what_its_gate_has_measured(tmp_path: Path) -> None:
    image, said = quadrotor(), list[str]()
    assert image.contract.checksum == QUADROTOR == flight_library().contract.checksum
    tmp_path = make_policy_run(tmp_path / "run", image.data)
    assert read_leaving_policy(str(tmp_path), say=said.append).data == image.data
    assert said.pop().startswith("assumed: entry at rest only (up to 0.5 m/s")
    path = tmp_path / "gate-entry.json"
    path.write_text(json.dumps({"policy_sha256": image.sha256, "entry": asdict(ENTRY)}))
    leaving = read_leaving_policy(str(tmp_path), say=said.append)
    assert leaving.entry == ENTRY
    assert said.pop() == f"entry: {ENTRY}"
    path.write_text(json.dumps({"policy_sha256": "0" * 64, "entry": asdict(ENTRY)}))
    assert read_leaving_policy(str(tmp_path), say=said.append).entry is None  # of another policy
    path.write_text(json.dumps({"policy_sha256": image.sha256, "entry": {"speed_m_s": -1}}))
    with pytest.raises(DamagedFileError, match="does not say what the policy may be handed"):
        read_leaving_policy(str(tmp_path))


def test_another_policy_than_a_quadrotors_leaves_as_it_is(tmp_path: Path) -> None:
    image, said = parse_policy(sample_images()["pendulum"]), list[str]()
    tmp_path = make_policy_run(tmp_path / "run", image.data)
    assert read_leaving_policy(str(tmp_path), say=said.append).data == image.data
    assert said == []

"""Policy images for a quadrotor that nobody trained: a controller by hand, and constants."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel
from rltools_host.drones.flight.loop import HostPilot
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.policies.contract import GATES, GRU, Contract, EntryEnvelope, Layer
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.policies.image_writing import (
    Network,
    Origin,
    sampled,
    with_entry,
    write_image,
)

Array = NDArray[np.float32]
Dense = tuple[str, Array, Array]  # activation, weights (in, out), bias

HOVER_FRACTION_L2F = 0.4449  # of crazyflie-l2f: .027 kg on 4 rotors of .1488 N


def image_of(layers: Sequence[Dense], contract: Contract | None = None) -> bytes:
    """An image with one example, of an observation of zeros."""
    contract = contract or flight_library().contract
    weights = (part for _, *parts in layers for part in parts)
    digest = hashlib.sha256(b"".join(part.astype("<f4").tobytes() for part in weights))
    origin = Origin("quadrotor-ppo", "Quadrotor", 1000, 0, digest.hexdigest())
    observations = np.zeros((1, len(contract.observations)), np.float32)
    network = Network(None, [Layer(*layer) for layer in layers])
    return write_image(network, contract, origin, observations)


def with_wide_entry(image: bytes) -> bytes:
    """The image, which says that it may be handed a target 2 m away."""
    entry = EntryEnvelope(0.5, 2.0, 0.35, 1.0, 0.5)
    return with_entry(parse_policy(image, "a test's"), entry).data


def constant_policy(*thrusts: float) -> bytes:
    """Gives these parts of the greatest thrusts, whatever it sees."""
    bias = np.float32(2) * np.array(thrusts, np.float32) - np.float32(1)
    return image_of([("identity", np.zeros((13, 4), np.float32), bias)])


POSITION_GAIN = 0.2  # tilt in rad per m


def controller(*, gain: float = 1.0, roll_sign: float = 1.0, sum_gain: float = 0.0) -> bytes:
    """A proportional-derivative controller whose tilt is bounded; flies crazyflie-l2f.

    gain: of the attitude; roll_sign: -1 turns the wrong way; sum_gain: tilt in rad per m s of the
    error's sum, for which it asks where this is not 0.
    """
    contract = flight_library().contract
    if sum_gain:
        sums = tuple(Channel(f"position_error_{axis}_sum", "m s", -9.0, 9.0) for axis in "xy")
        contract = replace(contract, observations=(*contract.observations, *sums))
    layers = controller_layers(len(contract.observations), gain, roll_sign, sum_gain)
    return image_of(layers, contract)


def controller_layers(
    width: int, gain: float = 1.0, roll_sign: float = 1.0, sum_gain: float = 0.0
) -> tuple[Dense, Dense]:
    inputs = np.eye(width, dtype=np.float32)
    position, velocity = inputs[0:3], inputs[3:6]
    quaternion, rate = inputs[6:10], inputs[10:13]
    along_x = -POSITION_GAIN * position[0] - 0.2 * velocity[0]
    along_y = -POSITION_GAIN * position[1] - 0.2 * velocity[1]
    if sum_gain:
        along_x, along_y = along_x - sum_gain * inputs[13], along_y - sum_gain * inputs[14]
    lift = 0.1 * (-2 * position[2] - 2 * velocity[2])
    roll = roll_sign * (-0.02 * rate[0] - gain * 0.2 * quaternion[1])
    pitch = -0.02 * rate[1] - gain * 0.2 * quaternion[2]
    yaw = -0.1 * rate[2] - 0.4 * quaternion[3]
    # front right, rear right, rear left, front left
    mixer = np.array([(-1, -1, -1), (-1, 1, 1), (1, 1, -1), (1, -1, 1)], np.float32)
    linear = [lift + signs @ np.stack([roll, pitch, yaw]) for signs in mixer]
    most_tilt = 0.4
    columns, biases = [], []
    for tilt in (along_x, along_y):
        columns += [tilt, tilt]
        biases += [most_tilt, -most_tilt]
    for row in linear:
        columns += [row, -row]
        biases += [0.0, 0.0]
    outer = np.zeros((len(columns), 4), np.float32)
    base = np.zeros(4, np.float32)
    for k, (roll_part, pitch_part, _) in enumerate(mixer):
        outer[4 + 2 * k, k], outer[5 + 2 * k, k] = 1, -1
        # mr has -0.1 ay, mp has +0.1 ax
        x, y = 0.1 * pitch_part, -0.1 * roll_part * roll_sign
        outer[0:2, k] = x, -x
        outer[2:4, k] = y, -y
        base[k] = 2 * HOVER_FRACTION_L2F - 1 - most_tilt * (x + y)
    hidden = np.stack(columns, axis=1).astype(np.float32)
    return ("relu", hidden, np.array(biases, np.float32)), ("identity", outer, base)


def recurrent_controller() -> bytes:
    """The controller, through a GRU whose state goes three quarters of the way to the thrusts in
    each step of training, 10 ms; flies crazyflie-l2f."""
    hidden, (_, outer, base) = controller_layers(len(flight_library().contract.observations))
    return through_gru([hidden], outer, base)


def through_gru(before: Sequence[Dense], outer: Array, base: Array) -> bytes:
    """Layers, and the linear one behind them through a GRU that is near its output after a step."""
    small, keeps = np.float32(0.25), np.log(1 / 3)  # tanh is nearly linear; a sigmoid of 1/4
    random = np.random.default_rng(6)
    rows = np.concatenate([np.zeros((len(outer), 8)), small * outer], axis=1)
    bias = np.array([0.0] * 4 + [keeps] * 4 + [0.0] * 4)
    among = random.uniform(-0.02, 0.02, (4, GATES[GRU] * 4)), random.uniform(-0.001, 0.001, 12)
    gru = (rows, bias, *among)
    rows, bias, weights, among_bias = (part.astype(np.float32) for part in gru)
    layers = (
        *(Layer(*each) for each in before),
        Layer("identity", rows, bias, (weights, among_bias)),
        Layer("identity", np.eye(4, dtype=np.float32) / small, base),
    )
    return recurrent_image(layers, flight_library().contract)


def recurrent_policy() -> bytes:
    """13-8-GRU8-4 of random numbers, whose hidden state moves on each 10 ms. It sees its actions of
    10 ms ago, too."""
    contract = flight_library().contract
    past = tuple(Channel(f"{each.name}_t-5", "1", -1.0, 1.0) for each in contract.actions)
    contract = replace(contract, observations=(*contract.observations, *past))
    random = np.random.default_rng(5)

    def some(*shape: int) -> Array:
        return random.uniform(-0.8, 0.8, shape).astype(np.float32)

    width, gates = 8, GATES[GRU] * 8
    layers = (
        Layer("tanh", some(len(contract.observations), width), some(width)),
        Layer("identity", some(width, gates), some(gates), (some(width, gates), some(gates))),
        Layer("identity", some(width, 4), some(4)),
    )
    return recurrent_image(layers, contract)


def recurrent_image(layers: Sequence[Layer], contract: Contract) -> bytes:
    """Trained at 10 ms, with a sequence of 16 steps."""
    origin = Origin("recurrent-ppo", "Quadrotor", 0, 0, hashlib.sha256().hexdigest())
    return write_image(Network(None, layers, 5), contract, origin, sampled(contract, 16))


TICK_US = 2000


def assert_acts_as_here(program: Path, image: PolicyImage, rows: Array) -> None:
    """A program that reads an observation for each tick, and writes the thrusts, has the bits of
    this machine's executor, which the first tick finds at 2 ms."""
    result = subprocess.run([program], input=rows.tobytes(), capture_output=True, timeout=60)
    assert result.returncode == 0
    here = HostPilot(image, in_trial=False)
    times_us = range(TICK_US, TICK_US * (len(rows) + 1), TICK_US)
    expected = [here.act(t, t, row).action for t, row in zip(times_us, rows, strict=True)]
    assert result.stdout == b"".join(action.tobytes() for action in expected)

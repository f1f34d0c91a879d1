"""Flights of simulated quadrotors whose parameters are known, as logs for `rlt fit`.

Written from the equations in docs/fit.md, in double precision and apart from the core and from the
fit. Many drones fly at once, each with its own parameters, noise and latency.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quadrotor_drones import DRONES, Drone

Array = NDArray[np.float64]

STEP_S = 0.002
GRAVITY_M_S2 = 9.81
# Front right, rear right, rear left, front left; a rotor that turns counter-clockwise turns the
# body clockwise.
X_SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
Y_SIGNS = np.array([-1.0, -1.0, 1.0, 1.0])
YAW_SIGNS = np.array([-1.0, 1.0, -1.0, 1.0])
ROTORS = ("front_right", "rear_right", "rear_left", "front_left")
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Noise:
    """Standard deviations of white noise."""

    gyro_rad_s: float = 0.03
    acceleration_m_s2: float = 0.3
    velocity_m_s: float = 0.03
    attitude_rad: float = 0.003
    gust: float = 0.0  # of a disturbance of thrust/weight and of torque, in parts of hovering


@dataclass(frozen=True)
class Flight:
    """How they fly."""

    seconds: float = 12.0
    control_steps: int = 2  # of 2 ms, from command to command
    log_steps: int = 2  # from row to row
    latency_steps: int = 0
    excitation: float = 1.0  # 1: rates of some rad/s, thrusts of +-0.1
    yaw: float = 1.0  # its part of the excitation
    noise: Noise = field(default_factory=Noise)


@dataclass
class Records:
    """Rows of the log of each drone: arrays [row, drone, ...]."""

    time_s: Array
    attitude: Array
    angular_velocity: Array
    acceleration: Array
    velocity: Array
    thrust: Array  # commanded fraction of the greatest
    speed: Array  # the set point of the rotors' speed that it means
    rotor: Array  # the rotors' speed

    def columns(self, drone: int, commands: str = "thrust") -> dict[str, Array]:
        """A log's columns by name."""
        named = {"time_s": self.time_s}
        for index, name in enumerate(("w", *AXES)):
            named[f"attitude_{name}"] = self.attitude[:, drone, index]
        for index, axis in enumerate(AXES):
            named[f"angular_velocity_{axis}_rad_s"] = self.angular_velocity[:, drone, index]
        for index, axis in enumerate(AXES):
            named[f"acceleration_{axis}_m_s2"] = self.acceleration[:, drone, index]
        for index, axis in enumerate(AXES):
            named[f"velocity_{axis}_m_s"] = self.velocity[:, drone, index]
        values = self.thrust if commands == "thrust" else self.speed
        for index, rotor in enumerate(ROTORS):
            named[f"{commands}_{rotor}"] = values[:, drone, index]
        return named

    def measured(self, drone: int, greatest_rad_s: float, noise_rad_s: float) -> dict[str, Array]:
        """Columns of measured rotor speeds with white noise, of which each is the drone's own."""
        rng = np.random.default_rng(drone)
        speeds = greatest_rad_s * self.rotor[:, drone]
        speeds = speeds + noise_rad_s * rng.standard_normal(speeds.shape)
        return {f"rad_s_{rotor}": speeds[:, index] for index, rotor in enumerate(ROTORS)}


DIGITS = {"time_s": 3, "attitude": 4, "angular": 3, "acceleration": 2, "velocity": 2}


def csv_text(columns: dict[str, Array]) -> str:
    """A log as text, with the digits that a flight controller's log has."""
    digits = [DIGITS.get(name, DIGITS.get(name.split("_")[0], 3)) for name in columns]
    rows = zip(*columns.values(), strict=True)
    lines = [
        ",".join(f"{value:.{count}f}" for value, count in zip(row, digits, strict=True))
        for row in rows
    ]
    return "\n".join([",".join(columns), *lines]) + "\n"


def write_log(path: Path, columns: dict[str, Array]) -> Path:
    path.write_text(csv_text(columns))
    return path


# -- rotations ---------------------------------------------------------------------------------


def bilinear(a: Array, b: Array, table: Array) -> Array:
    """Sums of products of elements of each row: `table` is [of a, of b, result]."""
    pairs = (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
    result: Array = pairs @ table.reshape(-1, table.shape[2])
    return result


CROSS = np.zeros((3, 3, 3))
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    CROSS[i, j, k], CROSS[j, i, k] = 1.0, -1.0
PRODUCT = np.zeros((4, 4, 4))  # of quaternions
PRODUCT[0] = np.eye(4)
PRODUCT[1:, 0, 1:] = np.eye(3)
PRODUCT[1:, 1:, 0] = -np.eye(3)
PRODUCT[1:, 1:, 1:] = CROSS


def cross(a: Array, b: Array) -> Array:
    return bilinear(a, b, CROSS)


def product(a: Array, b: Array) -> Array:
    return bilinear(a, b, PRODUCT)


def turned(q: Array, v: Array) -> Array:
    """Body vectors in the world."""
    t = 2.0 * cross(q[:, 1:], v)
    result: Array = v + q[:, :1] * t + cross(q[:, 1:], t)
    return result


def turned_back(q: Array, v: Array) -> Array:
    return turned(q * np.array([1.0, -1.0, -1.0, -1.0]), v)


# -- dynamics ----------------------------------------------------------------------------------


class Simulation:
    """Several drones at once; a state is [drone, 17]: place, velocity, attitude, rate, speeds."""

    def __init__(self, drones: list[Drone]) -> None:
        self.drones = drones
        self.mass = np.array([d.mass for d in drones])[:, None]
        self.inertia = np.array([d.inertia for d in drones])
        self.rotor = np.array([d.rotor for d in drones])
        self.thrust = np.array([d.thrust for d in drones])
        self.torque = np.array([d.torque for d in drones])
        self.lag = np.array([d.lag for d in drones])
        self._lag = np.where(self.lag > 0.0, self.lag, np.inf)  # what has none is at its target
        self.drag = np.array([d.drag for d in drones])
        self.drag_rotation = np.array([d.drag_rotation for d in drones])[:, None]
        self.flapping = np.array([d.flapping for d in drones])[:, None]
        self.rotor_momentum = np.array([d.rotor_momentum for d in drones])[:, None]
        self.greatest = self.thrust.sum(axis=1, keepdims=True)
        arms = [
            np.ones((len(drones), 4)),
            self.rotor[:, 1:] * Y_SIGNS,
            -self.rotor[:, :1] * X_SIGNS,
        ]
        of_thrust = [arm[:, None, :] * self.thrust[:, :, None] for arm in arms]
        of_torque = YAW_SIGNS * self.torque[:, :, None]
        # By row: thrust and torques of 1, w, w^2 of each rotor.
        self._wrench = np.stack([*of_thrust, of_torque], axis=1).reshape(len(drones), 4, 12)
        self.hover = self.mass * GRAVITY_M_S2 / (4.0 * self.greatest)  # a fraction

    def speed_for(self, fraction: Array) -> Array:
        """The flight controller's inverse of the thrust curve."""
        a0, a1, a2 = (self.thrust[:, i : i + 1] for i in range(3))
        over = np.maximum(fraction * self.greatest - a0, 0.0)
        bottom = a1 + np.sqrt(a1**2 + 4.0 * a2 * over)
        result: Array = 2.0 * over / np.where(bottom > 0.0, bottom, 1.0)
        return result

    def wrench(self, w: Array) -> tuple[Array, Array]:
        """Thrust of all rotors, torque about the axes."""
        powers = np.concatenate([np.ones_like(w), w, w**2], axis=1)
        both = (self._wrench @ powers[:, :, None])[:, :, 0]
        return both[:, :1], both[:, 1:]

    def specific_force(self, state: Array) -> Array:
        """What an accelerometer measures, without disturbance."""
        return self._specific_force(state, self.wrench(state[:, 13:17])[0])

    def _specific_force(self, state: Array, thrust: Array) -> Array:
        force = -self.drag * turned_back(state[:, 6:10], state[:, 3:6]) / self.mass
        force[:, 2:] += thrust / self.mass
        result: Array = force
        return result

    def derivative(self, state: Array, target: Array, push: Array, twist: Array) -> Array:
        q, rate, w = state[:, 6:10], state[:, 10:13], state[:, 13:17]
        thrust, torque = self.wrench(w)
        out = np.empty_like(state)
        out[:, 0:3] = state[:, 3:6]
        out[:, 3:6] = turned(q, self._specific_force(state, thrust)) + push / self.mass
        out[:, 5] -= GRAVITY_M_S2
        out[:, 6:10] = 0.5 * bilinear(q, rate, PRODUCT[:, 1:])
        torque = torque + twist - self.drag_rotation * rate
        out[:, 13:17] = (target - w) / np.where(target > w, self._lag[:, :1], self._lag[:, 1:])
        momentum = self.inertia * rate
        if self.flapping.any() or self.rotor_momentum.any():
            sideways = turned_back(q, state[:, 3:6])
            torque = torque + self.flapping * np.stack(
                [sideways[:, 1], -sideways[:, 0], np.zeros(len(q))], axis=1
            )
            torque[:, 2:] += self.rotor_momentum * (out[:, 13:17] @ YAW_SIGNS[:, None])
            momentum[:, 2:] -= self.rotor_momentum * (w @ YAW_SIGNS[:, None])
        out[:, 10:13] = (torque - cross(rate, momentum)) / self.inertia
        return out

    def step(self, state: Array, target: Array, push: Array, twist: Array) -> Array:
        state = state.copy()
        at_once = self.lag == 0.0
        up = target > state[:, 13:17]
        prompt = np.where(up, at_once[:, :1], at_once[:, 1:])
        state[:, 13:17] = np.where(prompt, target, state[:, 13:17])
        k1 = self.derivative(state, target, push, twist)
        k2 = self.derivative(state + 0.5 * STEP_S * k1, target, push, twist)
        k3 = self.derivative(state + 0.5 * STEP_S * k2, target, push, twist)
        k4 = self.derivative(state + STEP_S * k3, target, push, twist)
        new = state + STEP_S / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        new[:, 6:10] /= np.linalg.norm(new[:, 6:10], axis=1, keepdims=True)
        return new


class Controller:
    """Holds the place, softly, with commands of a multi-sine and of doublets on top."""

    def __init__(self, simulation: Simulation, flight: Flight, rng: np.random.Generator) -> None:
        self._simulation = simulation
        self._flight = flight
        count = len(simulation.drones)
        self._frequencies = np.geomspace(0.4, 8.0, 7)
        self._phases = rng.uniform(0.0, 2.0 * np.pi, (count, 4, 7))
        self._doublets = rng.uniform(1.2, 1.8, (count, 4))  # s, from one to the next
        lag = simulation.lag.mean(axis=1, keepdims=True)
        self._bandwidth = np.clip(0.6 / np.maximum(lag, 0.01), 2.2, 8.0)
        self._constant = simulation.torque.sum(axis=1) / simulation.greatest[:, 0]
        arms = np.stack([*simulation.rotor.T[::-1], self._constant], axis=1)
        reachable = 4.0 * simulation.greatest * arms / simulation.inertia  # rad/s^2
        usual = 0.3 * 2.0 * np.pi * np.sqrt((self._frequencies**2).sum() / 2.0)
        self._size = np.ones((count, 4))
        self._size[:, :3] = np.minimum(1.0, 0.05 * reachable / usual)

    def excitation(self, time_s: float) -> Array:
        """Angular accelerations, and a fraction of the greatest thrust: [drone, 4]."""
        angular = 2.0 * np.pi * self._frequencies
        waves = np.sin(angular * time_s + self._phases)
        phase = np.mod(time_s, self._doublets) / self._doublets
        doublet = np.where(phase < 0.1, 1.0, np.where(phase < 0.2, -1.0, 0.0))
        turning = 0.3 * (waves[:, :3] * angular).sum(axis=2) + 8.0 * doublet[:, :3]
        climbing = 0.02 * waves[:, 3:].sum(axis=2) + 0.1 * doublet[:, 3:]
        sizes = self._flight.excitation * np.array([1.0, 1.0, self._flight.yaw, 1.0])
        return self._size * sizes * np.concatenate([turning, climbing], axis=1)

    def command(self, state: Array, time_s: float) -> Array:
        """Each rotor's fraction of its greatest thrust."""
        simulation = self._simulation
        position, velocity, q, rate = state[:, :3], state[:, 3:6], state[:, 6:10], state[:, 10:13]
        wanted = -np.array([0.2, 0.2, 1.0]) * position - np.array([0.5, 0.5, 1.5]) * velocity
        wanted = np.clip(wanted, -2.5, 2.5)
        up = turned_back(q, np.broadcast_to([0.0, 0.0, 1.0], position.shape))
        lean = turned_back(q, wanted * np.array([1.0, 1.0, 0.0])) / GRAVITY_M_S2
        heading = 2.0 * np.arctan2(q[:, 3], q[:, 0])
        heading = np.mod(heading + np.pi, 2.0 * np.pi) - np.pi
        aim = up + lean  # where the body's z is to point, in the body's frame
        error = np.stack([-aim[:, 1], aim[:, 0], -heading], axis=1)
        speed = self._bandwidth * np.array([1.0, 1.0, 0.4])
        extra = self.excitation(time_s)
        turning = simulation.inertia * (speed**2 * error - 1.6 * speed * rate + extra[:, :3])
        force = simulation.mass[:, 0] * (GRAVITY_M_S2 + wanted[:, 2])
        x, y = simulation.rotor[:, 0], simulation.rotor[:, 1]
        forces = [force, turning[:, 0] / y, turning[:, 1] / x, turning[:, 2] / self._constant]
        parts = np.stack(forces, axis=1) / (4.0 * simulation.greatest)
        parts[:, 0] += extra[:, 3]
        mix = np.stack([np.ones(4), Y_SIGNS, -X_SIGNS, YAW_SIGNS])
        return np.clip(parts @ mix, 0.0, 1.0)


def fly(drones: list[Drone], seed: int, flight: Flight | None = None) -> Records:
    """Logs of flights; what is measured has noise, what was commanded has none."""
    flight = flight or Flight()
    rng = np.random.default_rng(seed)
    simulation = Simulation(drones)
    controller = Controller(simulation, flight, rng)
    count = len(drones)
    state = np.zeros((count, 17))
    state[:, 6] = 1.0
    fraction = np.repeat(simulation.hover, 4, axis=1)
    state[:, 13:17] = simulation.speed_for(fraction)
    line = [fraction] * (flight.latency_steps + 1)
    push, twist = np.zeros((count, 3)), np.zeros((count, 3))
    rows: list[tuple[Array, ...]] = []
    noise = flight.noise
    weight = simulation.mass * GRAVITY_M_S2
    for index in range(round(flight.seconds / STEP_S)):
        time_s = index * STEP_S
        measured_rate = state[:, 10:13] + noise.gyro_rad_s * rng.standard_normal((count, 3))
        if index % flight.control_steps == 0:
            seen = state.copy()
            seen[:, 10:13] = measured_rate
            fraction = controller.command(seen, time_s)
        if noise.gust:
            decay = np.exp(-STEP_S / 0.3)
            shake = noise.gust * np.sqrt(1.0 - decay**2)
            push = decay * push + shake * weight * rng.standard_normal((count, 3))
            arm = 0.1 * simulation.rotor.mean(axis=1, keepdims=True)
            twist = decay * twist + shake * weight * arm * rng.standard_normal((count, 3))
        if index % flight.log_steps == 0:
            force = simulation.specific_force(state) + turned_back(
                state[:, 6:10], push / simulation.mass
            )
            lean = noise.attitude_rad * rng.standard_normal((count, 3))
            attitude = product(
                state[:, 6:10],
                np.pad(0.5 * lean, ((0, 0), (1, 0))) + np.array([1.0, 0.0, 0.0, 0.0]),
            )
            rows.append(
                (
                    attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
                    measured_rate,
                    force + noise.acceleration_m_s2 * rng.standard_normal((count, 3)),
                    state[:, 3:6] + noise.velocity_m_s * rng.standard_normal((count, 3)),
                    fraction,
                    simulation.speed_for(fraction),
                    state[:, 13:17].copy(),
                )
            )
        line = [*line[1:], fraction]
        state = simulation.step(state, simulation.speed_for(line[0]), push, twist)
    times = STEP_S * flight.log_steps * np.arange(len(rows))
    return Records(times, *(np.stack(part) for part in zip(*rows, strict=True)))


# -- the example that ships --------------------------------------------------------------------

EXAMPLE_DRONE = "with-drag"
EXAMPLE_FLIGHT = Flight(seconds=10.5, control_steps=3, log_steps=3, latency_steps=1)
EXAMPLE_SEED = 1


def example_text(seconds: float = EXAMPLE_FLIGHT.seconds) -> str:
    """examples/fit/flight.csv, or its beginning."""
    flight = replace(EXAMPLE_FLIGHT, seconds=seconds)
    records = fly([DRONES[EXAMPLE_DRONE]], EXAMPLE_SEED, flight)
    return csv_text(records.columns(0, "speed"))


if __name__ == "__main__":
    print(example_text(), end="")

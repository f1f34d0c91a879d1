"""Logs of other flight controllers are the simulated flight that they were written from.

The writers here have names, units, signs and orders of the projects' sources, apart from the
readers: PX4's messages in front, right, down and north, east, down; Betaflight's blackbox CSV;
the Crazyflie's log groups.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from quadrotor_drones import BRUSHLESS
from quadrotor_flight import Array, Flight, fly
from rltools_host import confined
from rltools_host.build.tools import group_is_installed
from rltools_host.drones.fitting.checks import check_log
from rltools_host.drones.fitting.formats import MAX_FIELDS, decompressed, integrated_attitude
from rltools_host.drones.fitting.log import FlightLog, read_log
from rltools_host.drones.fitting.model import turn
from rltools_host.errors import DamagedFileError

GREATEST_RAD_S = 2450.0
FLIGHT = fly([BRUSHLESS], 3, Flight(seconds=5.0))
TIME = FLIGHT.time_s
ATTITUDE = FLIGHT.attitude[:, 0]  # w x y z
RATES = FLIGHT.angular_velocity[:, 0]
FORCE = FLIGHT.acceleration[:, 0]
VELOCITY = FLIGHT.velocity[:, 0]
SPEED = FLIGHT.speed[:, 0]  # commands: front right, rear right, rear left, front left
RPM = FLIGHT.rotor[:, 0] * GREATEST_RAD_S * 60.0 / (2.0 * np.pi)
ROLL, PITCH, YAW = Rotation.from_quat(ATTITUDE[:, [1, 2, 3, 0]]).as_euler("ZYX").T[::-1]
DEGREES = 180.0 / np.pi


def same(log: FlightLog, digits: float = 1e-6) -> None:
    """The flight, and one that the checks of units, signs and frames let pass."""
    np.testing.assert_allclose(log.time_s - log.time_s[0], TIME[: len(log.time_s)], atol=2e-6)
    np.testing.assert_allclose(log.angular_velocity, RATES, atol=max(digits, 2e-3))
    signs = np.sign((log.attitude * ATTITUDE).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(log.attitude * signs, ATTITUDE, atol=max(digits, 1e-4))
    if log.acceleration is not None:
        np.testing.assert_allclose(log.acceleration, FORCE, atol=max(digits, 0.02))
    if log.velocity is not None:
        np.testing.assert_allclose(log.velocity, VELOCITY, atol=max(digits, 2e-3))
    check_log(log)


def csv(path: Path, names: list[str], columns: list[Array], head: str = "") -> Path:
    rows = [", ".join(f"{value:.9g}" for value in row) for row in zip(*columns, strict=True)]
    path.write_text(head + "\n".join([", ".join(names), *rows]) + "\n")
    return path


# -- Betaflight ------------------------------------------------------------------------------------

# Motors 1 to 4: rear right, front right, rear left, front left.
OF_MOTOR = [1, 0, 2, 3]


def blackbox(path: Path, *, attitude: bool = True, erpm: bool = True, head: str = "") -> Path:
    columns: dict[str, Array] = {"loopIteration": np.arange(len(TIME)), "time (us)": 1e6 * TIME}
    for axis in range(3):
        columns[f"gyroADC[{axis}]"] = np.round(DEGREES * RATES[:, axis], 1)
        columns[f"accSmooth[{axis}]"] = np.round(2048.0 * FORCE[:, axis] / 9.81)
        if attitude:
            upward = ATTITUDE * np.sign(ATTITUDE[:, :1])
            columns[f"imuQuaternion[{axis}]"] = np.round(32767.0 * upward[:, axis + 1])
    for motor, rotor in enumerate(OF_MOTOR):
        columns[f"motor[{motor}]"] = np.round(48.0 + 1999.0 * SPEED[:, rotor])
        if erpm:  # hundreds of electrical turns a minute, of 14 poles
            columns[f"eRPM[{motor}]"] = np.round(RPM[:, rotor] * 7.0 / 100.0)
    return csv(path, list(columns), list(columns.values()), head)


def test_betaflight(tmp_path: Path) -> None:
    log = read_log(blackbox(tmp_path / "LOG00001.01.csv"))
    same(log)
    assert log.commands is not None
    np.testing.assert_allclose(log.commands, SPEED, atol=3e-4)
    assert log.rotor_speeds is not None
    np.testing.assert_allclose(log.rotor_speeds, RPM * 2.0 * np.pi / 60.0, atol=1.0)
    assert not log.commands_thrust
    assert ["14 poles" in note for note in log.notes].count(True) == 1


def test_betaflight_of_the_explorer_states_its_poles(tmp_path: Path) -> None:
    head = '"firmwareType","Betaflight"\n"motor_poles","12"\n"acc_1G","2048"\n'
    log = read_log(blackbox(tmp_path / "a.csv", head=head))
    assert log.rotor_speeds is not None
    expected = RPM * 2.0 * np.pi / 60.0 * 14 / 12
    np.testing.assert_allclose(log.rotor_speeds, expected, atol=1.5)
    assert not any("assumed: the motors" in note or "2048" in note for note in log.notes)


def test_betaflight_without_attitude_integrates_the_gyroscope(tmp_path: Path) -> None:
    log = read_log(blackbox(tmp_path / "a.csv", attitude=False, erpm=False))
    up = np.array([0.0, 0.0, 1.0])
    cosines = (turn(log.attitude, up) * turn(ATTITUDE, up)).sum(axis=1)
    assert np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))).max() < 6.0
    assert log.rotor_speeds is None
    said = " ".join(log.notes)
    assert "assumed: the attitude is the gyroscope's integral" in said
    assert "set dshot_bidir = ON" in said


def test_an_integrated_attitude_turns_as_the_body_does() -> None:
    steps = 4000
    rate = np.array([0.4, -0.3, 0.8])
    time_s = 0.002 * np.arange(steps)
    turns = Rotation.from_rotvec(time_s[:, None] * rate)
    force = turns.inv().apply([0.0, 0.0, 9.81])
    table = {"time_s": time_s}
    for index, axis in enumerate("xyz"):
        table[f"angular_velocity_{axis}_rad_s"] = np.full(steps, rate[index])
        table[f"acceleration_{axis}_m_s2"] = force[:, index]
    found = Rotation.from_quat(integrated_attitude(table)[:, [1, 2, 3, 0]])
    assert (turns.inv() * found).magnitude().max() < 0.03  # of where it begins


# -- Crazyflie -------------------------------------------------------------------------------------


def crazyflie(path: Path, kind: str) -> Path:
    columns = {"Timestamp": np.round(1000.0 * TIME)}
    motors = {f"motor.m{index + 1}": np.round(65535.0 * SPEED[:, index]) for index in range(4)}
    if kind == "Z":
        for index, axis in enumerate("xyz"):
            columns[f"stateEstimateZ.v{axis}"] = np.round(1000.0 * VELOCITY[:, index])
        world = turn(ATTITUDE, FORCE)
        for index, axis in enumerate("xyz"):
            columns[f"stateEstimateZ.a{axis}"] = np.round(1000.0 * world[:, index])
        for name, sign, index in (("Roll", 1, 0), ("Pitch", -1, 1), ("Yaw", 1, 2)):
            columns[f"stateEstimateZ.rate{name}"] = np.round(1000.0 * sign * RATES[:, index])
        for name, sign, angle in (("roll", 1, ROLL), ("pitch", -1, PITCH), ("yaw", 1, YAW)):
            columns[f"stabilizer.{name}"] = DEGREES * sign * angle
        columns |= {f"rpm.m{index + 1}": np.round(RPM[:, index]) for index in range(4)}
    else:
        for index, part in enumerate("wxyz"):
            columns[f"stateEstimate.q{part}"] = ATTITUDE[:, index]
        for index, axis in enumerate("xyz"):
            columns[f"stateEstimate.v{axis}"] = VELOCITY[:, index]
            columns[f"gyro.{axis}"] = DEGREES * RATES[:, index]
            if kind == "world":  # in g, without gravity's 1 g upwards
                up = float(axis == "z")
                columns[f"stateEstimate.a{axis}"] = turn(ATTITUDE, FORCE)[:, index] / 9.81 - up
            else:
                columns[f"acc.{axis}"] = FORCE[:, index] / 9.81
    columns |= motors
    return csv(path, list(columns), list(columns.values()))


@pytest.mark.parametrize("kind", ["Z", "plain", "world"])
def test_crazyflie(tmp_path: Path, kind: str) -> None:
    log = read_log(crazyflie(tmp_path / "log.csv", kind))
    same(log)
    assert log.commands is not None
    np.testing.assert_allclose(log.commands, SPEED, atol=1e-4)
    assert (log.rotor_speeds is not None) == (kind == "Z")
    assert any("motor.m1 to motor.m4 are fractions" in note for note in log.notes)


def test_a_compressed_quaternion() -> None:
    """As the firmware's quatcompress.h packs it."""
    rng = np.random.default_rng(4)
    q = rng.standard_normal((500, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)  # x y z w
    packed = []
    for each in q:
        largest = int(np.argmax(np.abs(each)))
        bits = largest
        for index in range(4):
            if index != largest:
                negative = (each[index] < 0) != (each[largest] < 0)
                size = int(511 * abs(each[index]) / np.sqrt(0.5) + 0.5)
                bits = (bits << 10) | (negative << 9) | size
        packed.append(float(bits))
    found = decompressed(np.array(packed))[:, [1, 2, 3, 0]]
    assert (np.abs((found * q).sum(axis=1)) > 1.0 - 5e-6).all()


# -- PX4 -------------------------------------------------------------------------------------------

needs_pyulog = pytest.mark.skipif(
    not group_is_installed("ulog"), reason="pyulog is missing: ./rlt fit FILE.ulg installs it"
)
FORMATS = {
    "sensor_combined": "float[3] gyro_rad;float[3] accelerometer_m_s2",
    "vehicle_attitude": "float[4] q",
    "vehicle_local_position": "float vx;float vy;float vz",
    "actuator_motors": "float[4] control",
    "esc_report": "int32_t esc_rpm;uint8_t actuator_function",
    "esc_status": "esc_report[4] esc",
}
DOWN = np.array([1.0, -1.0, -1.0])
# PX4's quadrotor x: front right, rear left, front left, rear right; y is to the right.
PX4_ROTORS = {0: (1.0, 1.0), 1: (-1.0, -1.0), 2: (1.0, -1.0), 3: (-1.0, 1.0)}
OF_PX4 = [0, 2, 3, 1]  # rotors of the contract


def message(kind: str, data: bytes) -> bytes:
    return struct.pack("<HB", len(data), ord(kind)) + data


def parameter(name: str, value: float) -> bytes:
    key = f"float {name}".encode()
    return message("P", bytes([len(key)]) + key + struct.pack("<f", value))


def ulog(path: Path, *, every: int = 1, curve: float = 0.0, escs: bool = False) -> Path:
    """`every`: rows to a message of actuator_motors."""
    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0), message("B", bytes(40))]
    for name, fields in FORMATS.items():
        time = "" if name == "esc_report" else "uint64_t timestamp;"
        parts.append(message("F", f"{name}:{time}{fields};".encode()))
    for motor, place in PX4_ROTORS.items():
        for axis, value in zip("XY", place, strict=True):
            parts.append(parameter(f"CA_ROTOR{motor}_P{axis}", 0.0353 * value))
    parts.append(parameter("THR_MDL_FAC", curve))
    topics = [name for name in FORMATS if name != "esc_report"]
    for index, name in enumerate(topics):
        parts.append(message("A", struct.pack("<BH", 0, index) + name.encode()))
    for row, seconds in enumerate(TIME):
        stamp = struct.pack("<Q", round(1e6 * seconds) + 7_000_000)
        rates, force = RATES[row] * DOWN, FORCE[row] * DOWN
        values = [struct.pack("<6f", *rates, *force)]
        values.append(struct.pack("<4f", *(ATTITUDE[row] * np.array([1.0, 1.0, -1.0, -1.0]))))
        values.append(struct.pack("<3f", *(VELOCITY[row] * DOWN)))
        values.append(struct.pack("<4f", *SPEED[row, OF_PX4]))
        turning = [(round(RPM[row, rotor]), 101 + m) for m, rotor in enumerate(OF_PX4)]
        values.append(b"".join(struct.pack("<iB", *each) for each in turning))
        for index, data in enumerate(values):
            if (topics[index] == "actuator_motors" and row % every) or (index == 4 and not escs):
                continue
            parts.append(message("D", struct.pack("<H", index) + stamp + data))
    path.write_bytes(b"".join(parts))
    return path


@needs_pyulog
@pytest.mark.parametrize(("curve", "escs"), [(0.0, True), (0.3, False)])
def test_px4(tmp_path: Path, curve: float, escs: bool) -> None:
    log = read_log(ulog(tmp_path / "log.ulg", curve=curve, escs=escs))
    same(log, 1e-5)
    assert log.commands is not None
    np.testing.assert_allclose(log.commands, SPEED, atol=1e-6)
    assert log.commands_thrust == (curve > 0.0)
    assert (log.rotor_speeds is not None) == escs
    if log.rotor_speeds is not None:
        np.testing.assert_allclose(log.rotor_speeds, RPM * 2.0 * np.pi / 60.0, atol=0.1)


@needs_pyulog
def test_px4_without_its_fast_topics_names_the_parameter(tmp_path: Path) -> None:
    with pytest.raises(
        DamagedFileError, match=r"actuator_motors has 10 rows a second.*LOG_PROFILE"
    ):
        read_log(ulog(tmp_path / "log.ulg", every=25))
    measured = read_log(ulog(tmp_path / "log.ulg", every=25, escs=True))
    assert measured.commands is None
    assert measured.rotor_speeds is not None
    assert any("actuator_motors has 10 rows a second and is not used" in n for n in measured.notes)


@needs_pyulog
def test_hostile_ulogs_are_one_sentence(tmp_path: Path) -> None:
    """Definitions that expand to billions of fields, and files that are cut off anywhere."""
    whole = ulog(tmp_path / "log.ulg").read_bytes()
    bomb = [message("?", b"unknown")]
    bomb += [message("F", f"m{k}:m{k + 1}[60000] a;".encode()) for k in range(6)]
    bomb += [message("F", b"m6:float a;"), message("F", b"sensor_combined:m0[60000] a;")]
    begin = whole.index(message("A", struct.pack("<BH", 0, 0) + b"sensor_combined"))
    path = tmp_path / "bomb.ulg"
    path.write_bytes(whole[:begin] + b"".join(bomb) + whole[begin:])
    assert MAX_FIELDS < 60_000
    with pytest.raises(DamagedFileError, match="its message sensor_combined has more fields than"):
        read_log(path)
    rng = np.random.default_rng(1)
    for cut in (3, 17, 40, 300, 900, 2000, 60_000):
        data = bytearray(whole[:cut])
        for place in rng.integers(16, max(cut, 17), 5) if cut > 100 else ():
            data[place] = int(rng.integers(256))
        path.write_bytes(bytes(data))
        with pytest.raises(DamagedFileError) as caught:
            read_log(path)
        assert "\n" not in str(caught.value)


@needs_pyulog
def test_a_ulog_is_read_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ulog(tmp_path / "log.ulg")
    assert read_log(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert "pyulog" not in sys.modules
    for limits, said in (
        (confined.Limits(memory_bytes=64_000_000), "that takes more than 64 MB of memory"),
        (confined.Limits(numbers=1000), "it has more than 1,000 numbers"),
    ):
        monkeypatch.setattr(confined, "LIMITS", limits)
        with pytest.raises(DamagedFileError, match=f"^{path} cannot be read: {said}.*; cut it to"):
            read_log(path)

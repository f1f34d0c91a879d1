"""The logs of other flight controllers as the columns of docs/fit.md.

Names, units and signs are those of the projects' own sources: PX4's uORB messages and logger,
Betaflight's blackbox.c (eRPM is in hundreds, gyroADC in deg/s, time in microseconds) and the
Crazyflie's stabilizer.c (stateEstimateZ in thousandths, ratePitch and pitch with the other sign).
A reader is a function from a file's columns to a Table, without a fit or anything else: it may run
in a child.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.files import read_limited

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Array = NDArray[np.float64]

GRAVITY_M_S2 = 9.81
DEGREE = math.pi / 180.0
# In the contract's order (policy/contracts/quadrotor.h).
ROTORS = ("front_right", "rear_right", "rear_left", "front_left")


RATE, FORCE, VELOCITY = "angular_velocity_{}_rad_s", "acceleration_{}_m_s2", "velocity_{}_m_s"
ATTITUDE, SPEED, RPM = "attitude_{}", "speed_{}", "rpm_{}"


@dataclass
class Table:
    """A log by the names of docs/fit.md, with sentences on what was assumed or is missing."""

    columns: dict[str, Array]
    notes: list[str] = field(default_factory=list)

    def put(self, pattern: str, axes: Sequence[str], values: Iterable[Array]) -> None:
        for axis, column in zip(axes, values, strict=True):
            self.columns[pattern.format(axis)] = np.asarray(column, float)


def turned_back(q: Array, v: Array) -> Array:
    """Turn world vectors into the body, without SciPy: q is [row, w x y z], v [row, 3]."""
    w, u = q[:, :1], -q[:, 1:]
    t = 2.0 * np.cross(u, v)
    result: Array = v + w * t + np.cross(u, t)
    return result


def of_angles(roll: Array, pitch: Array, yaw: Array) -> Array:
    """Return quaternions [row, w x y z] of angles about x, then y, then z, in radians."""
    cr, sr, cp, sp = (f(0.5 * a) for a in (roll, pitch) for f in (np.cos, np.sin))
    cy, sy = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=1,
    )


def interpolated(at: Array, time_s: Array, values: Array) -> Array:
    """Return [row, n] values at other times, on lines between theirs."""
    return np.stack([np.interp(at, time_s, column) for column in values.T], axis=1)


def nearest_signs(q: Array) -> Array:
    """Return the quaternions, each with the sign that is nearest to the one before."""
    flips = np.where((q[1:] * q[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
    result: Array = q * np.concatenate([[1.0], np.cumprod(flips)])[:, None]
    return result


# -- the file --------------------------------------------------------------------------------------

LARGEST_FILE = 400_000_000  # bytes


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a plain file that is not too large."""
    try:
        return read_limited(path, LARGEST_FILE)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(
            f"{path} has more than {LARGEST_FILE // 10**6} MB: cut it to a flight"
        ) from None


# -- which one it is -------------------------------------------------------------------------------

ULOG = b"ULog\x01\x12\x35"
CRAZYFLIE = re.compile(r"(stateEstimateZ?|stabilizer|gyro|acc|motor|rpm)\.\w+")


def is_betaflight(names: Sequence[str]) -> bool:
    return "loopIteration" in map(bare, names) or "gyroADC[0]" in map(bare, names)


def is_crazyflie(names: Sequence[str]) -> bool:
    return sum(bool(CRAZYFLIE.fullmatch(name)) for name in names) >= 3


def bare(name: str) -> str:
    """Return a column's name without quotes, spaces and unit: ` time (us)` is `time`."""
    return re.sub(r"\s*\([^)]*\)$", "", name.strip().strip('"')).strip()


def missing(path: Path, what: str, remedy: str) -> DamagedFileError:
    return DamagedFileError(f"{path}: {what}: {remedy}")


# -- Betaflight ------------------------------------------------------------------------------------

BETAFLIGHT = re.compile(r"time|(gyroADC|accSmooth|imuQuaternion)\[[0-2]\]|(motor|eRPM)\[[0-3]\]")
# Motors 1 to 4 are rear right, front right, rear left and front left: of each rotor here.
BETAFLIGHT_MOTORS = (1, 0, 2, 3)
DSHOT = (48.0, 2047.0)
PWM = (1000.0, 2000.0)
POLES, LSB_PER_G, QUATERNION = 14, 2048.0, 32767.0
TILT_S = 3.0  # within which gravity corrects an attitude that is integrated


def betaflight_columns(names: Sequence[str]) -> set[str]:
    """Return the columns that are read, as they are called in the file."""
    return {name for name in names if BETAFLIGHT.fullmatch(bare(name))}


def betaflight(path: Path, columns: Mapping[str, Array], facts: Mapping[str, str]) -> Table:
    """Read a blackbox CSV of blackbox_decode or of the Blackbox Explorer; `facts` are the lines
    above its header, which the latter writes."""
    units = {bare(name): name for name in columns}
    by_name = {bare(name): values for name, values in columns.items()}

    def group(kind: str, count: int) -> list[Array] | None:
        found = [by_name.get(f"{kind}[{index}]") for index in range(count)]
        return None if any(each is None for each in found) else [f for f in found if f is not None]

    table = Table({})
    if "time" not in by_name:
        raise missing(path, "the column time (us) is missing", "write all columns of the log")
    table.columns["time_s"] = by_name["time"] * 1e-6
    gyro = group("gyroADC", 3)
    if gyro is None:
        raise missing(path, "gyroADC[0] to [2] are missing", "log the gyroscope (blackbox fields)")
    table.put(RATE, "xyz", [values * DEGREE for values in gyro])
    force = group("accSmooth", 3)
    if force is None:
        raise missing(
            path,
            "accSmooth[0] to [2] are missing, which say how large the thrust is",
            "log the accelerometer (set blackbox_disable_acc = OFF)",
        )
    if "(g)" in units["accSmooth[0]"]:
        scale = GRAVITY_M_S2
    elif "(m/s" in units["accSmooth[0]"]:
        scale = 1.0
    else:
        meaning = f"accSmooth has {LSB_PER_G:g} for 1 g, as most boards have"
        scale = GRAVITY_M_S2 / fact_or(LSB_PER_G, meaning, table, facts, "acc_1G")
    table.put(FORCE, "xyz", [values * scale for values in force])
    if attitude := group("imuQuaternion", 3):
        x, y, z = (values / QUATERNION for values in attitude)
        w = np.sqrt(np.clip(1.0 - x * x - y * y - z * z, 0.0, None))
        table.put(ATTITUDE, "wxyz", [w, x, y, z])
    else:
        table.put(ATTITUDE, "wxyz", integrated_attitude(table.columns).T)
        table.notes.append(
            "assumed: the attitude is the gyroscope's integral, with gravity by the accelerometer, "
            "so that nothing checks the gyroscope; state it by imuQuaternion (Betaflight 2025.12, "
            "set blackbox_disable_attitude = OFF)"
        )
    put_betaflight_motors(path, table, group("motor", 4), group("eRPM", 4), facts)
    return table


def fact_or(usual: float, meaning: str, table: Table, facts: Mapping[str, str], name: str) -> float:
    """Return a number above 0 that stands above the header; without it the usual one, and note that
    it was assumed."""
    with contextlib.suppress(ValueError):
        stated = float(facts.get(name, ""))
        if math.isfinite(stated) and stated > 0.0:
            return stated
    table.notes.append(f"assumed: {meaning}; state it by a line {name},N above the header")
    return usual


def put_betaflight_motors(
    path: Path,
    table: Table,
    motors: list[Array] | None,
    speeds: list[Array] | None,
    facts: Mapping[str, str],
) -> None:
    if motors is None and speeds is None:
        raise missing(path, "motor[0] to [3] are missing", "log the motors (blackbox fields)")
    if motors is not None:
        # DShot's least is 48 or the idle above it, and 0 to 47 are no speeds; analog is 1000 up.
        low, high = PWM if min(float(m.min()) for m in motors) >= PWM[0] - 1 else DSHOT
        ordered = [(motors[index] - low) / (high - low) for index in BETAFLIGHT_MOTORS]
        table.put(SPEED, ROTORS, [np.clip(values, 0.0, 1.0) for values in ordered])
        table.notes.append(
            f"assumed: motor {low:g} to {high:g} is a fraction of the greatest rotor speed"
        )
    if speeds is not None and min(float(each.max()) for each in speeds) > 0.0:
        meaning = f"the motors have {POLES:g} poles, by which eRPM is divided"
        factor = 100.0 / (0.5 * fact_or(POLES, meaning, table, facts, "motor_poles"))
        table.put(RPM, ROTORS, [speeds[index] * factor for index in BETAFLIGHT_MOTORS])
    elif motors is not None:
        table.notes.append(
            "without eRPM the rotors' speeds are taken from the commands: with bidirectional DShot "
            "(set dshot_bidir = ON) they are measured"
        )


def integrated_attitude(columns: Mapping[str, Array]) -> Array:
    """Integrate the gyroscope from row to row, while gravity corrects roll and pitch slowly."""
    rates = np.stack([columns[RATE.format(axis)] for axis in "xyz"], axis=1)
    force = np.stack([columns[FORCE.format(axis)] for axis in "xyz"], axis=1)
    force = force / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
    steps = np.diff(columns["time_s"], append=columns["time_s"][-1])
    first = force[: max(len(force) // 100, 1)].mean(axis=0)
    roll, pitch = math.atan2(first[1], first[2]), math.atan2(-first[0], math.hypot(*first[1:]))
    w, x, y, z = (
        float(each) for each in of_angles(*(np.array([a]) for a in (roll, pitch, 0.0)))[0]
    )
    result = np.empty((len(steps), 4))
    for row, (dt, rate, up) in enumerate(
        zip(steps.tolist(), rates.tolist(), force.tolist(), strict=True)
    ):
        result[row] = w, x, y, z
        # The world's z in the body, and what turns it to the measured one.
        ux, uy, uz = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
        a = 0.5 * dt * (rate[0] + (up[1] * uz - up[2] * uy) / TILT_S)
        b = 0.5 * dt * (rate[1] + (up[2] * ux - up[0] * uz) / TILT_S)
        c = 0.5 * dt * (rate[2] + (up[0] * uy - up[1] * ux) / TILT_S)
        w, x, y, z = (
            w - a * x - b * y - c * z,
            x + a * w + c * y - b * z,
            y + b * w + a * z - c * x,
            z + c * w + b * x - a * y,
        )
        size = math.sqrt(w * w + x * x + y * y + z * z) or 1.0
        w, x, y, z = w / size, x / size, y / size, z / size
    return result


# -- Crazyflie -------------------------------------------------------------------------------------

TIMES = ("Timestamp", "timestamp", "time", "tick")
MOTORS = 65535.0


def crazyflie_columns(names: Sequence[str]) -> set[str]:
    return {name for name in names if name in TIMES or CRAZYFLIE.fullmatch(name)}


def crazyflie(path: Path, columns: Mapping[str, Array]) -> Table:
    """Read a CSV of the client, of cflib or of the micro-SD deck, with the firmware's names."""
    table = Table({})

    def group(prefix: str, names: Sequence[str]) -> list[Array] | None:
        wanted = [f"{prefix}.{name}" for name in names]
        return [columns[name] for name in wanted] if all(w in columns for w in wanted) else None

    name = next((each for each in TIMES if each in columns), None)
    if name is None:
        raise missing(path, "the column timestamp is missing", f"name one of {', '.join(TIMES)}")
    time = columns[name] - columns[name][0]
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    table.columns["time_s"] = time * (1e-6 if step >= 500.0 else 1e-3 if step >= 0.5 else 1.0)
    if rates := group("gyro", "xyz"):
        table.put(RATE, "xyz", [values * DEGREE for values in rates])
    elif rates := group("stateEstimateZ", ("rateRoll", "ratePitch", "rateYaw")):
        roll, pitch, yaw = (1e-3 * values for values in rates)
        table.put(RATE, "xyz", [roll, -pitch, yaw])
    else:
        raise missing(path, "gyro.x, gyro.y and gyro.z are missing", "add them to the log's blocks")
    attitude = crazyflie_attitude(path, columns)
    table.put(ATTITUDE, "wxyz", attitude.T)
    if force := group("acc", "xyz"):
        table.put(FORCE, "xyz", [GRAVITY_M_S2 * values for values in force])
    elif world := group("stateEstimateZ", ("ax", "ay", "az")):
        table.put(FORCE, "xyz", turned_back(attitude, 1e-3 * np.stack(world, axis=1)).T)
    elif world := group("stateEstimate", ("ax", "ay", "az")):
        in_g = np.stack(world, axis=1) + np.array([0.0, 0.0, 1.0])
        table.put(FORCE, "xyz", turned_back(attitude, GRAVITY_M_S2 * in_g).T)
    if velocity := group("stateEstimate", ("vx", "vy", "vz")):
        table.put(VELOCITY, "xyz", velocity)
    elif velocity := group("stateEstimateZ", ("vx", "vy", "vz")):
        table.put(VELOCITY, "xyz", [1e-3 * values for values in velocity])
    motors, speeds = (group(kind, ("m1", "m2", "m3", "m4")) for kind in ("motor", "rpm"))
    if motors is not None:
        table.put(SPEED, ROTORS, [values / MOTORS for values in motors])
        table.notes.append(
            "assumed: motor.m1 to motor.m4 are fractions of the greatest rotor speed, 65535; where "
            "they are thrusts, write thrust_* of docs/fit.md"
        )
    if speeds is not None:
        table.put(RPM, ROTORS, speeds)
    if motors is None and speeds is None:
        raise missing(
            path, "motor.m1 to motor.m4 (and rpm.m1 to rpm.m4) are missing", "add them to the log"
        )
    return table


def crazyflie_attitude(path: Path, columns: Mapping[str, Array]) -> Array:
    """Return the attitude, [row, w x y z], by the best of its logs."""
    if all(f"stateEstimate.q{part}" in columns for part in "wxyz"):
        return np.stack([columns[f"stateEstimate.q{part}"] for part in "wxyz"], axis=1)
    if "stateEstimateZ.quat" in columns:
        return decompressed(columns["stateEstimateZ.quat"])
    for prefix in ("stateEstimate", "stabilizer"):
        names = [f"{prefix}.{angle}" for angle in ("roll", "pitch", "yaw")]
        if all(name in columns for name in names):
            roll, pitch, yaw = (DEGREE * columns[name] for name in names)
            return of_angles(roll, -pitch, yaw)
    raise missing(
        path,
        "there is no attitude",
        "log stateEstimate.qw to qz, stateEstimateZ.quat, or stabilizer.roll, pitch and yaw",
    )


def decompressed(packed: Array) -> Array:
    """Return quaternions w x y z of the firmware's quatcompress.h: the index of the largest of x,
    y, z, w, then sign and 9 bits of each other one."""
    bits = np.round(packed).astype(np.int64) & 0xFFFFFFFF
    largest = bits >> 30
    rows = np.arange(len(bits))
    q = np.zeros((len(bits), 4))
    for part in (3, 2, 1, 0):
        here = largest != part
        value = np.sqrt(0.5) * (bits & 0x1FF) / 0x1FF
        q[here, part] = np.where(bits & 0x200, -value, value)[here]
        bits = np.where(here, bits >> 10, bits)
    q[rows, largest] = np.sqrt(np.clip(1.0 - (q**2).sum(axis=1), 0.0, None))
    return q[:, [3, 0, 1, 2]]


# -- PX4 -------------------------------------------------------------------------------------------

PROFILE = "set SDLOG_PROFILE to 25 (default, system identification, high rate), for its full rate"
SLOWEST_HZ = 45.0  # of commands
SLOWEST_VELOCITY_HZ = 4.5
TOPICS = (
    *("sensor_combined", "vehicle_attitude", "vehicle_local_position", "actuator_motors"),
    *("esc_status", "vehicle_land_detected"),
)
FORMAT, SUBSCRIBE, LOGGED = b"FAL"  # the last two end the definitions
MAX_FIELDS, DEEPEST, MAX_FORMATS = 20_000, 8, 2_000
FIRST_MOTOR = 101  # of actuator functions
UNUSABLE = (
    *(ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError),
    *(struct.error, UnicodeDecodeError, RecursionError, EOFError, OSError),
)


def px4(path: Path, data: bytes) -> Table:
    """Read a ULog of PX4 with pyulog; what its definitions expand to is bounded before that."""
    from pyulog.core import ULog
    from pyulog.exceptions import (
        ULogException,
        ULogIncompatibleFlagException,
    )

    damaged = DamagedFileError(f"{path} is not a usable ULog: it is cut off or damaged")
    try:
        check_definitions(path, io.BytesIO(data))
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its warnings
            log = ULog(io.BytesIO(data), list(TOPICS))
    except (*UNUSABLE, ULogException, ULogIncompatibleFlagException):
        raise damaged from None
    try:
        return px4_table(path, log)
    except UNUSABLE:
        raise damaged from None


def check_definitions(path: Path, file: BinaryIO) -> None:
    """Raise DamagedFileError where formats of messages expand to more than any message holds."""
    file.seek(16)
    fields: dict[str, list[tuple[str, int]]] = {}
    while len(head := file.read(3)) == 3:
        size, kind = struct.unpack("<HB", head)
        if kind in (SUBSCRIBE, LOGGED):
            break
        data = file.read(size)
        if kind != FORMAT:
            continue
        name, _, body = data.decode("latin-1").partition(":")
        parts = [part.split(" ")[0] for part in body.split(";") if part]
        fields[name] = [array_of(part) for part in parts]
        if len(fields) > MAX_FORMATS:
            raise DamagedFileError(f"{path} defines more than {MAX_FORMATS} messages")

    def expanded(name: str, depth: int) -> int:
        if name not in fields:
            return 1
        if depth > DEEPEST:
            return MAX_FIELDS + 1
        total = 0
        for kind, count in fields[name]:
            total += max(count, 1) * expanded(kind, depth + 1)
            if total > MAX_FIELDS:
                break
        return total

    for name in TOPICS:
        if expanded(name, 0) > MAX_FIELDS:
            raise DamagedFileError(f"{path}: its message {name} has more fields than any of PX4's")


def array_of(kind: str) -> tuple[str, int]:
    """Return a field's type and its number, of `float[3]`."""
    name, _, count = kind.partition("[")
    return name, int(count.rstrip("]") or 0) if count else 0


def px4_table(path: Path, log: Any) -> Table:
    def topic(name: str) -> Any:
        found = [each for each in log.data_list if each.name == name and each.multi_id == 0]
        return found[0].data if found and len(found[0].data["timestamp"]) > 1 else None

    sensors, attitude = topic("sensor_combined"), topic("vehicle_attitude")
    if sensors is None or attitude is None:
        what = "sensor_combined" if sensors is None else "vehicle_attitude"
        raise missing(path, f"the topic {what} is missing", PROFILE)
    table = Table({})
    seconds = sensors["timestamp"].astype(float) * 1e-6
    commands, escs, velocity = topic("actuator_motors"), topic("esc_status"), None
    position = topic("vehicle_local_position")
    ends = [data for data in (attitude, commands, escs, position) if data is not None]
    start = max(seconds[0], *(float(each["timestamp"][0]) * 1e-6 for each in ends))
    end = min(seconds[-1], *(float(each["timestamp"][-1]) * 1e-6 for each in ends))
    rows = (seconds >= start) & (seconds <= end) & (np.diff(seconds, prepend=-np.inf) > 0.0)
    if (landed := topic("vehicle_land_detected")) is not None:
        latest = np.searchsorted(landed["timestamp"] * 1e-6, seconds, side="right") - 1
        on_ground = (np.asarray(landed["landed"])[np.maximum(latest, 0)] != 0) & (latest >= 0)
        if np.any(rows & ~on_ground):
            rows &= ~on_ground
            table.notes.append("rows on the ground by vehicle_land_detected were left out")
    at = seconds[rows]
    if len(at) < 2:
        raise missing(path, "its topics have no time in common", "cut the log to a flight")
    table.columns["time_s"] = at - at[0]
    table.notes.append(f"time 0 is {at[0]:.3f} s of the ULog's clock")
    down = np.array([1.0, -1.0, -1.0])  # front, right, down and north, east, down
    gyro = [sensors[f"gyro_rad[{k}]"][rows] * down[k] for k in range(3)]
    table.put(RATE, "xyz", gyro)
    table.put(FORCE, "xyz", [sensors[f"accelerometer_m_s2[{k}]"][rows] * down[k] for k in range(3)])
    table.put(ATTITUDE, "wxyz", px4_attitude(attitude, at))
    if (rate := hertz(attitude)) < SLOWEST_HZ:
        table.notes.append(
            f"vehicle_attitude has {rate:.0f} rows a second, and lines between them: {PROFILE}"
        )
    if position is not None:
        velocity = [lines(position, name, at) for name in ("vx", "vy", "vz")]
        rate = hertz(position)
        if rate >= SLOWEST_VELOCITY_HZ:
            table.put(VELOCITY, "xyz", [v * s for v, s in zip(velocity, down, strict=True)])
            table.notes.append(
                f"vehicle_local_position has {rate:.0f} rows a second, and lines between them"
            )
    put_px4_rotors(path, table, log, commands, escs, at)
    return table


def put_px4_rotors(path: Path, table: Table, log: Any, commands: Any, escs: Any, at: Array) -> None:
    """Put the commands and measured speeds in the contract's order, by the rotors' places."""
    order, measured = px4_order(path, log), None
    if escs is not None:
        measured = px4_speeds(escs, order, at)
        if measured is not None and hertz(escs) < SLOWEST_HZ:
            table.notes.append(
                f"esc_status has {hertz(escs):.0f} rows a second and is not used: {PROFILE}"
            )
            measured = None
    if commands is not None and hertz(commands) < SLOWEST_HZ:
        what = f"actuator_motors has {hertz(commands):.0f} rows a second"
        if measured is None:
            raise missing(path, f"{what}, and rotors are faster", PROFILE)
        table.notes.append(f"{what} and is not used: {PROFILE}")
        commands = None
    if measured is not None:
        table.put(RPM, ROTORS, measured)
    elif commands is None:
        raise missing(path, "neither actuator_motors nor esc_status with speeds is there", PROFILE)
    if commands is None:
        return
    held = np.searchsorted(commands["timestamp"] * 1e-6, at, side="right") - 1
    values = [commands[f"control[{index}]"][held] for index in order]
    values = [np.nan_to_num(np.asarray(each, float)) for each in values]
    curve = float(log.initial_parameters.get("THR_MDL_FAC", math.nan))
    kind = "thrust" if curve > 0.0 else "speed"
    table.put(kind + "_{}", ROTORS, values)
    if math.isnan(curve):
        table.notes.append(
            "assumed: actuator_motors are fractions of the greatest rotor speed, as THR_MDL_FAC is "
            "not in the log"
        )


def px4_order(path: Path, log: Any) -> list[int]:
    """Return the motor of each rotor, by the places that CA_ROTOR0_PX and so on state."""
    parameters = log.initial_parameters
    places: dict[str, int] = {}
    for motor in range(4):
        x, y = (parameters.get(f"CA_ROTOR{motor}_P{axis}") for axis in "XY")
        if x is None or y is None:
            raise missing(
                path,
                f"the parameter CA_ROTOR{motor}_PX or _PY is missing, which says where it is",
                "log the parameters, or write the columns of docs/fit.md",
            )
        places[f"{'front' if x > 0 else 'rear'}_{'right' if y > 0 else 'left'}"] = motor
    if float(parameters.get("CA_ROTOR_COUNT", 4)) != 4 or len(places) != 4:
        raise missing(path, "its rotors are not four in an x", "fit is for quadrotors alone")
    return [places[rotor] for rotor in ROTORS]


def px4_speeds(escs: Any, order: list[int], at: Array) -> list[Array] | None:
    """Return the measured speeds in rpm, on lines between their times, if there are some."""
    number_of = {}
    for index in range(8):
        function = escs.get(f"esc[{index}].actuator_function")
        if f"esc[{index}].esc_rpm" in escs:
            motor = index if function is None else int(function[-1]) - FIRST_MOTOR
            number_of[motor] = index
    if not all(motor in number_of for motor in order):
        return None
    columns = [np.abs(lines(escs, f"esc[{number_of[motor]}].esc_rpm", at)) for motor in order]
    return columns if all(np.ptp(column) > 0.0 for column in columns) else None


def hertz(data: Any) -> float:
    steps = np.diff(np.asarray(data["timestamp"], float))
    return 1e6 / max(float(np.median(steps)), 1.0)


def lines(data: Any, name: str, at: Array) -> Array:
    """Return a topic's field on lines between its times."""
    result: Array = np.interp(at, data["timestamp"] * 1e-6, np.asarray(data[name], float))
    return result


def px4_attitude(attitude: Any, at: Array) -> list[Array]:
    q = np.stack([np.asarray(attitude[f"q[{k}]"], float) for k in range(4)], axis=1)
    parts = interpolated(at, attitude["timestamp"] * 1e-6, nearest_signs(q)).T
    size = np.sqrt(sum(part**2 for part in parts))
    signs = (1.0, 1.0, -1.0, -1.0)
    return [s * part / np.maximum(size, 1e-9) for part, s in zip(parts, signs, strict=True)]

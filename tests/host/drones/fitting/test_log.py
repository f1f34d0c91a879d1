"""Logs that are not what they should be: one sentence that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadrotor_fit import NAMES, columns_of
from quadrotor_flight import Array
from rltools_host.commands import cli
from rltools_host.drones.fitting.checks import check_log
from rltools_host.drones.fitting.formats import LARGEST_FILE
from rltools_host.drones.fitting.log import FlightLog, read_log
from rltools_host.drones.fitting.model import back, turn
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.tree import TREE

EXAMPLE = TREE.root / "examples" / "fit" / "flight.csv"
TEXT = EXAMPLE.read_text()
LINES = TEXT.splitlines()
HEADER = LINES[0].split(",")
VALUES = np.array([line.split(",") for line in LINES[1:]], float)

Columns = dict[str, Array]
Case = tuple[Callable[[Columns], None], str]


def some_every_day(cases: list[Case], every: int) -> list[Any]:
    """The cases, of which each `every`th runs every day: all of them take minutes."""
    return [
        case if index % every == 0 else pytest.param(*case, marks=pytest.mark.all)
        for index, case in enumerate(cases)
    ]


def columns() -> Columns:
    return {name: VALUES[:, index].copy() for index, name in enumerate(HEADER)}


def log_of(path: Path, table: Columns) -> FlightLog:
    rows = zip(*table.values(), strict=True)
    lines = [",".join(f"{value:.9g}" for value in row) for row in rows]
    path.write_text("\n".join([",".join(table), *lines]) + "\n")
    return read_log(path)


def sentence_of(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DamagedFileError) as caught:
        check_log(read_log(path))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_the_example_is_as_it_should_be(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log.csv", columns())
    check_log(log)
    assert not log.commands_thrust
    assert log.lines[0] == 2
    assert log.unused == ()
    assert log.step_s == pytest.approx(0.006)
    np.testing.assert_array_equal(log.attitude[:, 0], VALUES[:, 1])
    assert log.velocity is not None
    np.testing.assert_array_equal(log.velocity[:, 2], VALUES[:, HEADER.index("velocity_z_m_s")])
    np.testing.assert_array_equal(log.commands[:, 3], VALUES[:, -1])


def test_order_of_columns_and_spaces_do_not_matter(tmp_path: Path) -> None:
    table = dict(reversed(columns().items()))
    log = log_of(tmp_path / "a.csv", table)
    text = TEXT.replace(",", " , ").replace("\n", "\r\n") + "\r\n\r\n"
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    other = read_log(tmp_path / "b.csv")
    np.testing.assert_array_equal(log.commands, other.commands)
    np.testing.assert_array_equal(log.time_s, other.time_s)


# -- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty: a log begins with a line of column names"),
        ("\n".join(LINES[1:]), "its first line has numbers: begin with column names"),
        (TEXT.replace(",", ";"), "separated by semicolons or tabs: write commas"),
        (TEXT.replace("time_s", "time_ms", 1), "the column time_s is missing: did you mean time_m"),
        (
            TEXT.replace("acceleration_", "a_").replace(",velocity_", ",v_"),
            "neither acceleration_x_m_s2 (of an acc",
        ),
        (TEXT.replace("speed_", "m_"), "the commands are missing: name them thrust_front_right"),
        (
            TEXT.replace("speed_rear_left", "thrust_rear_left", 1),
            "the column thrust_front_right is missing",
        ),
        (TEXT.replace("speed_rear_left", "speed_rear_right", 1), "speed_rear_right is there twice"),
        ("\n".join(LINES[:150]), "has 149 rows: at least 200 are needed"),
        (TEXT[: len(TEXT) // 2 + 7], "values and the header 18: the file is cut off or damaged"),
        (
            "\n".join([*LINES[:300], "", "x" + LINES[300]]),
            'line 302, time_s: "x1.794" is not a usable number',
        ),
        (TEXT.replace(",-0.033,", ",nan,", 1), '_x_rad_s: "nan" is not a usable number'),
        (TEXT.replace(",", "," * 1000, 1), "has 1,017 columns, and 500 at most are read"),
        (TEXT.replace(LINES[300], "9" * 200_001), "line 301: it is longer than 200,000 characters"),
        (TEXT.replace(LINES[300], f'"{LINES[300]}'), "line 301: it is not CSV: an open quote"),
        (b"\x89PNG\xff\xfe\x00" * 40, "is not text: write the log as CSV"),
    ],
)
def test_files_that_are_no_log(tmp_path: Path, text: str | bytes, reason: str) -> None:
    assert reason in sentence_of(tmp_path / "log.csv", text)


def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no.csv", "No such file")):
        with pytest.raises(UsageError, match=f"cannot read {path}: {reason}"):
            read_log(path)
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(UsageError, match="has more than 400 MB: cut it to a flight"):
        read_log(large)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["fit", "no.csv"]) == UsageError.exit_code


@settings(max_examples=60)
@given(st.data())
def test_damaged_files_are_read_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes that are changed, cut out or put in."""
    whole = bytearray("\n".join(LINES[:260]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        length = data.draw(st.integers(0, 300))
        whole[place : place + length] = data.draw(st.binary(max_size=12))
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(bytes(whole))
    try:
        log = read_log(path)
        check_log(log)
    except RltError as error:
        lines = str(error).splitlines()
    else:
        assert np.all(np.isfinite(log.commands))
        lines = [""]
    assert len(lines) == 1


@given(st.binary(max_size=300))
def test_any_bytes_are_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    sentence_of(tmp_path_factory.getbasetemp() / "any.csv", data)


# -- units, frames, time ---------------------------------------------------------------------------

RATES = tuple(f"angular_velocity_{axis}_rad_s" for axis in "xyz")
FORCES = tuple(f"acceleration_{axis}_m_s2" for axis in "xyz")
SPEEDS = tuple(f"velocity_{axis}_m_s" for axis in "xyz")
ATTITUDE = tuple(f"attitude_{part}" for part in "wxyz")
COMMANDS = tuple(HEADER[-4:])


def times(factor: float, *names: str) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        for name in names:
            table[name] *= factor

    return change


def moved(*pairs: tuple[str, str]) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        new = {name: table[old] for name, old in pairs}
        table.update(new)

    return change


def row(name: str, place: int, value: float) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        table[name][place] = value

    return change


def saturated(table: Columns) -> None:
    table[COMMANDS[2]][:900] = 1.0


def still_commands(table: Columns) -> None:
    for name in COMMANDS:
        table[name][:] = 0.7


def still(name: str, value: float) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        table[name][:] = value

    return change


def other_rates(table: Columns) -> None:
    for name in RATES:
        table[name] = np.roll(table[name], 500)


def north_east_down(table: Columns) -> None:
    table[SPEEDS[1]] *= -1.0
    table[SPEEDS[2]] *= -1.0


WRONG: list[Case] = [
    (row("time_s", 50, 0.1), "line 52: it has no later time than the row before"),
    (times(1e3, "time_s"), "its rows are 6 s apart: 0.02 s is the most"),
    (times(0.1, "time_s"), "it lasts 1.05 s: 4 to 600 s in the air are needed"),
    (
        times(180.0 / np.pi, *RATES),
        "rad/s is more than any flight has: degrees a second are divided",
    ),
    (times(1.0 / 9.81, *FORCES), "0.103 times gravity's 9.81: in g? multiply by 9.81; gravity is"),
    (times(-1.0, FORCES[1], FORCES[2]), "acceleration_z is -9.9 m/s^2 on average: z is up"),
    (times(65535.0, *COMMANDS), "is not a fraction, speed_* are 0 to 1: scale the commands from"),
    (times(2.0, *ATTITUDE), "line 2: the attitude's length is 2 and not 1"),
    (
        moved(*zip(ATTITUDE, (*ATTITUDE[1:], ATTITUDE[0]), strict=True)),
        "the attitude's elements seem to be x y z w: write w first",
    ),
    (times(-1.0, *ATTITUDE[1:]), "the attitude seems to turn the world's vectors into the bo"),
    (times(-1.0, *RATES[1:]), "the angular velocity is of another frame than the attitude's"),
    (other_rates, "the angular velocity does not turn as the attitude's change says"),
    (north_east_down, "the velocity is of another frame than acceleration and attitude say"),
    (saturated, "the rear left rotor's command is at its limit, mostly 1, in 51 % of the rows"),
    (still_commands, "its commands do not change: it is not of a flight"),
    (still(COMMANDS[3], 0.5), "the front left rotor's command is 0.5 in all rows: write those"),
    (still(SPEEDS[2], 0.0), "z_m_s is 0 in all rows: write the measurements, or leave veloc"),
]


@pytest.mark.parametrize(("change", "reason"), some_every_day(WRONG, 5))
def test_what_is_wrong_is_named(
    tmp_path: Path, change: Callable[[Columns], None], reason: str
) -> None:
    table = columns()
    change(table)
    with pytest.raises(DamagedFileError) as caught:
        check_log(log_of(tmp_path / "log.csv", table))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_other_quaternion_of_an_attitude_is_the_same(tmp_path: Path) -> None:
    table = columns()
    for name in ATTITUDE:
        table[name][::3] *= -1.0
    check_log(log_of(tmp_path / "log.csv", table))


# -- logs whose sensors contradict each other ------------------------------------------------------


def late(seconds: float, *names: str) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        for name in names:
            table[name] = np.interp(table["time_s"] - seconds, table["time_s"], table[name])

    return change


def turned(names: tuple[str, ...], inverse: bool) -> Callable[[Columns], None]:
    """A vector of the body into the world, or back."""

    def change(table: Columns) -> None:
        q = np.stack([table[name] for name in ATTITUDE], axis=1)
        function = back if inverse else turn
        columns = function(q, np.stack([table[name] for name in names], axis=1)).T
        table.update(zip(names, columns, strict=True))

    return change


def both(*changes: Callable[[Columns], None]) -> Callable[[Columns], None]:
    def change(table: Columns) -> None:
        for each in changes:
            each(table)

    return change


def swapped(one: str, other: str) -> Callable[[Columns], None]:
    return moved((one, other), (other, one))


GYRO = "the angular velocity is {} times what the attitude's change says: {}"
MOVES = "the velocity is {} times what acceleration and attitude say: {}"
WEIGHS = "the acceleration is {} times what gravity and attitude say"
DELAYED = "is {} than {} stamp each with the time at which it was measured"


CONTRADICTIONS: list[Case] = [
    (times(np.pi / 180, *RATES), GYRO.format("0.0174", "radians that were taken for degrees")),
    (times(1.3, *RATES), GYRO.format("1.3", "of no unit that is known here; divide by 1.3")),
    (times(0.75, *RATES), GYRO.format("0.748", "of no unit that is known here")),
    (times(np.pi / 180, RATES[2]), "angular_velocity_z_rad_s is 0.0173 times what the attit"),
    (times(-1.0, RATES[1]), "velocity has other signs than the attitude's change says (angula"),
    (times(-1.0, RATES[2]), "(angular_velocity_z_rad_s follows minus z)"),
    (swapped(*RATES[:2]), "has its axes in another order than the attitude's change says (ang"),
    (late(0.06, *RATES), DELAYED.format("60 ms later", "the attitude's change says:")),
    (late(0.05, *ATTITUDE), DELAYED.format("50 ms earlier", "the attitude's change says:")),
    (times(-1.0, *ATTITUDE[2:]), "the angular velocity is of another frame than the attitude"),
    (
        both(
            times(-1.0, *ATTITUDE[1:]),
            moved(*zip(ATTITUDE, (*ATTITUDE[1:], ATTITUDE[0]), strict=True)),
        ),
        "be x y z w and the attitude seems to turn the world's vectors into the body",
    ),
    (times(0.5, *FORCES), WEIGHS.format("0.501")),
    (times(0.8, *FORCES), WEIGHS.format("0.801")),
    (times(9.81, *FORCES), "9.87 times gravity's 9.81: multiplied by 9.81 once too often"),
    (swapped(FORCES[0], FORCES[2]), "acceleration_x_m_s2 has gravity (9.9 m/s^2 on average)"),
    (turned(FORCES, False), "the acceleration seems to be of the world's axes: write the body"),
    (late(0.1, *FORCES), DELAYED.format("100 ms earlier", "acceleration and attitude say:")),
    (times(0.01, *SPEEDS), MOVES.format("0.0103", "divided by 100 once too often")),
    (times(3.6, *SPEEDS), MOVES.format("3.7", "km/h where m/s are expected")),
    (times(0.01, SPEEDS[2]), "velocity_z_m_s is 0.0102 times what acceleration and attitude"),
    (times(-1.0, SPEEDS[2]), "(velocity_z_m_s follows minus z)"),
    (
        both(swapped(*SPEEDS[:2]), times(-1.0, SPEEDS[2])),  # east, north, up as north, east...
        "(velocity_y_m_s follows x, velocity_x_m_s follows y, velocity_z_m_s follows minus z)",
    ),
    (late(0.1, *SPEEDS), DELAYED.format("100 ms later", "acceleration and attitude say:")),
    (times(2.0, "time_s"), "time_s runs 1.97 times as fast as the clock, divide it by that"),
]


@pytest.mark.parametrize(("change", "reason"), some_every_day(CONTRADICTIONS, 6))
def test_sensors_that_contradict_each_other_are_named(
    tmp_path: Path, change: Callable[[Columns], None], reason: str
) -> None:
    table = columns()
    change(table)
    with pytest.raises(DamagedFileError) as caught:
        check_log(log_of(tmp_path / "log.csv", table))
    assert reason in str(caught.value)


@pytest.mark.all
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (turned(RATES, False), "the angular velocity seems to be of the world's axes"),
        (turned(SPEEDS, True), "the velocity seems to be of the body's axes"),
    ],
)
def test_frames_are_told_where_it_leans(
    tmp_path: Path, change: Callable[[Columns], None], reason: str
) -> None:
    """The example leans too little for that, and says so."""
    wide, little = columns_of("raptor"), columns()
    change(wide)
    change(little)
    with pytest.raises(DamagedFileError, match=reason):
        check_log(log_of(tmp_path / "wide.csv", wide))
    said = check_log(log_of(tmp_path / "little.csv", little))
    assert f"it leans too little to tell whether {reason.replace('seems to be', 'is')}" in said


def test_what_is_not_checked_is_said(tmp_path: Path) -> None:
    table = columns()
    for name in FORCES:
        del table[name]
    assert "without acceleration_* velocity_z_m_s is not checked" in check_log(
        log_of(tmp_path / "log.csv", table)
    )
    table = columns()
    for name in SPEEDS:
        del table[name]
    assert len(check_log(log_of(tmp_path / "log.csv", table))) == 1


@pytest.mark.all
@pytest.mark.parametrize("name", NAMES)
def test_flights_in_noise_and_gusts_are_not_accused(tmp_path: Path, name: str) -> None:
    table = columns_of(name)
    check_log(log_of(tmp_path / "log.csv", table))
    for name in RATES:
        table[name] = table[name] + 0.05  # a bias
    for name in FORCES:
        table[name] = table[name] + 0.2
    late(0.02, *ATTITUDE)(table)
    late(0.02, *SPEEDS)(table)
    check_log(log_of(tmp_path / "log.csv", table))

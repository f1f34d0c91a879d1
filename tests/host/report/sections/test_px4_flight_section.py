"""The report's section with the flight of a PX4."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policy_run import make_policy_run, section_html
from quadrotor_policies import controller
from rltools_host.drones.flight.result import Series, measure
from rltools_host.drones.vehicles.px4_result import (
    FILE,
    FailSafe,
    FlightResult,
    HandBack,
    StartResult,
    read_flight,
)
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report.sections.fly import with_px4

TIMES = np.arange(0.0, 10.02, 0.02)


@pytest.fixture(scope="module")
def image() -> PolicyImage:
    return parse_policy(controller())


@pytest.fixture
def folder(tmp_path: Path, image: PolicyImage) -> Path:
    return make_policy_run(tmp_path / "run", image.data)


def series(begin_m: float, end_m: float, count: int = len(TIMES)) -> Series:
    rows = np.zeros((count, 13))
    rows[:, 0] = end_m + (begin_m - end_m) * np.exp(-TIMES[:count])
    rows[:, 6] = 1.0
    return Series(TIMES[:count], rows)


def flown(end_m: float = 0.04) -> StartResult:
    start = StartResult((0.5, 0.0, -0.3), series(0.5, end_m))
    assert start.series is not None
    start.measures = measure(start.series)
    start.compare(lambda first, times: series(float(first[0]), 0.01).rows[: len(times)])
    start.hand_back = HandBack(10.02, 0.03, 0.017, 0.8, 0.012, 0.02)
    return start


def broken_off() -> StartResult:
    start = StartResult((1.0, 0.0, 0.0), series(1.0, 1.0, 150), cause="it fell back <to> Hold")
    start.fail_safe = FailSafe(2.98, "outside the range <of> the policy")
    start.hand_back = HandBack(2.98, 1.4, None, 9.0, 0.3, 1.2)
    return start


def write(folder: Path, image: PolicyImage, *starts: StartResult, **fields: Any) -> None:
    result = FlightResult("udp:script", image.sha256, "a test", "done", "it is on the ground")
    result.starts = list(starts)
    for name, value in fields.items():
        setattr(result, name, value)
    (folder / FILE).write_text(json.dumps(result.document()))


def html_of(folder: Path, image: PolicyImage | None) -> str:
    return section_html(with_px4, folder, image)


def cells(html: str, start: str) -> list[list[str]]:
    """The rows of tables whose head is this start."""
    rows = re.findall(rf"<tr><th>{re.escape(start)}</th>(.*?)</tr>", html)
    return [re.findall(r'<td class="number">(.*?)</td>', row) for row in rows]


def test_nothing_to_show(folder: Path, image: PolicyImage) -> None:
    assert not html_of(folder, image)
    assert not html_of(folder, None)
    write(folder, image)
    assert not html_of(folder, image)
    write(folder, image, flown(), policy_sha256="ab" * 32)
    assert not html_of(folder, image)


def test_the_starts_are_beside_their_predictions(folder: Path, image: PolicyImage) -> None:
    write(folder, image, flown(), kept=True, notes=["NAV_DLL_ACT is 0"])
    html = html_of(folder, image)
    first, second = cells(html, "+0.5 +0.0 \N{MINUS SIGN}0.3")
    assert first == ["success", "0.50", "0.040", "1.06", "0.50", "0.010", "0.96", "0.030"]
    assert second == ["10.02", "0.03", "1.7", "0.8", "0.012", "0.020", "yes"]
    assert "fail-safe" not in html.lower()


def test_what_was_written_is_read(folder: Path, image: PolicyImage) -> None:
    write(folder, image, flown(), broken_off())
    flight = read_flight(folder / FILE)
    assert flight.vehicle == "udp:script"
    for start, original in zip(flight.starts, (flown(), broken_off()), strict=True):
        read, written = (each.document(with_series=False) for each in (start, original))
        # A series is rounded to micrometers.
        apart = written.pop("most_apart_m")
        assert read.pop("most_apart_m") == (apart and pytest.approx(apart, abs=1e-5))
        assert read == written


def damaged(key: str, value: Any) -> Any:
    return lambda document: document.__setitem__(key, value)


def damaged_series(change: Any) -> Any:
    return lambda document: change(document["starts"][0]["series"])


@pytest.mark.parametrize(
    "change",
    [
        damaged("starts", [{"offset_m": [0, 0, 0]}]),
        damaged_series(lambda series: series["rows"].pop()),
        damaged_series(lambda series: series["rows"][0].__setitem__(0, "0")),
    ],
)
def test_a_damaged_file_is_told(change: Any, folder: Path, image: PolicyImage) -> None:
    write(folder, image, flown())
    document = json.loads((folder / FILE).read_text())
    change(document)
    for content in (json.dumps(document), "{"):
        (folder / FILE).write_text(content)
        html = html_of(folder, image)
        assert "flight-px4.json is damaged" in html
        assert "<table>" not in html

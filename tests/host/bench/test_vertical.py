"""`rlt bench vertical`: every device ends in the same bits, and one that is missing says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.bench import harness, vertical
from rltools_host.bench.harness import MeasurementError
from rltools_host.bench.vertical import Device
from rltools_host.toolchain import tools

EMULATED_STEPS = 120  # twenty updates, of 10 million instructions each
HASH_120 = "f658ec6c3a62a1952779b41655e043c521809d51019e33c9f6b7c00457489461"
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"


def timed(*seconds: float, state: str = "same") -> Any:
    """Takes so long in its turns, in processor time half of it."""
    turns = iter(seconds)

    def measure(_: int) -> dict[str, Any]:
        took = next(turns)
        return {"train_s": took, "cpu_s": took / 2, "state_sha256": state}

    return measure


def missing(_: int) -> dict[str, Any]:
    raise MeasurementError("node not found: install it")


def instructions(steps: int) -> dict[str, Any]:
    return {"guest_instructions": 1000 * steps, "state_sha256": "shorter"}


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "avx2": Device("host, AVX2", "Host", timed(1.0, 4.0, 2.0)),
        "threads": Device("host, two threads", "HostThreads", timed(2.0, 4.0, 6.0)),
        "exact": Device("node, exact fma", "WebAssembly", timed(90.0)),
        "wrong": Device("a wrong one", "Host", timed(1.0, state="0123456789abcdef")),
        "node": Device("node", "WebAssembly", missing),
        "board": Device("a board", "CortexM7", instructions, is_emulated=True),
    }
    monkeypatch.setattr(vertical, "devices", lambda: known)
    monkeypatch.setattr(vertical, "state_here", {10_000: "same", 300: "shorter"}.__getitem__)


def rows_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in document["rows"]}


@pytest.mark.usefixtures("stand_ins")
def test_ratios_are_of_the_same_turn_and_long_runs_are_not_repeated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["bench", "vertical", "--json"]) == 0
    out = capsys.readouterr().out
    rows = rows_of(json.loads(out.splitlines()[-1]))
    assert {key: rows["avx2"][key] for key in ("device", "steps", "state_sha256", "runs")} == {
        "device": "Host",
        "steps": 10_000,
        "state_sha256": "same",
        "runs": 3,
    }
    took = ("train_s", "ratio", "cpu_s", "cpu_ratio")
    assert tuple(rows["avx2"][key] for key in took) == (2.0, 1.0, 1.0, 1.0)
    assert (rows["threads"]["train_s"], rows["threads"]["ratio"]) == (4.0, 2.0)  # of 2, 1 and 3
    assert (rows["exact"]["runs"], rows["exact"]["ratio"]) == (1, 90.0)
    assert (rows["board"]["steps"], rows["board"]["guest_instructions"]) == (300, 300_000)
    assert not {"train_s", "ratio"} & set(rows["board"]), "instructions are no time"
    for name in ("wrong", "node"):
        assert not {"train_s", "state_sha256"} & set(rows[name])
    assert "a wrong one: ended in other bits, 0123456789ab instead of same" in out
    assert "node: node not found: install it" in out


@pytest.mark.usefixtures("stand_ins")
def test_the_chart_has_instructions_on_an_axis_of_their_own(tmp_path: Path) -> None:
    chart = tmp_path / "chart.svg"
    vertical.run(vertical.VerticalBenchmark(chart=chart))
    text = chart.read_text()
    assert "45.00 s" in text, "processor time"
    assert "300,000" in text
    assert "processor seconds for 10,000 steps" in text
    assert "guest instructions for 300 steps, which are not time" in text
    assert "a wrong one" not in text


@pytest.mark.usefixtures("stand_ins")
def test_without_the_reference_there_is_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "vertical", "--devices", "threads", "--repetitions", "1"]) == 0
    assert "host, two threads  HostThreads  10,000  2.00 s    -  " in capsys.readouterr().out


def test_what_is_no_device_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "vertical", "--devices", "avx2,abacus"]) == 3
    assert 'unknown device "abacus"' in capsys.readouterr().err
    assert cli.run(["bench", "vertical", "--emulated-steps", "0"]) == 2
    assert "--emulated-steps 0: at least 1 is needed" in capsys.readouterr().err


def test_what_is_missing_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "missing_tools", lambda names: [tools.system_tools()[names[0]]])
    for name in ("node-exact", "chromium-lanes", "qemu-cortex-m7"):
        with pytest.raises(MeasurementError, match="not found"):
            vertical.devices()[name].measure(300)
    monkeypatch.setattr(vertical, "is_x86", lambda: False)
    with pytest.raises(MeasurementError, match="not of the kind x86"):
        vertical.devices()["avx2"].measure(300)
    monkeypatch.setattr(vertical.os, "sched_getaffinity", lambda _: {1}, raising=False)
    with pytest.raises(MeasurementError, match="one core only"):
        vertical.devices()["threads"].measure(300)


def test_vectors_that_the_processor_has_not_are_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the compiler knows no AVX-512, the widest program is that of AVX2."""
    raw = {"lanes": 8, "wall_s": 1.0, "cpu_s": 1.0, "state_sha256": "same"}
    monkeypatch.setattr(harness, "run_program", lambda *_: (raw, 0))
    monkeypatch.setattr(vertical, "is_x86", lambda: True)
    assert vertical.devices()["avx2"].measure(300)["train_s"] == 1.0
    with pytest.raises(MeasurementError, match="no vectors of 512 bits"):
        vertical.devices()["avx512"].measure(300)


def test_an_engine_that_does_not_fuse_is_a_row_with_the_reason() -> None:
    with pytest.raises(MeasurementError, match="not fused by this engine"):
        vertical.of_wasm({"error": "relaxed SIMD's multiply-add is not fused by this engine"})
    with pytest.raises(MeasurementError, match="not finite"):
        vertical.of_wasm({"finished": False})


@pytest.mark.all
def test_devices_that_are_here_end_in_the_bits_of_every_board(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who is missing is a row with the reason, and everybody else has the hash."""
    asked = [name for name, device in vertical.devices().items() if not device.is_emulated]
    words = ["--steps", "300", "--repetitions", "1", "--json"]
    words += ["--emulated-steps", str(EMULATED_STEPS)]
    words += ["--devices", ",".join([*asked, "qemu-cortex-m7"])]
    assert cli.run(["bench", "vertical", *words]) == 0
    rows = rows_of(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert set(rows) == {*asked, "qemu-cortex-m7"}
    assert "state_sha256" in rows["scalar"]
    emulated = rows["qemu-cortex-m7"]
    assert emulated.get("state_sha256", HASH_120) == HASH_120, emulated
    for row in rows.values():
        assert row is emulated or row.get("state_sha256", HASH_300) == HASH_300, row
        assert ("error" in row) != ("guest_instructions" in row or row.get("train_s", 0) > 0)
    if shutil.which("node") and tools.group_is_installed("zig"):
        assert rows["node-exact"].get("version"), rows["node-exact"]
        assert rows["node-exact"]["cpu_s"] > 0
    if not tools.missing_names(("chromium",)) and tools.group_is_installed("browser"):
        assert rows["chromium-exact"].get("cpu_s", 0) > 0, rows["chromium-exact"]


def test_cells_and_bars() -> None:
    entry = {"title": "t", "device": "Host", "steps": 10_000, "state_sha256": 64 * "a"}
    timed = {"train_s": 1.234, "ratio": 2.346, "cpu_s": 5.678, "cpu_ratio": 9.876}
    sha = 12 * "a"
    assert vertical.cells({**entry, **timed}) == (
        *("Host", "10,000", "1.23 s", "2.35", "5.68 s", "9.88", "-", sha),
    )
    counted = {**entry, "guest_instructions": 1234567}
    assert vertical.cells(counted) == ("Host", "10,000", *"----", "1,234,567", sha)
    assert vertical.bar_of({**entry, **timed}) == ("t", 5.678, "5.68 s", False)
    browsers = {**counted, "device": vertical.DEVICE}
    assert vertical.bar_of(browsers) == ("t", 1234567, "1,234,567", True)


def test_devices_are_in_the_usual_order_and_emulated_ones_count_instructions() -> None:
    found = vertical.chosen("qemu-cortex-m7, avx2,,scalar")
    assert list(found) == ["scalar", "avx2", "qemu-cortex-m7"]
    assert [device.is_emulated for device in found.values()] == [False, False, True]
    assert list(vertical.chosen(None)) == list(vertical.devices())
    said = {"finished": True, "seconds": 1.5, "cpu_s": 2.5, "hash": "h", "version": "v"}
    row = {"train_s": 1.5, "cpu_s": 2.5, "state_sha256": "h", "version": "v"}
    assert vertical.of_wasm(said) == row

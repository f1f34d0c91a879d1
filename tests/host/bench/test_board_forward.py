"""A forward pass on emulated boards: ours have the reference's bits, few instructions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boards_under_test import skip_without_tools
from rltools_host.bench import board_forward, harness
from rltools_host.boards.description import ALL_EMULATED, load_board
from rltools_host.build import cmake
from rltools_host.errors import UsageError
from rltools_host.link.transport import Link

# The most guest instructions of a pass: with the zeros of a trained policy, and without.
LIMITS = {
    "qemu-cortex-m7": (8_000, 10_000),
    "qemu-cortex-m4": (8_000, 10_000),
    "qemu-esp32c3": (260_000, 430_000),
}
MOST_OF_AN_IMAGE = 1.15  # times the compiled pass
ZEROS, NO_ZEROS = "half of the hidden units zero", "no zeros"


class ScriptedLink(Link):
    """A board that asks, and prints its measurement once it was answered."""

    description = "a scripted board"

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.text = b"".join(json.dumps(row).encode() + b"\n" for row in (*rows, {}))
        self.asked = False

    def read(self, _timeout_s: float) -> bytes:
        if not self.asked:
            return b"??"
        part, self.text = self.text[:7], self.text[7:]
        return part

    def write(self, _data: bytes) -> None:
        self.asked = True

    def close(self) -> None:
        pass


def row(implementation: str, crc: int = 1, difference: int = 0) -> dict[str, object]:
    return {
        "hidden": "relu",
        "input": ZEROS,
        "implementation": implementation,
        "counts": 5,
        "output_crc32": crc,
        "difference_1e9": difference,
    }


@pytest.mark.parametrize(
    "name",
    [
        name if name == "qemu-cortex-m7" else pytest.param(name, marks=pytest.mark.all)
        for name in LIMITS
    ],
)
def test_a_pass_takes_no_more_than_its_limit(name: str) -> None:
    board = load_board(name)
    skip_without_tools(board)
    rows = {
        (row["input"], row["implementation"]): row["counts"]
        for row in board_forward.measure(board, None)
        if row["hidden"] == "relu"
    }
    for given, limit in zip((ZEROS, NO_ZEROS), LIMITS[name], strict=True):
        assert rows[given, "optimised"] <= limit
        assert rows[given, "policy image"] <= MOST_OF_AN_IMAGE * rows[given, "optimised"]
        assert rows[given, "optimised"] < rows[given, "generic"]


@pytest.mark.parametrize(("name", "compared"), [("qemu-cortex-m4", True), ("qemu-rv32imc", False)])
def test_cmsis_dsp_is_compared_with_on_cortex_m(
    name: str, compared: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Path | None] = []
    monkeypatch.setattr(board_forward, "dsp_sources", lambda: tmp_path)
    monkeypatch.setattr(board_forward, "measure", lambda _, sources: given.append(sources) or [])
    monkeypatch.setattr(board_forward, "estimates", lambda _: [])
    board_forward.run(name)
    board_forward.run(name, dsp=False)
    assert given == [tmp_path if compared else None, None]


def test_output_is_read_in_pieces() -> None:
    text = board_forward.output_of(ScriptedLink([row("generic"), row("optimised")]))
    rows = board_forward.checked(load_board("host"), [json.loads(x) for x in text.splitlines()])
    assert [entry["implementation"] for entry in rows] == ["generic", "optimised"]


@pytest.mark.parametrize(
    "wrong", [row("optimised", crc=2), row("policy image", crc=2), row("dsp", 2, 20_000)]
)
def test_other_numbers_are_not_compared(wrong: dict[str, object]) -> None:
    with pytest.raises(harness.MeasurementError, match="computes something else"):
        board_forward.checked(load_board("host"), [row("generic"), wrong])


def test_another_order_of_additions_is_allowed_to_others() -> None:
    rows = board_forward.checked(load_board("host"), [row("generic"), row("dsp", 2, 300)])
    assert rows[1]["difference"] == pytest.approx(3e-7)


def test_only_emulated_boards_count_instructions() -> None:
    with pytest.raises(UsageError, match=r"host is not emulated.*all-emulated"):
        board_forward.chosen_boards("host")
    chosen = board_forward.chosen_boards(ALL_EMULATED)
    assert "qemu-cortex-m7" in [board.name for board in chosen]


def test_a_board_whose_emulator_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emulator = cmake.tools.system_tools()["qemu-system-riscv32"]
    monkeypatch.setattr(
        cmake.tools, "missing_tools", lambda names: [emulator] if emulator.name in names else []
    )
    chosen = [board.name for board in board_forward.chosen_boards(ALL_EMULATED)]
    assert "qemu-cortex-m7" in chosen
    assert "qemu-rv32imc" not in chosen


def test_tables_name_what_was_left_out() -> None:
    rows = [row("generic"), row("optimised")]
    result = {"board": "b", "rows": rows, "left_out": "no connection", "estimates": []}
    text = "\n".join(board_forward.lines({"results": [result]}))
    assert "not time" in text
    assert "relu, half of the hidden units zero" in text
    assert text.endswith("without CMSIS-DSP: no connection")


def test_sources_that_are_there_are_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "rlt-requirements.txt").write_bytes(board_forward.REQUIREMENTS.read_bytes())
    assert board_forward.dsp_sources(tmp_path) == tmp_path

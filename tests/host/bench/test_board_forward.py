"""A forward pass on emulated boards: ours have the reference's bits, few instructions."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from boards_under_test import skip_without_tools
from rltools_host.bench import board_forward, harness
from rltools_host.bench.board_forward import Loop, cortex_m4_cycles, functions, hot_loop, words_of
from rltools_host.bench.harness import MeasurementError
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


def pack(folder: Path, name: str) -> None:
    """A source distribution of one file."""
    (folder / "arm.c").write_text("int arm;\n")
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(folder / "arm.c", f"{name}/arm.c")


@pytest.mark.parametrize("fetched", [["one"], [], ["one", "two"]])
def test_sources_are_those_of_the_one_archive(
    fetched: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(_: str, command: Sequence[str]) -> None:
        folder = Path(command[command.index("--dest") + 1])
        for name in fetched:
            pack(folder, name)

    monkeypatch.setattr(harness, "install", install)
    folder = tmp_path / "cmsis-dsp"
    folder.mkdir()
    (folder / "old.c").touch()  # of other requirements
    if len(fetched) != 1:
        with pytest.raises(MeasurementError, match="came without its sources"):
            board_forward.dsp_sources(folder)
        assert not folder.exists()
        return
    assert board_forward.dsp_sources(folder) == folder
    assert {path.name for path in folder.iterdir()} == {"arm.c", "rlt-requirements.txt"}
    monkeypatch.setattr(harness, "install", lambda *_: pytest.fail("fetched again"))
    assert board_forward.dsp_sources(folder) == folder


# -- cycles, estimated from the disassembly --------------------------------------------------------


DISASSEMBLY = """
00000a00 <before>:
     a00:	bx	lr
00000b00 <product>:
     b00:	vldr	s14, [pc, #280]	@ b18 <product+0x18>
     b04:	vldmia	r3!, {s7}
     b08:	vldmia	r4!, {d0-d3}
     b0c:	vfma.f32	s11, s15, s7
     b10:	vfma.f32	s12, s15, s0
     b14:	ldr	r5, [r6, #4]
     b16:	subs	r7, #1
     b18:	bne.n	b04 <product+0x4>
     b1a:	adds	r7, #1
     b1c:	vfma.f32	s11, s15, s7
     b20:	bne.w	b1a <product+0x1a>
     b24:	bgt.n	b00 <product>
"""


def loop() -> Loop:
    return hot_loop(functions(DISASSEMBLY)["product"])


def test_the_inner_loop_with_the_most_multiply_adds_is_the_hot_one() -> None:
    found = loop()
    assert found.instructions[0].name == "vldmia"
    assert found.instructions[0].address == 0xB04
    assert found.instructions[-1].address == 0xB18
    assert found.multiply_adds == 2


def test_cycles_of_a_cortex_m4_are_those_of_the_manual() -> None:
    # vldmia 1 word, 8 words, two fused, ldr, subs, taken branch
    assert cortex_m4_cycles(loop()) == (1 + 1) + (1 + 8) + 3 + 3 + 2 + 1 + 4


@pytest.mark.parametrize(
    ("registers", "words"), [("{s7}", 1), ("{d0-d3}", 8), ("{r4, r5, r6, r8}", 4), ("{r4-r7}", 4)]
)
def test_words_of_a_register_list(registers: str, words: int) -> None:
    assert words_of(registers) == words


def test_code_without_a_loop_is_refused() -> None:
    with pytest.raises(MeasurementError, match="no loop"):
        hot_loop(functions(DISASSEMBLY)["before"])


@pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed")
def test_llvm_models_a_cortex_m7() -> None:
    cycles = board_forward.cortex_m7_cycles(loop())
    assert cycles is not None
    assert 2 <= cycles <= cortex_m4_cycles(loop())


def test_a_multiply_add_takes_few_cycles_on_a_cortex_m4() -> None:
    board = load_board("qemu-cortex-m4")
    board_forward.measure(board, None)
    (ours,) = board_forward.estimates(board)
    assert ours["multiply_adds"] == 64
    assert isinstance(ours["cortex_m4_cycles"], float)
    assert ours["cortex_m4_cycles"] <= 4.5

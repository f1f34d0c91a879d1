"""Estimates from a disassembly: which loop, and what the tables say of it."""

from __future__ import annotations

import shutil

import pytest

from rltools_host.bench import board_forward, static_estimate
from rltools_host.bench.harness import MeasurementError
from rltools_host.bench.static_estimate import Loop, cortex_m4_cycles, functions, hot_loop, words_of
from rltools_host.boards.description import load_board

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
    cycles = static_estimate.cortex_m7_cycles(loop())
    assert cycles is not None
    assert 2 <= cycles <= cortex_m4_cycles(loop())


def test_a_multiply_add_takes_few_cycles_on_a_cortex_m4() -> None:
    board = load_board("qemu-cortex-m4")
    board_forward.measure(board, None)
    (ours,) = board_forward.estimates(board)
    assert ours["multiply_adds"] == 64
    assert isinstance(ours["cortex_m4_cycles"], float)
    assert ours["cortex_m4_cycles"] <= 4.5

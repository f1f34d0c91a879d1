"""The board unicorn-cortex-m7: Arm's MPS2 with a Cortex-M7 in Unicorn, a program of its own.

`python unicorn_machine.py ELF PORT [serves]` runs the firmware that qemu-cortex-m7 runs
(firmware/qemu_mps2), with the UART on a connection to a TCP port of this machine, or where it
serves at that port. It has the memories that the firmware's MPU leaves accessible, the UART with
its interrupt, FPGAIO's two counters by this machine's clock, and sleep. It does not count
instructions, and a fault ends it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from unicorn import UC_ARCH_ARM, UC_HOOK_MEM_INVALID, UC_MODE_THUMB, Uc, UcError
from unicorn.arm_const import (
    UC_ARM_REG_LR,
    UC_ARM_REG_PC,
    UC_ARM_REG_PRIMASK,
    UC_ARM_REG_SP,
    UC_ARM_REG_XPSR,
    UC_CPU_ARM_CORTEX_M7,
)
from unicorn.unicorn_const import UC_PROT_EXEC, UC_PROT_READ, UC_PROT_WRITE

# Address, bytes and access, as protect_memory() of firmware/qemu_mps2/board.cpp has them, and LOAD
# of boards/qemu-mps2.ld, from which start-up copies.
MEMORIES = (
    (0x00000000, 512 << 10, UC_PROT_READ | UC_PROT_EXEC),  # ITCM
    (0x00080000, 512 << 10, UC_PROT_READ),  # LOAD
    (0x20000000, 512 << 10, UC_PROT_READ | UC_PROT_WRITE),  # DTCM
    (0x20200000, 512 << 10, UC_PROT_READ | UC_PROT_WRITE),  # RAM2
    (0xE000E000, 4 << 10, UC_PROT_READ | UC_PROT_WRITE),  # the system control space
)
# firmware/qemu_mps2/registers.h
UART, FPGAIO, PAGE = 0x40004000, 0x40028000, 0x1000
UART_DATA, UART_STATE, UART_CONTROL = 0x0, 0x4, 0x8
TRANSMIT_FULL, RECEIVE_FULL, RECEIVE_INTERRUPT_ENABLE = 1 << 0, 1 << 1, 1 << 3
HUNDREDTHS, CYCLES, CYCLES_A_SECOND = 0x14, 0x18, 25_000_000
# firmware/processors/cortex_m/system_registers.h, and the vector table
SYSTICK_CONTROL, SYSTICK_RELOAD, INTERRUPT_ENABLE = 0xE000E010, 0xE000E014, 0xE000E100
UART_VECTOR, UART_INTERRUPT = 16 * 4, 1 << 0
WAIT_FOR_INTERRUPT = b"\x30\xbf"
IF_THEN_STATE = 0x0600FC00  # of XPSR: within an IT block

RETURN = 0x000FFFFE  # where an interrupt's handler returns to, in LOAD: there is no code
NO_END = 0xFFFFFFFE
CHUNK_BYTES = 4096  # that wait for the program or for the host, at most
STOP_AGAIN_S = 0.002  # a stop just before the start of the emulation is lost


class SerialPort:
    """The machine's UART as a TCP connection of this machine, served by threads.

    What is sent while nobody is connected is dropped, as on a cable without a host.
    """

    def __init__(self, port: int, *, serves: bool) -> None:
        """Connect to a port, or listen at it for one program after the other."""
        self._changed = threading.Condition()
        self._received, self._unsent = bytearray(), bytearray()
        self._connection: socket.socket | None = None
        self._listener: socket.socket | None = None
        self.has_news = False  # bytes have arrived since take_news()
        if serves:
            self._listener = socket.create_server(("127.0.0.1", port))
        else:
            self._take(socket.create_connection(("127.0.0.1", port)))

    def serve(self, stop: Callable[[], None]) -> None:
        """Start the threads, of which one calls `stop` where bytes arrive, until take_news()."""
        for act in (self._receive, self._send, partial(self._call, stop)):
            threading.Thread(target=act, daemon=True).start()

    def take_news(self) -> None:
        with self._changed:
            self.has_news = False

    def wait_for_news(self, limit_s: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.has_news, limit_s)

    @property
    def is_readable(self) -> bool:
        return bool(self._received)

    @property
    def is_full(self) -> bool:
        return len(self._unsent) >= CHUNK_BYTES

    def get(self) -> int:
        with self._changed:
            if not self._received:
                return 0
            byte = self._received.pop(0)
            if len(self._received) == CHUNK_BYTES - 1:
                self._changed.notify_all()
        return byte

    def put(self, byte: int) -> None:
        with self._changed:
            if self._connection is None:
                return
            self._unsent.append(byte)
            if len(self._unsent) == 1:
                self._changed.notify_all()

    def _take(self, connection: socket.socket | None) -> None:
        if connection is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            self._connection = connection
            self._unsent.clear()

    def _receive(self) -> None:
        while True:
            if self._connection is None:
                if self._listener is None:
                    return
                self._take(self._listener.accept()[0])
            elif chunk := received(self._connection):
                with self._changed:
                    self._received += chunk
                    self.has_news = True
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: len(self._received) < CHUNK_BYTES)
            else:
                self._connection.close()
                self._take(None)

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unsent and self._connection)
                connection, chunk = self._connection, bytes(self._unsent)
            count = 0
            with contextlib.suppress(OSError):  # closed meanwhile, which the other thread sees
                count = connection.send(chunk) if connection else 0
            with self._changed:
                if connection is self._connection:
                    del self._unsent[: count or len(chunk)]

    def _call(self, stop: Callable[[], None]) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.has_news)
            stop()
            time.sleep(STOP_AGAIN_S)


def received(connection: socket.socket) -> bytes:
    """Return what has arrived; nothing at the end of the connection."""
    try:
        return connection.recv(CHUNK_BYTES)
    except OSError:
        return b""


class Machine:
    """The processor with its memories and peripherals, and the program."""

    def __init__(self, program: str, port: SerialPort) -> None:
        self._port = port
        self._receives_by_interrupt = False
        self._began = time.monotonic()
        self._fault = ""
        self._uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB)
        self._uc.ctl_set_cpu_model(UC_CPU_ARM_CORTEX_M7)
        for address, size, access in MEMORIES:
            self._uc.mem_map(address, size, access)
        self._uc.mmio_map(UART, PAGE, self._read_uart, None, self._write_uart, None)
        self._uc.mmio_map(FPGAIO, PAGE, self._read_counter, None, lambda *_: None, None)
        self._uc.hook_add(UC_HOOK_MEM_INVALID, self._note_fault)
        with open(program, "rb") as file:
            for segment in ELFFile(file).iter_segments("PT_LOAD"):
                self._uc.mem_write(segment["p_paddr"], segment.data())
        self._handler_stack, self._pc = struct.unpack("<II", self._uc.mem_read(0, 8))
        self._uc.reg_write(UC_ARM_REG_SP, self._handler_stack)
        self._context = self._uc.context_save()

    def run(self) -> None:
        """Run the program, which has no end; raise UcError where it faults.

        A stop where the handler may not run has no effect: another one follows.
        """
        self._port.serve(self._uc.emu_stop)
        while True:
            self._uc.emu_start(self._pc | 1, NO_END)
            self._pc = self._uc.reg_read(UC_ARM_REG_PC)
            # A stop just behind that instruction looks alike, and waits for a tick at most.
            is_asleep = self._uc.mem_read(self._pc - 2, 2) == WAIT_FOR_INTERRUPT
            if is_asleep and not self._port.has_news:
                self._port.wait_for_news(self._sleep_s())
            if self._port.has_news and self._is_interruptible(is_asleep):
                self._port.take_news()
                self._call_handler()

    def describe(self, error: UcError) -> str:
        """Return the sentence for a fault of the program."""
        return f"the program failed at 0x{self._uc.reg_read(UC_ARM_REG_PC):08x}: " + (
            self._fault or str(error)
        )

    def _word(self, address: int) -> int:
        (word,) = struct.unpack("<I", self._uc.mem_read(address, 4))
        return int(word)

    def _is_interruptible(self, is_asleep: bool) -> bool:
        """Return whether the UART's handler may run; PRIMASK does not matter to a sleeper, which
        the firmware clears next."""
        if not (self._receives_by_interrupt and self._word(INTERRUPT_ENABLE) & UART_INTERRUPT):
            return False
        is_masked = self._uc.reg_read(UC_ARM_REG_PRIMASK) & 1
        is_within_it = self._uc.reg_read(UC_ARM_REG_XPSR) & IF_THEN_STATE
        return is_asleep or not (is_masked or is_within_it)

    def _call_handler(self) -> None:
        """Run the UART's handler on the handlers' stack, as a function with every register put back
        after it: Unicorn has no exceptions of Cortex-M."""
        self._uc.context_update(self._context)
        self._uc.reg_write(UC_ARM_REG_SP, self._handler_stack)
        self._uc.reg_write(UC_ARM_REG_LR, RETURN | 1)
        pc = self._word(UART_VECTOR)
        while pc != RETURN:  # bytes that arrive meanwhile stop it
            self._uc.emu_start(pc | 1, RETURN)
            pc = self._uc.reg_read(UC_ARM_REG_PC)
        self._uc.context_restore(self._context)

    def _sleep_s(self) -> float | None:
        """Return how long the processor sleeps without an interrupt."""
        if not self._word(SYSTICK_CONTROL) & 1:
            return None
        return self._word(SYSTICK_RELOAD) / CYCLES_A_SECOND

    def _read_uart(self, _: Uc, offset: int, *__: Any) -> int:
        if offset == UART_DATA:
            return self._port.get()
        if offset == UART_STATE:
            full = TRANSMIT_FULL if self._port.is_full else 0
            return full | (RECEIVE_FULL if self._port.is_readable else 0)
        return 0

    def _write_uart(self, _: Uc, offset: int, __: int, value: int, *___: Any) -> None:
        if offset == UART_DATA:
            self._port.put(value & 0xFF)
        elif offset == UART_CONTROL:
            self._receives_by_interrupt = bool(value & RECEIVE_INTERRUPT_ENABLE)

    def _read_counter(self, _: Uc, offset: int, *__: Any) -> int:
        rate = {HUNDREDTHS: 100, CYCLES: CYCLES_A_SECOND}.get(offset, 0)
        return int((time.monotonic() - self._began) * rate) & 0xFFFFFFFF

    def _note_fault(self, _: Uc, __: int, address: int, *___: Any) -> bool:
        self._fault = f"it may not access 0x{address:08x}, or there is no memory"
        return False


def main(program: str, number: str, serves: str = "") -> int:
    port = SerialPort(int(number), serves=bool(serves))
    try:
        machine = Machine(program, port)
    except (OSError, ELFError) as error:
        print(f"cannot load {program}: {error}", file=sys.stderr)
        return 1
    try:
        machine.run()
    except UcError as error:
        print(machine.describe(error), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

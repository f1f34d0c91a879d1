"""A process of its own in which a foreign file is read, so that no reader has to be perfect.

`python -m PROGRAM` is that process. It limits its memory and its time before it opens a file. Its
answer is a typed description and arrays of numbers: nothing in it is executed, and its sizes are
checked before memory is allocated for it.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from msgspec import Struct

from rltools_host import errors
from rltools_host.documents import Count, printable
from rltools_host.errors import DamagedFileError, EnvironmentFaultError, RltError
from rltools_host.lines import aside
from rltools_host.system import kill_child, limit, limit_reached, signal_name, start_child

T = TypeVar("T")

MEGABYTE = 1_000_000


class Limits(Struct, frozen=True):
    """The limits of the process."""

    # Of addresses. 50,000,000 numbers in a model of ONNX, the most that is read, take 1.3 GB.
    memory_bytes: int = 2_000 * MEGABYTE
    processor_s: int = 60
    wall_s: int = 600  # of a busy machine
    numbers: int = 50_000_000  # of its answer
    text_bytes: int = 4 * MEGABYTE  # of the rest of its answer
    error_bytes: int = MEGABYTE  # that libraries print


LIMITS = Limits()
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
OWN_FAULT = 70  # EX_SOFTWARE of sysexits.h
OUT_OF_MEMORY = 71
LONGEST_WORDS = 200


class Call(Struct):
    limits: Limits
    question: bytes


class Reply(Struct):
    """The beginning of an answer. Arrays of double precision follow it, one behind the other."""

    value: bytes = b""
    shapes: list[list[Count]] = []
    error: bytes = b""
    kind: str = ""
    unlimited: str = ""  # what the system does not limit


class CutOffError(Exception):
    """An answer that ended too early."""


class TooMuchError(Exception):
    """An answer that is larger than it may be."""


# -- the process that asks -------------------------------------------------------------------------


def read_apart(program: str, question: Any, kind: type[T], path: Path, remedy: str) -> T:
    """Return the answer of a process that reads a file.

    path, remedy: for the sentence where the process needs too much or is lost. Raise the RltError
    that it raises.
    """
    call = msgspec.msgpack.encode(Call(LIMITS, msgspec.msgpack.encode(question)))
    with tempfile.TemporaryFile() as words:
        process = start_child(
            [sys.executable, "-I", "-m", program],  # -I: nothing of the present folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            environment=ONE_THREAD,
            ends_with_input=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(call)
            process.stdin.close()
            reply, arrays = received(process.stdout, LIMITS)
        except (CutOffError, BrokenPipeError):
            raise lost(process, words, path, remedy) from None
        except TooMuchError:
            why = f"it has more than {LIMITS.numbers:,} numbers, or too much text"
            raise DamagedFileError(f"{path} cannot be read: {why}; {remedy}") from None
        finally:
            kill_child(process)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
    if reply.unlimited:
        aside(f"note: this system does not limit the {reply.unlimited} in which {path} is read")
    if reply.error:
        kinds = (each for each in vars(errors).values() if isinstance(each, type))
        known = {each.__name__: each for each in kinds if issubclass(each, RltError)}
        sentence = reply.error.decode("utf-8", "surrogatepass")
        raise known.get(reply.kind, RltError)(sentence)
    return answered(reply.value, arrays, kind)


def received(stream: IO[bytes], limits: Limits) -> tuple[Reply, list[Any]]:
    """Return an answer whose sizes are within the limits."""
    import numpy as np

    def filled(buffer: memoryview) -> None:
        done = 0
        while done < len(buffer):
            count = stream.readinto(buffer[done:])  # type: ignore[attr-defined]
            if not count:
                raise CutOffError
            done += count

    head = bytearray(4)
    filled(memoryview(head))
    length = int.from_bytes(head, "little")
    if length > limits.text_bytes:
        raise TooMuchError
    text = bytearray(length)
    filled(memoryview(text))
    reply = msgspec.msgpack.decode(text, type=Reply)
    if sum(math.prod(shape) for shape in reply.shapes) > limits.numbers:
        raise TooMuchError
    arrays = [np.empty(shape) for shape in reply.shapes]
    for each in arrays:
        if each.size:
            filled(each.reshape(-1).data.cast("B"))
    return reply, arrays


def answered(value: bytes, arrays: list[Any], kind: type[T]) -> T:
    def array_at(_: Any, index: Any) -> Any:
        if type(index) is not int or not 0 <= index < len(arrays):
            raise msgspec.ValidationError("an array is missing")
        return arrays[index]

    return msgspec.msgpack.decode(value, type=kind, dec_hook=array_at)


def lost(process: subprocess.Popen[bytes], words: IO[bytes], path: Path, remedy: str) -> Exception:
    """Return the error of a process that ended, or answered what it may not."""
    try:
        code = process.wait(LIMITS.wall_s)
        reached = limit_reached(code)
    except subprocess.TimeoutExpired:
        code, reached = 0, "wall"
    if code == OWN_FAULT:
        words.seek(0)
        return RuntimeError(words.read(LIMITS.error_bytes).decode(errors="replace"))
    if code == 1:
        words.seek(0)
        last = words.read(LIMITS.error_bytes).decode(errors="replace").strip().splitlines()
        text = printable(last[-1][:LONGEST_WORDS]) if last else "it said nothing"
        return EnvironmentFaultError(f"the process that reads {path} did not begin: {text}")
    megabytes = f"{LIMITS.memory_bytes // MEGABYTE:,} MB of memory"
    if code == OUT_OF_MEMORY:
        why = f"that takes more than {megabytes}"
    elif reached:
        of_processor = reached == "processor"
        limit_s = f"{LIMITS.processor_s} s of a processor" if of_processor else f"{LIMITS.wall_s} s"
        why = f"that takes more than {limit_s}"
    else:
        ended = f"was ended by {name}" if (name := signal_name(code)) else "has gone"
        why = f"the process that reads it {ended}: it is damaged, or takes more than {megabytes}"
    return DamagedFileError(f"{path} cannot be read: {why}; {remedy}")


# -- the process that reads ------------------------------------------------------------------------


def answer_calls(kind: type[T], answer: Callable[[T], Any]) -> None:
    """Read a question, and write the answer, or the sentence of its RltError."""
    output = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    call = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Call)
    limits = call.limits
    has_memory, has_time = limit(
        limits.memory_bytes, limits.processor_s, limits.wall_s, limits.error_bytes
    )
    arrays: list[Any] = []
    try:
        try:
            value = answer(msgspec.msgpack.decode(call.question, type=kind))
            reply = encoded(value, arrays)
        except RltError as error:
            text = str(error).encode("utf-8", "surrogatepass")
            reply = Reply(error=text, kind=type(error).__name__)
        unlimited = ["memory"] * (not has_memory) + ["time"] * (not has_time)
        reply.unlimited = " and ".join(unlimited)
        head = msgspec.msgpack.encode(reply)
        with os.fdopen(output, "wb") as stream:
            stream.write(len(head).to_bytes(4, "little") + head)
            for each in arrays:
                stream.write(each.data)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(OWN_FAULT)
    os._exit(0)  # nothing of a foreign file is worth a tidy end


def encoded(value: Any, arrays: list[Any]) -> Reply:
    """Return the beginning of the answer, and append its arrays."""
    import numpy as np

    def number_of(each: Any) -> Any:
        if isinstance(each, np.generic):
            return each.item()
        if not isinstance(each, np.ndarray):
            raise TypeError(f"{type(each).__name__} is not plain data")
        arrays.append(np.ascontiguousarray(each, "<f8").reshape(each.shape))
        return len(arrays) - 1

    try:
        text = msgspec.msgpack.encode(value, enc_hook=number_of)
    except UnicodeEncodeError:
        arrays.clear()
        raise DamagedFileError("a text in the file is not Unicode: write it again") from None
    return Reply(text, [list(each.shape) for each in arrays])

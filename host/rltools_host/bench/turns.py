"""Contenders that are processes and take turns: while one works the others are stopped.

The other side of benchmarks/turns.py: a contender says who it is, then answers orders, a line each.
The time from an order to its answer is measured here, for all of them alike.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rltools_host.bench import harness, peer_environment
from rltools_host.child_process import end_child, ending, start_child

LONGEST_ANSWER = 1 << 24


class TakesTurns(Protocol):
    name: str
    introduction: dict[str, Any]

    def turn(self, order: str, limit_s: float) -> dict[str, Any]: ...
    def end(self) -> None: ...


class Contender:
    """A process that is stopped whenever it is not its turn.

    It runs where its log lies, so that what a library leaves behind lies there too.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        limit_s: float,
    ) -> None:
        self.name = name
        self._log = log
        self._rest = b""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            try:
                self._process = start_child(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stream,
                    environment=environment,
                    directory=log.parent,
                )
            except OSError as error:
                raise harness.MeasurementError(f"{name} cannot be run: {error.strerror}") from None
        try:
            self.introduction = self._answer(limit_s)
            self._process.send_signal(signal.SIGSTOP)
        except BaseException:
            self.end()
            raise

    def turn(self, order: str, limit_s: float) -> dict[str, Any]:
        """The answer to an order, with the seconds that it took as `wall_s`."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        began_s = time.perf_counter()
        try:
            self._process.stdin.write(order.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None
        answer = self._answer(limit_s)
        answer["wall_s"] = time.perf_counter() - began_s
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def end(self) -> None:
        self._process.kill()
        end_child(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _answer(self, limit_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        until_s = time.monotonic() + limit_s
        while b"\n" not in self._rest:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                raise harness.MeasurementError(f"{self.name} did not answer in {limit_s:.0f} s")
            part = os.read(pipe, 1 << 16)
            if not part:
                raise self._failed()
            self._rest += part
            if len(self._rest) > LONGEST_ANSWER:
                raise harness.MeasurementError(f"{self.name} does not end its answer")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise harness.MeasurementError(f"{self.name} answered something else than JSON")
        return document

    def _failed(self) -> harness.MeasurementError:
        how = ending(self._process)
        said = peer_environment.last_line(self._log.read_text(encoding="utf-8", errors="replace"))
        return harness.MeasurementError(f"{self.name}: {how}: {said}")

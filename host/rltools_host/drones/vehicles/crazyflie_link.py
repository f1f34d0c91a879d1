"""A Crazyflie over its radio, USB or UDP, by Bitcraze's cflib: parameters, logged values, memory.

This is the only module that knows cflib, whose calls return at once and answer by callbacks of its
threads. The functions here wait, and raise LinkLostError where no answer comes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rltools_host.boards.messages import Progress
from rltools_host.build import tools
from rltools_host.errors import BoardMismatchError, LinkLostError, PortError
from rltools_host.tree import PROJECT

GROUP = "crazyflie"  # of Python packages
CONNECTION_TIMEOUT_S = 30.0  # the names of some 300 parameters, where they are not cached
ANSWER_TIMEOUT_S = 5.0
LOG_PERIOD_MS = 50
READ_BYTES = 480  # 20 packets


class CrazyflieLink:
    """A connected Crazyflie; the `logged` values come 20 times a second from the beginning on.

    Names are cflib's, "group.name". Raises PortError where none answers, BoardMismatchError where
    its firmware lacks one of the required values; `optional` ones may be missing.
    """

    def __init__(self, uri: str | None, logged: Sequence[str], optional: Sequence[str]) -> None:
        tools.ensure_group(GROUP)
        import cflib.crtp
        from cflib.crazyflie import Crazyflie

        logging.getLogger("cflib").setLevel(logging.CRITICAL)  # what it says is said here
        self._condition = threading.Condition()
        self._is_ready = self._is_closed = False
        self._failure = ""
        self._values: dict[str, int] = {}
        self._samples = 0
        if not cflib.crtp.CLASSES:
            cflib.crtp.init_drivers()
        self.uri = uri or self._only_one(cflib.crtp)
        self._crazyflie = Crazyflie(rw_cache=str(PROJECT.build / "crazyflie"))
        self._crazyflie.fully_connected.add_callback(self._on_ready)
        self._crazyflie.connection_failed.add_callback(self._on_failure)
        self._crazyflie.connection_lost.add_callback(self._on_failure)
        try:
            self._connect()
            self._start_log(logged, optional)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _only_one(crtp: Any) -> str:
        try:
            found = [str(uri) for uri, _ in crtp.scan_interfaces()]
        except Exception as error:  # of the USB library, of many kinds
            raise PortError(
                f"no Crazyflie can be looked for: {error}; give its --port, as radio://0/80/2M"
            ) from None
        if len(found) == 1:
            return found[0]
        what = f"several Crazyflies answer: {', '.join(found)}" if found else "no Crazyflie answers"
        raise PortError(
            f"{what}: plug in its radio or cable, and give its --port, as radio://0/80/2M/E7E7E7E7E7"
        )

    def _connect(self) -> None:
        self._crazyflie.open_link(self.uri)
        with self._condition:
            self._condition.wait_for(
                lambda: self._is_ready or bool(self._failure), CONNECTION_TIMEOUT_S
            )
            if not self._is_ready:
                reason = self._failure.partition("\n")[0] or "no answer"
                raise PortError(
                    f"the Crazyflie on {self.uri} cannot be reached: {reason}; "
                    "is it switched on, and are channel, rate and address right?"
                )

    # -- callbacks, in cflib's threads -------------------------------------------------------------

    def _on_ready(self, _uri: str) -> None:
        with self._condition:
            self._is_ready = True
            self._condition.notify_all()

    def _on_failure(self, _uri: str, message: str) -> None:
        with self._condition:
            self._failure = message or "the link was lost"
            self._condition.notify_all()

    def _on_sample(self, _timestamp: int, values: Mapping[str, Any], _block: object) -> None:
        with self._condition:
            self._values.update({name: int(value) for name, value in values.items()})
            self._samples += 1
            self._condition.notify_all()

    # -- waiting -----------------------------------------------------------------------------------

    def _lost(self) -> LinkLostError:
        reason = self._failure.partition("\n")[0] or "no answer"
        return LinkLostError(f"the link to the Crazyflie on {self.uri} is lost: {reason}")

    def _wait(self, is_done: Callable[[], bool], deadline: float) -> bool:
        """Wait until `is_done` (True) or the deadline; the caller holds the condition."""
        while not is_done():
            if self._failure:
                raise self._lost()
            if not self._condition.wait(max(0.0, deadline - time.monotonic())):
                return is_done()
        return True

    def _wait_for_answer(self, is_done: Callable[[], bool]) -> None:
        if not self._wait(is_done, time.monotonic() + ANSWER_TIMEOUT_S):
            raise self._lost()

    # -- logged values -----------------------------------------------------------------------------

    def _start_log(self, logged: Sequence[str], optional: Sequence[str]) -> None:
        from cflib.crazyflie.log import LogConfig

        toc = self._crazyflie.log.toc
        if missing := [name for name in logged if not toc.get_element_by_complete_name(name)]:
            raise BoardMismatchError(
                f"the Crazyflie on {self.uri} has no logged value {missing[0]}: "
                "flash the firmware of integrations/crazyflie"
            )
        block = LogConfig("rltools", LOG_PERIOD_MS)
        for name in (*logged, *optional):
            if toc.get_element_by_complete_name(name):
                block.add_variable(name)
        block.data_received_cb.add_callback(self._on_sample)
        self._crazyflie.log.add_config(block)
        block.start()

    def values(self) -> dict[str, int]:
        """Return the logged values as they are now."""
        with self._condition:
            # A sample may have been under way already.
            wanted = self._samples + 2
            self._wait_for_answer(lambda: self._samples >= wanted)
            return dict(self._values)

    def values_when(
        self, is_so: Callable[[Mapping[str, int]], bool], timeout_s: float
    ) -> dict[str, int]:
        """Return the logged values as soon as they satisfy `is_so`, or those after the timeout."""
        self.values()
        with self._condition:
            self._wait(lambda: is_so(self._values), time.monotonic() + timeout_s)
            return dict(self._values)

    # -- parameters --------------------------------------------------------------------------------

    def set(self, name: str, value: int) -> None:
        """Set a parameter, and wait until the Crazyflie answers with a value."""
        answers: list[str] = []

        def on_answer(_name: str, text: str) -> None:
            with self._condition:
                answers.append(text)
                self._condition.notify_all()

        group, _, last = name.partition(".")
        parameters = self._crazyflie.param
        parameters.add_update_callback(group, last, on_answer)
        try:
            parameters.set_value(name, value)
            with self._condition:
                self._wait_for_answer(lambda: bool(answers))
        except KeyError:
            raise BoardMismatchError(
                f"the Crazyflie on {self.uri} has no parameter {name}: "
                "flash the firmware of integrations/crazyflie"
            ) from None
        finally:
            parameters.remove_update_callback(group, last, on_answer)

    # -- the app's memory --------------------------------------------------------------------------

    def _memory(self) -> Any:
        from cflib.crazyflie.mem import MemoryElement

        memories = self._crazyflie.mem.get_mems(MemoryElement.TYPE_APP)
        if not memories:
            raise BoardMismatchError(
                f"the Crazyflie on {self.uri} has no memory of an app: "
                "flash the firmware of integrations/crazyflie"
            )
        return memories[0]

    @property
    def memory_bytes(self) -> int:
        return int(self._memory().size)

    def write(self, data: bytes, progress: Progress | None = None) -> bool:
        """Write the memory from its beginning; return False where the Crazyflie does not take a
        part."""
        heard = [time.monotonic()]

        def on_part(_text: str, percent: int) -> None:
            heard[0] = time.monotonic()
            if progress is not None:
                progress(len(data) * percent // 100, len(data))

        memory, handler = self._memory(), self._crazyflie.mem
        with self._results_of(handler.mem_write_cb, handler.mem_write_failed_cb) as results:
            handler.write(memory, 0, list(data), progress_cb=on_part)
            with self._condition:
                while not self._wait(lambda: bool(results), heard[0] + ANSWER_TIMEOUT_S):
                    if time.monotonic() - heard[0] >= ANSWER_TIMEOUT_S:
                        raise self._lost()
        return results[0]

    def read(self, count: int) -> bytes:
        """Read the first bytes of the memory."""
        contents: list[bytes] = []

        def on_bytes(_memory: object, _address: int, content: Sequence[int]) -> None:
            contents.append(bytes(content))

        memory, handler = self._memory(), self._crazyflie.mem
        handler.mem_read_cb.add_callback(on_bytes)  # before the callback that ends the waiting
        try:
            with self._results_of(handler.mem_read_cb, handler.mem_read_failed_cb) as results:
                for start in range(0, count, READ_BYTES):
                    results.clear()
                    handler.read(memory, start, min(READ_BYTES, count - start))
                    with self._condition:
                        self._wait_for_answer(lambda: bool(results))
                    if not all(results):
                        raise self._lost()
        finally:
            handler.mem_read_cb.remove_callback(on_bytes)
        return b"".join(contents)

    @contextlib.contextmanager
    def _results_of(self, done: Any, failed: Any) -> Iterator[list[bool]]:
        """Yield a list that receives True from the callers `done` of cflib, and False from
        `failed`."""
        results: list[bool] = []

        def finish(result: bool, *_: object) -> None:
            with self._condition:
                results.append(result)
                self._condition.notify_all()

        on_done, on_failed = functools.partial(finish, True), functools.partial(finish, False)
        done.add_callback(on_done)
        failed.add_callback(on_failed)
        try:
            yield results
        finally:
            done.remove_callback(on_done)
            failed.remove_callback(on_failed)

    def close(self) -> None:
        """Close the link without cflib's last message, a setpoint of no thrust, which would drop a
        Crazyflie in flight."""
        if self._is_closed:
            return
        self._is_closed = True
        link = self._crazyflie.link
        self._crazyflie.link = None
        if link is not None:
            link.close()
        self._crazyflie.close_link()

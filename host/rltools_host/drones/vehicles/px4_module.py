"""A PX4 with our module: its shell over MAVLink (SERIAL_CONTROL), as far as the module's commands
need it, and its policies, which are uploaded by MAVLink FTP, tried, kept or given up."""

from __future__ import annotations

import re
from collections.abc import Callable

from rltools_host.boards.file_transfer import FileClient
from rltools_host.boards.framing import payload_of
from rltools_host.boards.messages import (
    SLOT_ERRORS,
    Progress,
    mavlink_crc32,
    name_of,
    text_of_number,
)
from rltools_host.drones.vehicles.px4 import Px4Vehicle
from rltools_host.drones.vehicles.px4_state import Mode
from rltools_host.errors import BoardMismatchError, LinkLostError, RefusedError
from rltools_host.policies import POLICY_REASONS
from rltools_host.policies.image import PolicyImage
from rltools_host.policies.statements import unknown_to_earlier

MODULE = "rlt_policy"
# integrations/px4
MODE_NAME = "RL Policy"
CANDIDATE = "candidate.rltp"
SITL_FOLDER, CARD_FOLDER = "/rlt", "/fs/microsd/rlt"
MAX_BYTES = 32768
END_ATTEMPTS = 3
REFUSAL = re.compile(r"refused: reason (\d+), at (\d+)")
TRIED = "^on trial for"
ON_TRIAL, NONE_ON_TRIAL = "a policy on trial", "none on trial"  # of `rlt_policy status`
READINESS = re.compile(r"mode (-?\d+): (.+?)(, acting)?")  # of `rlt_policy status`
READY = "ready"
READY_BY_S, ASK_AGAIN_S = 5.0, 0.5  # a measurement may come late
SLOT_REFUSAL = re.compile(r"error (\d+) of the slots")
DATA_BYTES = 70
DATA_OFFSET = 9  # of the data in SERIAL_CONTROL, behind baud rate, timeout, device, flags, count
ANSWER_TIMEOUT_S = 3.0  # then it is asked again
LAST_TIMEOUT_S = 12.0  # of the last attempt: a busy machine is late, and nothing is gained by haste
ATTEMPTS = 3
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x00]")  # colors, and what a terminal moves by
LINE = re.compile(rf"(INFO|WARN|ERROR)\s+\[{MODULE}\]\s*(.*)")
NOT_THERE = re.compile(r"(?i)command not found|Invalid command|unknown command|not running")


class Px4Shell:
    """The module's commands and the lines of their answers."""

    def __init__(self, vehicle: Px4Vehicle) -> None:
        self._vehicle = vehicle

    def ask(
        self,
        words: str,
        done: str,
        guard: Callable[[], None] = lambda: None,
        attempts: int = ATTEMPTS,
    ) -> list[tuple[str, str]]:
        """Return level and text of the module's lines, up to one that has `done`, or is an error.

        A request or its answer may be lost: it is sent again. A command that must not be repeated
        has one attempt.
        """
        vehicle, last = self._vehicle, re.compile(done)
        with vehicle.connection.open_queue("SERIAL_CONTROL") as answers:
            asked = vehicle.clock()
            for attempt in range(attempts):
                self._send(f"{MODULE} {words}\n")
                text = ""
                is_last = attempt == attempts - 1
                deadline = vehicle.clock() + (LAST_TIMEOUT_S if is_last else ANSWER_TIMEOUT_S)
                while vehicle.clock() < deadline:
                    vehicle.pump()
                    guard()
                    while (message := answers.take()) is not None:
                        text += CONTROL.sub("", _data_of(message))
                    whole = text.rpartition("\n")[0]
                    if NOT_THERE.search(whole):
                        raise RefusedError(
                            f"the module {MODULE} of {vehicle.name} does not do `{words}`: build "
                            "PX4 with integrations/px4 of this revision, and start it"
                        )
                    lines = [match.groups() for match in LINE.finditer(whole)]
                    found = [(level, line.strip()) for level, line in lines]
                    if any(level == "ERROR" or last.search(line) for level, line in found):
                        return found
        raise LinkLostError(
            f"the shell of {vehicle.name} does not answer `{MODULE} {words}`: "
            f"{vehicle.clock() - asked:.0f} s were waited for its line"
        )

    def close(self) -> None:
        """Release the shell, which PX4 then ends."""
        self._write(b"", 0)

    def _send(self, text: str) -> None:
        d = self._vehicle.dialect
        flags = d.SERIAL_CONTROL_FLAG_RESPOND | d.SERIAL_CONTROL_FLAG_EXCLUSIVE
        data = text.encode()
        for begin in range(0, len(data), DATA_BYTES):
            self._write(data[begin : begin + DATA_BYTES], flags)

    def _write(self, data: bytes, flags: int) -> None:
        d = self._vehicle.dialect
        padded = list(data.ljust(DATA_BYTES, b"\0"))
        shell = d.SERIAL_CONTROL_DEV_SHELL
        message = d.MAVLink_serial_control_message(shell, flags, 0, 0, len(data), padded)
        self._vehicle.connection.send(message)


def _data_of(message: object) -> str:
    payload = payload_of(message)
    count = payload[DATA_OFFSET - 1] if len(payload) >= DATA_OFFSET else 0
    return payload[DATA_OFFSET : DATA_OFFSET + min(count, DATA_BYTES)].decode(errors="replace")


class Px4Policies:
    """The module's operations on policies. None is carried out while the vehicle is armed."""

    def __init__(self, vehicle: Px4Vehicle, is_sitl: bool) -> None:
        self._vehicle = vehicle
        self._shell = Px4Shell(vehicle)
        self._has_tried = False  # ours is on trial, as far as is known
        self._path = f"{SITL_FOLDER if is_sitl else CARD_FOLDER}/{CANDIDATE}"

    def mode(self) -> Mode:
        """Return the policy's flight mode, as it is registered."""
        found = self._vehicle.modes().get(MODE_NAME)
        if found is None:
            raise RefusedError(
                f"{self._vehicle.name} has no flight mode {MODE_NAME}: build PX4 with "
                "integrations/px4, and give its shell `rlt_policy start`"
            )
        return found

    def push(self, image: PolicyImage, progress: Progress | None = None) -> None:
        """Upload the image as the module's candidate, check its bytes, and start its trial."""
        name, data = self._vehicle.name, image.data
        if len(data) > MAX_BYTES:
            raise RefusedError(
                f"{image.origin} has {len(data):,} bytes, the module of PX4 takes {MAX_BYTES:,}: "
                "train smaller networks"
            )
        files = FileClient(self._vehicle.connection)
        self._clear_trial(files, data)
        try:
            files.upload(self._path, data, progress)
            stated = files.crc32(self._path)
        except BoardMismatchError as error:
            raise RefusedError(f"{name} does not take {self._path} ({error})") from None
        if stated != mavlink_crc32(data):
            raise RefusedError(
                f"{name} has other bytes in {self._path} than it was sent: run the command again"
            )
        self._has_tried = True
        # Late answers to `status` have "none on trial" and "setpoints refused 0".
        lines = self._shell.ask("try", rf"{TRIED}|{REFUSAL.pattern}|error \d+ of|cannot be read")
        # Where its first answer was lost, the module refuses the second request: it tries it.
        if not any(re.match(TRIED, line) for _, line in lines) and not self._is_on_trial():
            self._has_tried = False
            raise RefusedError(f"{name} refuses the policy: {refusal(lines, image)}")

    def _clear_trial(self, files: FileClient, data: bytes) -> None:
        """Give up a trial of the same policy that a killed flight has left; refuse where it is
        another policy."""
        if not self._is_on_trial():
            return
        name = self._vehicle.name
        try:
            is_ours = files.crc32(self._path) == mavlink_crc32(data)
        except BoardMismatchError:  # no such file
            is_ours = False
        if not is_ours:
            raise RefusedError(
                f"{name} tries another policy: `{MODULE} rollback` in PX4's shell drops that one, "
                f"`{MODULE} confirm` keeps it"
            )
        self._end_trial("rollback", "acts again", "does not give the policy up")

    def require_ready(self, guard: Callable[[], None] = lambda: None) -> None:
        """Raise RefusedError with the module's own reason where its mode cannot be entered now."""
        vehicle = self._vehicle
        deadline = vehicle.clock() + READY_BY_S
        while (reason := self._refusal(guard)) != READY:
            if vehicle.clock() >= deadline:
                raise RefusedError(f"the module of {vehicle.name} is not ready: {reason}")
            vehicle.wait(lambda: False, ASK_AGAIN_S, guard)

    def _refusal(self, guard: Callable[[], None]) -> str:
        """Return READY, or the module's reason to refuse its mode."""
        for _, text in self._shell.ask("status", "^ticks", guard):
            if match := READINESS.fullmatch(text):
                return match[2]
        return "it does not say of itself that it is"

    def set_target(self, offset_m: tuple[float, float, float], guard: Callable[[], None]) -> None:
        """Set the target for the next entry of the mode: its offset from the vehicle in the
        contract's frame, to whole centimeters."""
        words = " ".join(f"{value:.2f}" for value in offset_m)
        lines = self._shell.ask(f"offset {words}", "next target", guard)
        if lines[-1][0] == "ERROR":
            raise RefusedError(f"{self._vehicle.name} refuses the target: {lines[-1][1]}")

    def confirm(self) -> None:
        """Keep the policy on trial."""
        self._end_trial("confirm", "kept as", "does not keep the policy")

    def roll_back(self) -> None:
        """Give up the policy where it is on trial; leave any other one, and those before it."""
        if self._has_tried and self._is_on_trial():
            self._end_trial("rollback", "acts again", "does not give the policy up")

    def _end_trial(self, words: str, done: str, failure: str) -> None:
        """End the trial with one command; a second one would concern the policy before."""
        for _ in range(END_ATTEMPTS):
            try:
                lines = self._shell.ask(words, done, attempts=1)
            except LinkLostError:
                if self._is_on_trial():
                    continue
                return
            if lines[-1][0] == "ERROR":
                raise RefusedError(f"{self._vehicle.name} {failure}: {lines[-1][1]}")
            return
        raise LinkLostError(f"{self._vehicle.name} {failure}: its shell does not answer")

    def _is_on_trial(self) -> bool:
        for _ in range(ATTEMPTS):  # the line of it may be lost, where the last one is not
            for _, text in self._shell.ask("status", "^ticks"):
                if text in (ON_TRIAL, NONE_ON_TRIAL):
                    return text == ON_TRIAL
        raise LinkLostError(f"{self._vehicle.name} does not say whether a policy is on trial")

    def close(self) -> None:
        self._shell.close()


def refusal(lines: list[tuple[str, str]], image: PolicyImage) -> str:
    """Return why an image was refused, in words."""
    text = lines[-1][1]
    if match := SLOT_REFUSAL.search(text):
        return text_of_number(int(match[1]), SLOT_ERRORS)
    if match := REFUSAL.search(text):
        number, index = int(match[1]), int(match[2])
        name = name_of(number, POLICY_REASONS)
        channels = (*image.observations, *image.actions)
        text = f"{name}: {text_of_number(number, POLICY_REASONS)}"
        if name == "other_contract" and index < len(channels):
            text += f' (channel {index}, here "{channels[index].name}")'
        if name == "malformed":
            text += unknown_to_earlier(
                image, "its module", "build PX4 with integrations/px4 of this revision"
            )
        return text
    return text

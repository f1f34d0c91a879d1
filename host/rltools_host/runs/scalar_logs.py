"""Scalars of a run for other tools: event files of TensorBoard, and the service Weights & Biases.

The event files, TFRecord frames around `Event` messages of TensorFlow's event.proto, are written
here and not with tensorboardX, whose writer is a thread that cannot report a full disk and whose
import takes six times what a run's log and screen take. The tests read with its schema.

The service gets the same scalars by its own package: online where the user has logged in, else
(WANDB_MODE=offline) in files that `wandb sync` sends later.
"""

from __future__ import annotations

import hashlib
import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastcrc import crc32

from rltools_host.errors import RltError
from rltools_host.files import disk_error, write_all
from rltools_host.tree import PROJECT

MASK_DELTA = 0xA282EAD8
SESSION_START = 1
LONGEST_REASON = 200


class TensorBoardLog:
    """A new event file of a folder, to which scalars are appended."""

    def __init__(self, folder: Path, first_step: int | None = None) -> None:
        """Open a log; with `first_step`, TensorBoard drops the events of earlier files from that
        step on."""
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = folder / name
        try:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise disk_error(self.path, error) from None
        self._pending: list[bytes] = [_record(_event(0, _bytes_field(3, b"brain.Event:2")))]
        if first_step is not None:
            session = _bytes_field(7, _varint_field(1, SESSION_START))
            self._pending.append(_record(_event(first_step, session)))
        self.flush()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the scalars of a step; those that are not finite are left out."""
        summary = b"".join(
            _bytes_field(1, _bytes_field(1, name.encode()) + struct.pack("<Bf", 0x15, value))
            for name, value in values.items()
            if math.isfinite(value)
        )
        if summary:
            self._pending.append(_record(_event(step, _bytes_field(5, summary))))

    def add_hyperparameters(self, values: Mapping[str, float | int | str]) -> None:
        """Add the run to the table HPARAMS: the session_start_info of TensorBoard's plugin
        hparams."""
        entries = b"".join(
            _bytes_field(
                1,
                _bytes_field(1, name.encode())
                + _bytes_field(
                    2,
                    _bytes_field(3, value.encode())
                    if isinstance(value, str)
                    else struct.pack("<Bd", 0x11, value),
                ),
            )
            for name, value in values.items()
        )
        started = struct.pack("<Bd", 0x29, time.time())
        content = _bytes_field(3, entries + started)
        plugin = _bytes_field(1, b"hparams") + _bytes_field(2, content)
        metadata = _bytes_field(1, plugin)
        tag = _bytes_field(1, b"_hparams_/session_start_info")
        summary = _bytes_field(1, tag + _bytes_field(9, metadata))
        self._pending.append(_record(_event(0, _bytes_field(5, summary))))

    def flush(self) -> None:
        """Write what was added, as whole records."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        self._pending = []
        try:
            end = os.fstat(self._descriptor).st_size
            try:
                write_all(self._descriptor, data)
            except OSError:
                os.ftruncate(self._descriptor, end)
                raise
        except OSError as error:
            raise disk_error(self.path, error) from None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _event(step: int, content: bytes) -> bytes:
    return struct.pack("<Bd", 0x09, time.time()) + _varint_field(2, step) + content


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _record(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    return length + _masked_crc(length) + data + _masked_crc(data)


def _masked_crc(data: bytes) -> bytes:
    crc = crc32.iscsi(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA & 0xFFFFFFFF).to_bytes(4, "little")


def name_of(folder: Path) -> str:
    """Return `first`, or `td3-seeds/s0` for a run of a group."""
    if folder.is_relative_to(PROJECT.runs):
        return str(folder.relative_to(PROJECT.runs))
    return folder.name


class WandbLog:
    """A run of the service for a run here; a resumed run resumes it."""

    def __init__(self, project: str, folder: Path, begun: str, config: Mapping[str, Any]) -> None:
        """Start a run of the service. `begun` tells it from an earlier run of the same folder;
        `config` has the hyperparameters. RltError: the service takes no run."""
        self._run: Any = None
        self._folder = folder
        self._failed = ""
        try:
            import wandb

            self._run = wandb.init(
                project=project,
                name=name_of(folder),
                id=hashlib.sha256(f"{folder} {begun}".encode()).hexdigest()[:16],
                resume="allow",
                config=dict(config),
                dir=os.environ.get("WANDB_DIR", str(PROJECT.build)),
                settings=wandb.Settings(
                    silent=True, console="off", disable_git=True, disable_code=True
                ),
            )
        except Exception as error:  # of the service, of the network, of an account
            reason = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
            raise RltError(
                f"Weights & Biases takes no run ({reason}): log in with `wandb login`, or set "
                "WANDB_MODE=offline"
            ) from None

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the scalars of a step; those that are not finite are left out. What the service does
        not take is lost there, and training continues."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if known and not self._failed:
            try:
                self._run.log(known, step=step)
            except Exception as error:
                self._failed = str(error) or type(error).__name__

    def flush(self) -> None:
        """Leave sending to the service."""

    def close(self) -> None:
        if self._run is not None:
            run, self._run = self._run, None
            run.finish()

"""Generates the wire format's C headers and Python module from rltools.xml, with pymavlink.

Usage: generate.py DIRECTORY. Writes DIRECTORY/c, DIRECTORY/python/rltools_dialect.py and
DIRECTORY/stamp; does nothing when the stamp says that XML and pymavlink are as before.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

DIALECT = Path(__file__).resolve().parent / "rltools.xml"
STANDARD_DEFINITIONS = ("common.xml", "standard.xml", "minimal.xml")
# What of MAVLink's 250 common messages, and of its commands, firmware or host tools name. The
# others are left out: they would take a third of the time that firmware takes to compile, and most
# of the time that the Python module takes to load.
STANDARD_MESSAGES = frozenset(
    (
        "AUTOPILOT_VERSION",
        "COMMAND_ACK",
        "COMMAND_INT",
        "COMMAND_LONG",
        "FILE_TRANSFER_PROTOCOL",
        "HEARTBEAT",
        "NAMED_VALUE_INT",
        "PARAM_REQUEST_LIST",
        "PARAM_REQUEST_READ",
        "PARAM_SET",
        "PARAM_VALUE",
        "STATUSTEXT",
    )
)
STANDARD_COMMANDS = frozenset(("MAV_CMD_COMPONENT_ARM_DISARM", "MAV_CMD_REQUEST_MESSAGE"))
# Besides those that are the type of a field of these messages.
STANDARD_ENUMS = frozenset(("MAV_COMPONENT",))


def stamp_text() -> str:
    """Identify what the output was made from: this script, the dialect and pymavlink."""
    from pymavlink import __version__

    digest = hashlib.sha256(Path(__file__).read_bytes() + DIALECT.read_bytes()).hexdigest()
    return f"{digest} pymavlink {__version__}\n"


def write_what_is_used(definitions: Path, output: Path) -> None:
    """Copy a file of MAVLink's definitions without the messages and so on that nobody names."""
    from xml.etree import ElementTree

    tree = ElementTree.parse(definitions)
    messages, enums = tree.find("messages"), tree.find("enums")
    for message in list(messages if messages is not None else ()):
        if messages is not None and message.get("name") not in STANDARD_MESSAGES:
            messages.remove(message)
    types = {entry.get("enum") for entry in tree.iter("field")} | STANDARD_ENUMS
    for enum in list(enums if enums is not None else ()):
        if enums is not None and enum.get("name") not in types:
            enums.remove(enum)
        elif enum.get("name") == "MAV_CMD":
            for entry in enum.findall("entry"):
                if entry.get("name") not in STANDARD_COMMANDS:
                    enum.remove(entry)
    tree.write(output, encoding="utf-8", xml_declaration=True)


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold off other processes that generate into the same directory; released even by a kill."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w", encoding="utf-8") as file:
        lock(file)
        yield


def lock(file: IO[str]) -> None:
    """Wait until this process alone has the file, which is until it is closed."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
    else:
        is_locked = False
        while not is_locked:
            with contextlib.suppress(OSError):  # tried for ten seconds
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                is_locked = True


def run_mavgen(dialect: Path, language: str, output: Path) -> None:
    from pymavlink.generator import mavgen, mavparse

    options = mavgen.Opts(
        str(output), wire_protocol=mavparse.PROTOCOL_2_0, language=language, validate=True
    )
    messages = io.StringIO()
    try:
        with contextlib.redirect_stdout(messages):
            succeeded = mavgen.mavgen(options, [str(dialect)])
    except SystemExit as error:
        succeeded = False
        messages.write(str(error))
    if not succeeded:
        sys.stderr.write(messages.getvalue())
        raise SystemExit(f"{DIALECT}: mavgen could not generate {language} from it")


def replace_directory(source: Path, destination: Path) -> None:
    """Put a finished directory in place of an older one."""
    if destination.exists():
        shutil.rmtree(destination)
    os.replace(source, destination)


def is_current(output: Path) -> bool:
    """Return whether the output is up to date; its time follows the inputs' then, for builds."""
    stamp = output / "stamp"
    if not stamp.is_file() or stamp.read_text() != stamp_text():
        return False
    if stamp.stat().st_mtime < max(DIALECT.stat().st_mtime, Path(__file__).stat().st_mtime):
        os.utime(stamp)
    return True


def generate(output: Path) -> bool:
    """Brings the output up to date; true when anything was generated."""
    with exclusive(output):
        if is_current(output):
            return False
        import pymavlink

        definitions = Path(pymavlink.__file__).parent / "dialects" / "v20"
        with tempfile.TemporaryDirectory(dir=output) as scratch_name:
            scratch = Path(scratch_name)
            for name in STANDARD_DEFINITIONS:
                write_what_is_used(definitions / name, scratch / name)
            dialect = scratch / DIALECT.name
            shutil.copy(DIALECT, dialect)
            (scratch / "python").mkdir()
            run_mavgen(dialect, "C", scratch / "c")
            run_mavgen(dialect, "Python3", scratch / "python" / "rltools_dialect.py")
            (output / "stamp").unlink(missing_ok=True)
            replace_directory(scratch / "c", output / "c")
            replace_directory(scratch / "python", output / "python")
            (scratch / "stamp").write_text(stamp_text())
            os.replace(scratch / "stamp", output / "stamp")
    return True


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    generate(Path(sys.argv[1]))

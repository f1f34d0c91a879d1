"""`rlt fly` with `--px4`: a flight with a PX4 that is simulated, as a terminal shows it."""

from __future__ import annotations

import contextlib
import functools
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from rltools_host.commands.push import UploadLine
from rltools_host.errors import DiskError, UsageError
from rltools_host.files import write_atomically
from rltools_host.flight.flight_settings import given_settings
from rltools_host.flight.prediction import predictor
from rltools_host.flight.px4_flight import Px4Request, fly
from rltools_host.flight.px4_result import DONE, FILE, FlightResult, lines
from rltools_host.flight.px4_start import STARTS
from rltools_host.flight.simulator import check_policy, flight_library
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder


def run(
    run_name: str,
    url: str,
    starts: int,
    settings: Sequence[str],
    json_output: bool,
    out: Path | None,
) -> FlightResult:
    """`settings` are the prediction's, where they are not those that the vehicle tells."""
    if not 1 <= starts <= len(STARTS):
        raise UsageError(f"--starts {starts}: give 1 to {len(STARTS)}")
    if out is not None and not out.absolute().parent.is_dir():
        raise DiskError(f"cannot write {out}: there is no folder {out.parent}; make it first")
    given = given_settings(settings)
    flight_library().setting_bits(given)
    folder = RunFolder.open(run_name).path
    image = read_run_policy(run_name)
    check_policy(image)
    request = Px4Request(run_name, url, starts, functools.partial(predictor, image), given)
    line = UploadLine()

    def keep(result: FlightResult) -> None:
        line.clear()
        if result.state == DONE:
            print("\n".join(lines(result)), flush=True)
        if result.starts:
            text = (json.dumps(result.document()) + "\n").encode()
            for path in (folder / FILE, *([out] if out is not None else [])):
                write_atomically(path, text)

    with ending_as_by_ctrl_c():
        result = fly(request, line.say, keep, line.progress)
    if json_output:
        print(json.dumps(result.document(with_series=False)))
    return result


@contextlib.contextmanager
def ending_as_by_ctrl_c() -> Iterator[None]:
    """A terminal that closes, and SIGTERM, land the vehicle as Ctrl-C does: once, by the first of
    them. Then a Ctrl-C ends the program at once, and the others, which may come together, do not
    keep it from landing. What somebody lets pass (nohup) stays so."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            is_typed = number == signal.SIGINT
            signal.signal(number, signal.SIG_DFL if is_typed else signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = {
        number: handler
        for number in numbers
        if (handler := signal.getsignal(number)) != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

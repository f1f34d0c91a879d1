"""The picture of a flight in progress, in place on a terminal and as plain lines elsewhere; and its
replay, one HTML page with nothing to load, whose script draws it in 3-D."""

from __future__ import annotations

import base64
import json
import math
import time
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rltools_host.drones.flight.disturbances import FAULTS, TICKS_A_S
from rltools_host.drones.flight.loop import Trace, is_fault
from rltools_host.drones.flight.result import LoopResult, event_line
from rltools_host.screen.terminal import InPlace, Pace, add_bar, can_show, curve

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

REFRESH_S, DRAWING_SHARE = 0.1, 0.05
PLAIN_LINE_S = 10.0
CURVE_POINTS = 400
ROTORS = ("front right", "rear right", "rear left", "front left")
BAR_WIDTH = 20


class PlainFlight:
    """A line now and then; the result follows at the end."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._line_at: float

    def begin(self, _: LoopResult) -> None:
        self._line_at = time.monotonic()

    def ticked(self, trace: Trace) -> None:
        if time.monotonic() - self._line_at > PLAIN_LINE_S:
            self._line_at = time.monotonic()
            flown_s, planned_s = trace.count / TICKS_A_S, trace.planned / TICKS_A_S
            away = f"{trace.errors_m[-1]:.2f} m from the target"
            print(f"  {flown_s:.2f} s of {planned_s:g} s, {away}", file=self._stream, flush=True)

    def end(self) -> None:
        pass


class LiveFlight:
    """A picture in place, which is erased when the flight is over: the result is then printed for
    terminals and pipes in the same way."""

    def __init__(self, stream: IO[str]) -> None:
        self._shown = InPlace(stream, Pace(REFRESH_S, DRAWING_SHARE))
        self._result: LoopResult

    def begin(self, result: LoopResult) -> None:
        self._result = result

    def ticked(self, trace: Trace) -> None:
        if self._shown.pace.is_due(time.monotonic()):
            self._shown.draw(time.monotonic(), lambda width, _: picture(self._result, trace, width))

    def end(self) -> None:
        self._shown.end(stays=False)


def make_watcher(stream: IO[str]) -> PlainFlight | LiveFlight:
    return LiveFlight(stream) if can_show(stream) else PlainFlight(stream)


def picture(result: LoopResult, trace: Trace, width: int) -> Group:
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    width = min(width, 110) - 2
    title = Text.assemble((result.run, "bold"), " flies over ", (result.board, "bold"))
    title.append(f"   {result.table}, start {result.start}", "dim")
    parts: list[Rule | Text] = [
        Rule(title, align="left", style="dim"),
        progress(trace, width, result.wall_s),
    ]
    parts += [*figures(trace, width), *rotor_bars(trace, width), distance(trace, width)]
    parts.append(last_event(result))
    return Group(*parts)


def progress(trace: Trace, width: int, wall_s: float) -> Text:
    from rich.text import Text

    flown_s, planned_s = trace.count / TICKS_A_S, trace.planned / TICKS_A_S
    rate = trace.count / wall_s if wall_s > 0.0 else 0.0
    label = f"{flown_s:6.2f} of {planned_s:g} s   {rate:,.0f} ticks/s"
    text = Text(" ")
    add_bar(text, flown_s / planned_s, max(10, width - len(label) - 4), "cyan")
    text.append(f"   {label}")
    return text


def figures(trace: Trace, width: int) -> list[Text]:
    """Return the figures, as many to a line as fit."""
    from rich.text import Text

    state = trace.states[-1]
    _, x, y, _ = (float(value) for value in state["attitude"])
    tilt = math.degrees(math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (x * x + y * y)))))
    speed = float(np.linalg.norm(state["velocity_m_s"]))
    lines = [Text(no_wrap=True)]
    for name, value in (
        ("from target", f"{trace.errors_m[-1]:.3f} m"),
        ("speed", f"{speed:.2f} m/s"),
        ("tilt", f"{tilt:.1f}°"),
        ("position", " ".join(f"{value:+.2f}" for value in state["position_m"]) + " m"),
    ):
        text = Text.assemble((f" {name} ", "dim"), (value, "bold"), no_wrap=True)
        if lines[-1] and len(lines[-1]) + 2 + len(text) > width:
            lines.append(Text(no_wrap=True))
        if lines[-1]:
            lines[-1].append("  ")
        lines[-1].append_text(text)
    return lines


def rotor_bars(trace: Trace, width: int) -> list[Text]:
    """Return the thrusts as fractions of the maximum, two to a line as they lie seen from above,
    where that fits."""
    from rich.text import Text

    action = trace.ticks["action"][-1]
    longest = max(map(len, ROTORS))
    rest = longest + len("   100 % ")
    pairs = [(3, 0), (2, 1)] if width >= 2 * (rest + 1) else [(3,), (0,), (2,), (1,)]
    bar = max(1, min(BAR_WIDTH, width // len(pairs[0]) - rest))
    lines = []
    for pair in pairs:
        text = Text(no_wrap=True)
        for rotor in pair:
            text.append(f" {ROTORS[rotor]:>{longest}} ", "dim")
            add_bar(text, float(action[rotor]), bar, "green")
            text.append(f" {100 * float(action[rotor]):3.0f} % ")
        lines.append(text)
    return lines


def distance(trace: Trace, width: int) -> Text:
    """Return the distance from the target over time."""
    errors = trace.errors_m
    stride = max(1, len(errors) // CURVE_POINTS)
    points = [(i / TICKS_A_S, float(errors[i])) for i in range(0, len(errors), stride)]
    return curve("distance, m", points, trace.planned / TICKS_A_S, width, "cyan")


def last_event(result: LoopResult) -> Text:
    from rich.text import Text

    if len(result.events) < 2:
        return Text(" the policy acts", "dim")
    event = result.events[-1]
    return Text(f" {event_line(event, result)}", "bold red" if event.is_failsafe else "yellow")


TEMPLATE = Path(__file__).with_name("replay.html")
MAX_FRAMES = 5000
# A frame's numbers, as replay.html reads them: position, attitude, target, thrusts, rotor speeds,
# observation's age in ms, and whether the action is the safe one.
FRAME_FLOATS = 3 + 4 + 3 + 4 + 4 + 1 + 1


def frames(trace: Trace) -> tuple[np.ndarray[Any, np.dtype[np.float32]], int]:
    """Return the frames (n, FRAME_FLOATS), and the number of ticks from one to the next."""
    stride = -(-trace.count // MAX_FRAMES)
    ticks = trace.ticks[::stride]
    reading = ticks["reading"]
    columns = (
        reading["position_m"],
        reading["attitude"],
        reading["target_position_m"],
        ticks["action"],
        reading["rotor_speed"],
        ticks["age_us"][:, np.newaxis] * 1e-3,
        np.array([is_fault(status) for status in ticks["status"]])[:, np.newaxis],
    )
    return np.concatenate(columns, axis=1).astype("<f4"), stride


def page(result: LoopResult) -> str:
    assert result.trace is not None, "a flight that began"
    values, stride = frames(result.trace)
    faults = [
        {
            "from": fault.first / TICKS_A_S,
            "to": (fault.end or result.trace.planned) / TICKS_A_S,
            "text": FAULTS[fault.what][0],
        }
        for fault in result.disturbances.faults
    ]
    data = {
        "frames": base64.b64encode(values.tobytes()).decode(),
        "floats": FRAME_FLOATS,
        "frame_s": stride / TICKS_A_S,
        "radius_m": result.rule.radius_m,
        "events": [
            {
                "time_s": event.time_s,
                "text": event_line(event, result),
                "safe": event.is_failsafe,
            }
            for event in result.events
        ],
        "faults": faults,
    }
    texts = {
        "TITLE": f"{result.policy_name} over {result.board}",
        "KICKER": f"Flight in the loop · {result.table} · start {result.start}",
        "VERDICT": verdict(result),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in texts.items():
        text = text.replace(f"[[{name}]]", escape(value))
    # Within a script only "<" could end it.
    return text.replace("[[DATA]]", json.dumps(data).replace("<", "\\u003c"))


def verdict(result: LoopResult) -> str:
    flown = f"{result.flown_s:.2f} s, {result.ticks:,} ticks over the board"
    bits = (
        "each with the bits of the flight on this machine"
        if result.same_bits
        else f"other bits than on this machine from tick {result.first_difference:,} on"
    )
    end = "Success" if result.success else f"No success: {result.cause_text}"
    return f"{end}. {flown}, {bits}."

"""The replay of a flight: one HTML page with nothing to load, whose script draws it in 3-D."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.drones.flight.disturbances import TICKS_A_S
from rltools_host.drones.flight.loop import Trace, is_fault
from rltools_host.drones.flight.result import LoopResult, event_line

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
            "text": fault.text,
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

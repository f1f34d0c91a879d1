"""What `rlt evaluate` found at gates: rates by table, why flights failed, some of them drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rltools_host.flight.gate_result import PATTERN, GateResult, percent, read_result, table_rows
from rltools_host.flight.simulator import Cause, flight_library
from rltools_host.policies.image import PolicyImage
from rltools_host.report.flight_plots import Drawn, flight_paths, flight_series, rate_plot
from rltools_host.report.markup import Section, number, table, text
from rltools_host.report.run_data import RunData

MOST_PATHS = 10
STYLE = "section > figure + figure { margin-top: 20px; }\n"


def section(data: RunData) -> Section | None:
    image = data.image
    paths = sorted(data.folder.path.glob(PATTERN)) if image is not None else []
    parts = [part for path in paths if image is not None and (part := shown(path, image))]
    if not parts:
        return None
    lead = (
        "By <code>rlt evaluate --gate</code>: simulated flights from held-out starts, tick by tick "
        "of 2\N{NO-BREAK SPACE}ms, with the firmware's executor; <code>docs/gate.md</code> defines "
        "them. Intervals are Wilson's, of 95\N{NO-BREAK SPACE}%."
    )
    return Section("Flights", lead, "".join(parts), STYLE)


def shown(path: Path, image: PolicyImage) -> str:
    """A gate's part of the section; a sentence where its file cannot be read, and nothing where it
    is of another policy: a run that went on has another one now."""
    try:
        result = read_result(path)
    except (OSError, ValueError) as error:
        return f"<p>{text(path.name)} is damaged ({text(error)}): fly the gate again.</p>"
    if result.policy_sha256 != image.sha256:
        return ""
    gate, share = result.gate, result.all
    low, high = share.interval
    heads, *rows = table_rows(result.by_table)
    body = (
        f"<h3>{text(gate.title)}</h3><p>{text(gate.about)} A flight is a success "
        f"{text(gate.rule.text)}, with no limit broken. "
        f"<strong>{text(percent(share.rate))}</strong> of {number(share.flights)} flights were "
        f"({text(percent(low))} to {text(percent(high))}).</p>"
        + rate_plot(result)
        + table(heads, rows)
        + causes(result)
    )
    drawn = drawn_flights(result, image)
    if drawn is None:
        return body + (
            "<p>This tree's simulator gives other flights than those: fly the gate again to see "
            "them.</p>"
        )
    return body + flight_paths(drawn, gate.name) + flight_series(drawn, gate.rule, gate.name)


def causes(result: GateResult) -> str:
    """What the words of the table mean, of the causes that there were."""
    found = {Cause.of(key): count for key, count in result.all.causes.items() if count}
    if not found:
        return ""
    rows = [
        (cause.short, number(count), sentence(cause, result))
        for cause, count in sorted(found.items(), key=lambda item: -item[1])
    ]
    return table(("failure", "flights", "what happened"), rows)


def sentence(cause: Cause, result: GateResult) -> str:
    if cause != Cause.EXECUTOR_FAULT:
        return cause.text
    faults = ", ".join(f"{words} ({number(count)})" for words, count in result.faults.items())
    return f"{cause.text}: {faults}"


def drawn_flights(result: GateResult, image: PolicyImage) -> list[Drawn] | None:
    """Flown again: the median of the successful ones, the slowest, a failure of the most frequent
    cause, and the first few of the others. None where they are not those of the result."""
    drawn = []
    for name, episode in chosen(result):
        outcome, trace = result.gate.trace(image, episode)
        stored = result.outcomes[episode]
        if any(outcome[key] != stored[key] for key in ("cause", "ticks", "settling_tick")):
            return None
        table_name = flight_library().table_name(int(outcome["table"]))
        drawn.append(Drawn(name, episode, Cause(outcome["cause"]), table_name, trace))
    return drawn


def chosen(result: GateResult) -> list[tuple[str, int]]:
    """Names and episodes: up to three that are described, then some without a name."""
    outcomes = result.outcomes
    named: list[tuple[str, int]] = []
    good = np.flatnonzero(outcomes["cause"] == Cause.SUCCESS)
    if good.size:
        by_time = good[np.argsort(outcomes["settling_tick"][good], kind="stable")]
        named.append(("median success", int(by_time[(len(by_time) - 1) // 2])))
        if len(by_time) > 1:
            named.append(("slowest success", int(by_time[-1])))
    counts = result.all.causes
    if any(counts.values()):
        worst = Cause.of(max(counts, key=lambda key: counts[key]))
        failed = np.flatnonzero(outcomes["cause"] == worst)
        named.append((f"failure: {worst.short}", int(failed[0])))
    taken = {episode for _, episode in named}
    others = [episode for episode in range(len(outcomes)) if episode not in taken]
    return named + [("", episode) for episode in others[: MOST_PATHS - len(named)]]

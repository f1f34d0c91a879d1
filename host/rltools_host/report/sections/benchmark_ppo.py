"""Steps a second of PPO's loop against other libraries, as measured on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.bench import ppo, ppo_result
from rltools_host.errors import DamagedFileError
from rltools_host.files import read_json
from rltools_host.report.markup import Section, number, text
from rltools_host.report.run_data import RunData
from rltools_host.report.sections.benchmark import library_bars

EXPERIMENT = "ant-ppo"


def newest_benchmark() -> Mapping[str, Any] | None:
    """What `rlt bench ppo` measured last on this machine; None where it never did."""
    try:
        document = read_json(ppo.result_path())
        ppo_result.lines(document)  # that of another version lacks what is shown here
    except (DamagedFileError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document if ppo_result.bars(document) else None


def section(data: RunData) -> Section | None:
    document = newest_benchmark() if data.metadata.get("experiment") == EXPERIMENT else None
    if document is None:
        return None
    rows = "".join(benchmark_row(entry) for entry in document["summary"])
    lead = (
        f"{text(ppo_result.title(document))}, by <code>rlt bench ppo</code> on "
        f"{text(document['date'])}: steps of the whole loop, collection and learning, median of "
        f"{text(document['rounds'])} turns; {text(ppo_result.machine_line(document))}. EnvPool "
        "alone and <code>mujoco.rollout</code> alone learn nothing. The policy of this page is not "
        "part of it."
    )
    bars = ppo_result.bars(document)
    chart = library_bars(bars, "steps a second", f"Steps a second of {len(bars)} libraries")
    table = f'<table class="stacked"><tbody>{rows}</tbody></table>'
    return Section("Steps a second against other libraries", lead, chart + table)


def benchmark_row(entry: Mapping[str, Any]) -> str:
    """A library's medians, or why there are none."""
    name = f"<tr><th>{text(entry['title'])}</th>"
    if "steps_s" not in entry:
        reason = text(entry.get("error", ""))
        return f'{name}<td class="soft sentence" colspan="4">not measured: {reason}</td></tr>'
    share = entry["of_rollout"]
    cells = (
        text(entry["version"]),
        text(entry["simulator"]),
        f"{entry['steps_s']:,.0f} steps/s",
        "" if share is None else f"{number(100 * share, 0)} % of mujoco.rollout",
    )
    return name + "".join(f' <td class="number">{cell}</td>' for cell in cells) + "</tr>"

"""What `rlt hil` found of this run's policy on boards, with the paper's figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.errors import DamagedFileError
from rltools_host.files import read_json
from rltools_host.hil import result
from rltools_host.report.markup import Section, table
from rltools_host.report.run_data import RunData

# Microseconds of one pass on real boards: arXiv 2306.03530, table 2.
PAPER_NETWORK = "13-64-64-4, ReLU"
PAPER_COLUMNS = ("generic", "DSP", "optimised")
NOT_AS_WRITTEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
PAPER_INFERENCE_US = {
    "Crazyflie": (743, 478, 293),
    "Pixhawk 6C": (133, 93, 53),
    "Teensy 4.1": (64, 45, 41),
    "ESP32": (4282, 279, 333),
    "ESP32-C3": (8716, 6950, 6645),
}


def section(data: RunData) -> Section | None:
    found = results(data)
    if not found:
        return None
    units = {result.unit_of(document) for document in found}
    lead = (
        "By <code>rlt hil</code>: the policy on boards, each compared with this machine over "
        "random and extreme observations. Equal outputs have equal checksums. A tick is a call of "
        "the executor: its checks, the pass and the limits of the action."
    )
    if result.INSTRUCTIONS in units:
        lead += (
            " Guest instructions are what an emulated processor executed; they are <strong>neither "
            "time nor cycles</strong>, and cannot be compared with microseconds."
        )
    rows = [row for document in found for row in result.cost_rows(document)]
    body = table(result.PARITY_HEADER, [result.parity_row(document) for document in found])
    if rows:
        body += table(result.COST_HEADER, rows)
    return Section("Hardware in the loop", lead, body + paper())


def results(data: RunData) -> list[Mapping[str, Any]]:
    """Of the run's folder, but what another version wrote and lacks what is shown here."""
    found = []
    for path in sorted(data.folder.path.glob("hil-*.json")):
        try:
            document = read_json(path)
            result.lines([document])
        except (DamagedFileError, *NOT_AS_WRITTEN):
            continue
        # A run that went on has another policy now.
        is_of_policy = data.image and document.get("policy_sha256") == data.image.sha256
        if is_of_policy and "parity" in document:
            found.append(document)
    return found


def paper() -> str:
    rows = [
        (board, *map(result.number_text, values), "microseconds")
        for board, values in PAPER_INFERENCE_US.items()
    ]
    return (
        "<h3>For comparison: the paper's table 2, real boards</h3>"
        f"<p>Of another network ({PAPER_NETWORK}), with the authors' library: microseconds of one "
        "pass with generic code, with the vendor's DSP library, and with optimised code.</p>"
        + table(("board", *PAPER_COLUMNS, "unit"), rows)
    )

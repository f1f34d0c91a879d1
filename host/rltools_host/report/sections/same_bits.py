"""The training state of the same run on other boards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rltools_host.errors import RltError
from rltools_host.report.markup import Section, text
from rltools_host.report.run_data import RunData, known_board
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import run_names


def section(data: RunData) -> Section | None:
    digest = str(data.metadata.get("state_sha256") or "")
    if not digest or data.image is None:
        return None
    rows = [same_bits_row(data.folder, digest, is_this=True)]
    rows += [same_bits_row(other, digest, is_this=False) for other in find_companions(data.folder)]
    lead = (
        f"The policy's {len(data.image.examples)} examples, computed by the board, were replayed "
        "on this machine: every bit of every layer agrees. The training state is all weights, "
        "optimiser moments and the replay buffer."
    )
    table = (
        '<table class="stacked"><thead><tr><th>trained on</th><th>SHA-256 of the training state'
        f"</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return Section("The same bits", lead, table)


def same_bits_row(folder: RunFolder, expected: str, *, is_this: bool) -> str:
    digest = str(folder.metadata.get("state_sha256"))
    if is_this:
        badge = "this run"
    elif digest == expected:
        badge = '<span class="badge good">same bits</span>'
    else:
        badge = '<span class="badge bad">other bits</span>'
    return (
        f"<tr><th>{text(folder.metadata.get('board'))}</th>"
        f'<td class="sentence"><code>{text(digest)}</code></td><td>{badge}</td></tr>'
    )


def find_companions(folder: RunFolder) -> list[RunFolder]:
    """Finished runs beside this one with the same training on another board."""
    companions: dict[str, RunFolder] = {}
    for name in run_names(folder.path.parent):
        if name == folder.name:
            continue
        try:
            other = RunFolder.open(folder.path.parent / name)
        except RltError:
            continue
        same = ("experiment", "fingerprint", "seed", "steps")
        if any(other.metadata.get(key) != folder.metadata.get(key) for key in same):
            continue
        if training_of(other.metadata) != training_of(folder.metadata):
            continue
        if other.metadata.get("board") == folder.metadata.get("board"):
            continue
        if not (gives_the_same_bits(folder) and gives_the_same_bits(other)):
            continue
        if other.metadata.get("state_sha256") and other.metadata.get("state") == "finished":
            companions[str(other.metadata.get("board"))] = other
    return list(companions.values())


def gives_the_same_bits(folder: RunFolder) -> bool:
    """Whether the run's board is meant to; one that is not described here any more is."""
    board = known_board(folder.metadata)
    return board is None or board.bit_identical


def training_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters that influence the training state."""
    watching = ("report_every", "eval_every", "eval_episodes")
    values = metadata.get("hyperparameters") or {}
    return {name: value for name, value in values.items() if name not in watching}

"""The origin of the run: its training state on other boards, its hyperparameters against the
experiment's defaults, and the commands that repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from rltools_host.environments.environment_server import FAULT
from rltools_host.errors import RltError
from rltools_host.report.markup import Html, Section, number, table, text
from rltools_host.report.run_data import RunData
from rltools_host.runs.contents import Imported, Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import run_names

# -- the same bits ---------------------------------------------------------------------------------


def same_bits(data: RunData) -> Section | None:
    digest = data.run.state_sha256
    if digest is None or data.image is None or data.run.imported is not None:
        return None
    rows = [same_bits_row(data.folder, digest, is_this=True)]
    rows += [same_bits_row(other, digest, is_this=False) for other in find_companions(data.folder)]
    lead = (
        f"The policy's {len(data.image.examples)} examples, computed by the board, were replayed "
        "on this machine: every bit of every layer agrees. The training state is all weights, "
        "optimizer moments and the replay buffer."
    )
    heads = ("trained on", "SHA-256 of the training state", "")
    return Section("The same bits", lead, table(heads, rows, "stacked", ("sentence", "")))


def same_bits_row(folder: RunFolder, expected: str, *, is_this: bool) -> tuple[str, ...]:
    digest = folder.content.state_sha256 or ""
    if is_this:
        badge = "this run"
    elif digest == expected:
        badge = '<span class="badge good">same bits</span>'
    else:
        badge = '<span class="badge bad">other bits</span>'
    return (
        folder.content.board,
        Html(f"<code>{text(digest)}</code>"),
        Html(badge),
    )


def find_companions(folder: RunFolder) -> list[RunFolder]:
    """Return finished runs beside this one with the same training on another board."""
    companions: dict[str, RunFolder] = {}
    for name in run_names(folder.path.parent):
        if name == folder.name:
            continue
        try:
            other = RunFolder.open(folder.path.parent / name)
        except RltError:
            continue
        its, ours = other.content, folder.content
        if training_of(its) != training_of(ours) or its.board == ours.board:
            continue
        if its.state_sha256 is not None and its.state == "finished":
            companions[its.board] = other
    return list(companions.values())


def training_of(run: Run) -> tuple[Any, ...]:
    """Return the values that decide the training state."""
    watching = ("report_every", "eval_freq", "n_eval_episodes")
    values = {name: value for name, value in run.hyperparameters.items() if name not in watching}
    changed = [(session.first_step, session.changed) for session in run.sessions if session.changed]
    return run.experiment, run.fingerprint, run.seed, run.steps, values, changed


# -- hyperparameters -------------------------------------------------------------------------------


def hyperparameters(data: RunData) -> Section | None:
    values = data.run.hyperparameters
    if not values:
        return None
    described = {entry.name: entry for entry in data.hyperparameters}
    changed = [name for name in values if name in described and not is_default(data, name)]
    chosen = [name for name in changed if not is_the_boards(data, name)]
    rows = []
    for name, value in values.items():
        entry = described.get(name)
        mark, sentence, unit = "", "", ""
        if entry is not None:
            mark = "default" if is_default(data, name) else f"default {plain(entry.default)}"
            if name in changed and is_the_boards(data, name):
                mark += ", set by the board"
            sentence, unit = entry.description, entry.unit
        weight = "strong" if name in changed else "span"
        shown = Html(f"<{weight}>{text(plain(value))}</{weight}> {text(unit)}")
        rows.append((Html(f"<code>{text(name)}</code>"), shown, mark, sentence))
    lead = "All are the experiment's defaults."
    if chosen:
        lead = f"Other than the experiment's defaults: <strong>{text(', '.join(chosen))}</strong>."
    if not described:
        lead = "The experiment has changed since, so its defaults are not shown."
    heads = ("name", "value", "", "meaning")
    columns = ("number", "soft", "soft sentence")
    return Section("Hyperparameters", lead, table(heads, rows, "stacked", columns))


def is_default(data: RunData, name: str) -> bool:
    """Return whether the run's value is the default, to the precision of a float."""
    value = data.run.hyperparameters.get(name)
    for entry in data.hyperparameters:
        if entry.name == name:
            return bool(np.float32(entry.default) == np.float32(value))
    return False


def is_the_boards(data: RunData, name: str) -> bool:
    """Return whether the value is that of the board's description; it does not influence
    training."""
    environments = data.run.learning.get("environments", 1)
    return (
        name == "report_every"
        and data.board is not None
        and data.run.hyperparameters.get(name) == data.board.report_every * environments
    )


def plain(value: Any) -> str:
    """Return the shortest decimal that is the same float."""
    if isinstance(value, float):
        short = str(np.float32(value))
        return short.removesuffix(".0")
    return str(value)


# -- provenance ------------------------------------------------------------------------------------


def provenance(data: RunData) -> Section | None:
    run, identity = data.run, data.run.identity
    imported = run.imported
    rows: list[tuple[str, Any]] = [
        ("run", data.folder.name),
        ("state", data.folder.state),
        ("started", readable_time(run.started)),
        # In training it is an earlier session's.
        ("ended", readable_time(run.ended) if run.state != "training" else ""),
        ("source revision", revision_of(run)),
        ("board", data.board_title),
        ("board's kernels", identity.device),
        ("board's firmware revision", identity.revision),
        # Zeros where the board has none.
        ("board's serial number", identity.unique_id if identity.unique_id.strip("0") else ""),
        ("experiment's fingerprint", run.fingerprint),
    ]
    if imported is not None:
        rows.append(("imported from", f"{imported.file}, of {imported.library}"))
        rows.append(("proof", proof_of(imported)))
    if (fitted := run.fitted) is not None:
        rows.append(("airframe fitted to", f"{fitted.log}, {fitted.duration_s:.1f} s of flight"))
        rows.append(("SHA-256 of that log", fitted.sha256))
    what = "the training state" if imported is None else "what was imported"
    rows.append((f"SHA-256 of {what}", run.state_sha256))
    if data.image is not None:
        rows.append(("SHA-256 of the policy image", data.image.sha256))
        network = f"{data.image.shape}, {number(data.image.parameter_count)} parameters"
        rows.append(("policy network", network))
    rows += [
        ("faults of the environment", faults_of(data)),
        ("observations outside their range", run.observations_outside or ""),
        ("host", flat(run.host)),
        ("versions", flat(run.versions)),
    ]
    known = [(name, code_or_text(name, value)) for name, value in rows if value not in (None, "")]
    command = ""
    if run.experiment and imported is None:
        command = f"<h3>To reproduce</h3><pre><code>{text(reproduction(data))}</code></pre>"
    lead = "Where this run comes from, and how to get the same bits again."
    if imported is not None:
        lead = "What was imported, and how far the image is from it."
    return Section("Provenance", lead, table((), known, columns=("",)) + command)


def proof_of(imported: Imported) -> str:
    """Return how far the image's actions are from those of the file."""
    return (
        f"{imported.observations:,} observations: actions, normalized to -1 to 1, at most "
        f"{imported.difference:.1e} from {imported.proof}"
    )


def faults_of(data: RunData) -> str:
    """Return how often an environment of the user's failed, and its first error."""
    count = data.folder.content.environment_faults
    texts = [row["text"] for row in data.metrics if row.get("kind") == "event"]
    first = next((text for text in texts if text.startswith(FAULT)), "")
    return f"{count}; first: {first.removeprefix(FAULT)}" if count else ""


def readable_time(value: str) -> str:
    """Format 2026-01-02T03:04:05+00:00 as 2026-01-02 03:04:05 UTC."""
    return value.replace("T", " ", 1).replace("+00:00", " UTC")


def code_or_text(name: str, value: Any) -> str:
    is_code = name == "run" or "SHA-256" in name or "fingerprint" in name
    return Html(f"<code>{text(value)}</code>") if is_code else str(value)


def flat(value: Mapping[str, object]) -> str:
    """Format a mapping as "name value, name value"."""
    return ", ".join(f"{key} {item}" for key, item in value.items() if item not in (None, ""))


def revision_of(run: Run) -> str:
    if run.git_revision and run.git_dirty:
        return f"{run.git_revision} with uncommitted changes"
    return run.git_revision or ""


def reproduction(data: RunData) -> str:
    """Return the commands that train the same bits."""
    run = data.run
    task = run.gymnasium
    if task is not None and not task.is_named:
        return f"# rlt.train with {task.source}, as run.json says of it"
    what = run.experiment if task is None else shlex.join(task.words)
    command = [
        f"./rlt train {what} --board {run.board}",
        f"--seed {run.seed} --steps {run.steps}",
    ]
    for name, value in run.hyperparameters.items():
        is_given = name in ("seed", "steps", "report_every") or not data.hyperparameters
        if not is_given and not is_default(data, name):
            command.append(f"--set {name}={plain(value)}")
    lines = [" ".join(command)]
    if task is not None and task.has_channels:
        lines.append("# and --channels with the names, units and ranges in run.json")
    if revision := run.git_revision:
        lines.insert(0, f"git checkout {revision}")
    if run.git_dirty:
        lines.insert(0, "# the sources had changes that were not committed: bits may differ")
    return "\n".join(lines)

"""Where the run comes from, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from rltools_host.gymnasium_tasks.environment_server import FAULT
from rltools_host.gymnasium_tasks.task import task_of_run
from rltools_host.report.markup import Section, number, text
from rltools_host.report.run_data import RunData, identity_of
from rltools_host.report.sections.hyperparameters import is_default, plain


def section(data: RunData) -> Section | None:
    metadata, identity = data.metadata, identity_of(data.metadata)
    rows: list[tuple[str, Any]] = [("run", data.folder.name)]
    rows.append(("state", data.folder.state))
    rows.append(("started", readable_time(metadata.get("started"))))
    if metadata.get("state") != "training":  # else it is an earlier session's
        rows.append(("ended", readable_time(metadata.get("ended"))))
    rows.append(("source revision", revision_of(metadata)))
    rows.append(("board", data.board_title))
    rows.append(("board's kernels", identity.get("device")))
    rows.append(("board's firmware revision", identity.get("revision")))
    rows.append(("board's serial number", serial_number(identity)))
    rows.append(("experiment's fingerprint", metadata.get("fingerprint")))
    rows.append(("SHA-256 of the training state", metadata.get("state_sha256")))
    if data.image is not None:
        rows.append(("SHA-256 of the policy image", data.image.sha256))
        network = f"{data.image.shape}, {number(data.image.parameter_count)} parameters"
        rows.append(("policy network", network))
    rows.append(("faults of the environment", faults_of(data)))
    rows.append(("observations outside their range", data.folder.observations_outside or ""))
    rows.append(("host", flat(metadata.get("host"))))
    rows.append(("versions", flat(metadata.get("versions"))))
    body = "".join(
        f"<tr><th>{text(name)}</th><td>{code_or_text(name, value)}</td></tr>"
        for name, value in rows
        if value not in (None, "", {})
    )
    command = ""
    if metadata.get("experiment"):
        command = f"<h3>To reproduce</h3><pre><code>{text(reproduction(data))}</code></pre>"
    lead = "Where this run comes from, and how to get the same bits again."
    return Section("Provenance", lead, f"<table><tbody>{body}</tbody></table>{command}")


def faults_of(data: RunData) -> str:
    """How often an environment of the user's failed, and how it did first."""
    count = data.folder.environment_faults
    texts = [row["text"] for row in data.metrics if row.get("kind") == "event"]
    first = next((text for text in texts if text.startswith(FAULT)), "")
    return f"{count}; first: {first.removeprefix(FAULT)}" if count else ""


def serial_number(identity: Mapping[str, Any]) -> str:
    """Empty where the board has none, which it says with zeros."""
    digits = str(identity.get("unique_id") or "")
    return digits if digits.strip("0") else ""


def readable_time(value: Any) -> str:
    """2026-01-02T03:04:05+00:00 as 2026-01-02 03:04:05 UTC."""
    return str(value or "").replace("T", " ", 1).replace("+00:00", " UTC")


def code_or_text(name: str, value: Any) -> str:
    is_code = name == "run" or "SHA-256" in name or "fingerprint" in name
    return f"<code>{text(value)}</code>" if is_code else text(value)


def flat(value: Any) -> str:
    """A mapping as "name value, name value"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items() if item not in (None, ""))
    return "" if value is None else str(value)


def revision_of(metadata: Mapping[str, Any]) -> str:
    revision = str(metadata.get("git_revision") or "")
    if revision and metadata.get("git_dirty"):
        return f"{revision} with uncommitted changes"
    return revision


def reproduction(data: RunData) -> str:
    """The commands that train the same bits."""
    metadata = data.metadata
    task = task_of_run(metadata)
    if task is not None and not task.is_named:
        return f"# train_gymnasium with {task.source}, as run.json says of it"
    what = metadata.get("experiment") if task is None else shlex.join(task.words)
    command = [
        f"./rlt train {what} --board {metadata.get('board')}",
        f"--seed {metadata.get('seed')} --steps {metadata.get('steps')}",
    ]
    values = metadata.get("hyperparameters") or {}
    for name, value in values.items():
        is_given = name in ("seed", "steps", "report_every") or not data.hyperparameters
        if not is_given and not is_default(data, name):
            command.append(f"--set {name}={plain(value)}")
    lines = [" ".join(command)]
    if task is not None and task.has_channels:
        lines.append("# and --channels with the names, units and ranges in run.json")
    if revision := metadata.get("git_revision"):
        lines.insert(0, f"git checkout {revision}")
    if metadata.get("git_dirty"):
        lines.insert(0, "# the sources had changes that were not committed: bits may differ")
    return "\n".join(lines)

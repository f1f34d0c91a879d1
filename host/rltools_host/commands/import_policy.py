"""`rlt import`: a policy that another library trained becomes a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import (
    Channels,
    Json,
    SafeActionOption,
    StepIntervalOption,
    channel_table,
    refuse,
)
from rltools_host.errors import UsageError, near_matches
from rltools_host.lines import aside, columns, in_columns, next_steps
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.importing.faults import Finding
from rltools_host.policies.importing.run import Imported, ImportRequest, read_policy, save
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.runs.folder import RunFolder
from rltools_host.training.file_runs import imported_run, is_own
from rltools_host.tree import command_line, near_path

EXAMPLE = "import ppo.zip --environment gym:Pendulum-v1 --normalizer vec_normalize.pkl"
ACTIVATION_NAMES = ", ".join(ACTIVATIONS)


def lines_of(imported: Imported) -> list[str]:
    image = imported.image
    normalizer = "" if image.normalizer is None else ", normalizer"
    return [
        f"{imported.policy.library}, {image.shape}{normalizer}, for {imported.target.name}",
        *(f"  {proof.line()}" for proof in imported.proofs),
    ]


def document_of(
    imported: Imported, folder: RunFolder, finding: Finding | None
) -> dict[str, object]:
    image = imported.image
    flown: dict[str, object] = {}
    if finding is not None:
        fault = finding.fault
        flown = {
            "return_mean": float(finding.returns.mean()),
            "return_std": float(finding.returns.std()),
            "idle_return": finding.idle,
            "hypotheses": finding.tried,
            "fault": None if fault is None else fault.meaning,
            "remedy": None if fault is None else fault.remedy,
            "restored_return": None if fault is None else finding.restored,
        }
    return {
        "run": str(folder.path),
        "library": imported.policy.library,
        "shape": image.shape,
        "environment": image.environment,
        "sha256": image.sha256,
        "proofs": [
            {
                "what": each.what,
                "observations": each.count,
                "difference": each.difference,
                **({} if each.same_choices is None else {"choices": each.same_choices}),
            }
            for each in imported.proofs
        ],
        "notes": list(imported.notes),
        "findings": [
            {"check": "assumed", "what": line.removeprefix("assumed: ")}
            for line in (*imported.assumed, *imported.assumptions())
        ],
        **flown,
    }


def next_step(imported: Imported, folder: RunFolder) -> str:
    """Return the command to continue with."""
    path = near_path(folder.path)
    if imported.target.task is not None:
        return command_line("evaluate", path)
    if imported.target.contract_name is None:
        return command_line("export", path, "--to", "c")
    return command_line("push", path, "--board", "host")


def activation(option: str, name: str | None) -> str | None:
    if name is not None and name not in ACTIVATIONS:
        raise UsageError(f'{option} "{name}": {near_matches(name, ACTIVATIONS)}')
    return name


def run(request: ImportRequest, as_json: bool = False) -> RunFolder:
    """Read, prove, save and print."""
    imported = read_policy(request)
    finding = imported.fly()
    folder = save(imported)
    for note in imported.notes:
        aside(f"note: {note}")
    for each in imported.assumed:
        aside(f"assumed: {each}")
    if imported.assumed and request.recorded is None:
        aside("note: actions that the library itself gave prove what is assumed: --recorded FILE")
    for line in imported.assumptions():
        aside(line)
    if as_json:
        print(json.dumps(document_of(imported, folder, finding)))
    else:
        lines = lines_of(imported)
        if finding is not None:
            lines += [f"  {line}" for line in finding.lines(imported.target.name)]
        last = [f"  run   {near_path(folder.path)}", *next_steps(next_step(imported, folder))]
        print("\n".join([*in_columns(lines, columns(sys.stdout)), *last]))
    return folder


def import_own(file: Path, out: Path | None, as_json: bool) -> RunFolder:
    """Make a run of a policy image or a checkpoint of ours, as it is."""
    folder = imported_run(file, out)
    content, path = folder.content, near_path(folder.path)
    goes_on = folder.checkpoint_path.is_file()
    if as_json:
        document = {"run": str(folder.path), "experiment": content.experiment}
        print(json.dumps({**document, "step": content.step, "state_sha256": content.state_sha256}))
        return folder
    what = "a checkpoint and its policy" if goes_on else "a policy image"
    lines = [command_line("evaluate", path)]
    if content.imported is not None:
        lines = [command_line("push", path, "--board", "host")]
    if goes_on:
        lines.append(command_line("train", "--resume", path))
    print(f"{what} of {content.experiment}, step {content.step:,}\n  run   {path}")
    print("\n".join(next_steps(*lines)))
    return folder


NOT_OF_OURS = (
    *("contract", "environment", "normalizer", "activation_name", "output_activation"),
    *("output_name", "actions", "correct", "rate", "fly", "recorded", "safe_action"),
    "step_interval_us",
)


def command(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What the library saved; or a policy (.rltp) or checkpoint of ours.",
        ),
    ],
    contract: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The contract by which the policy acts: quadrotor. [default: LEAPP's own]",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Or the environment in which it acts: gym:…, or one of the core's.",
        ),
    ] = None,
    normalizer: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What VecNormalize.save() wrote beside the policy."),
    ] = None,
    activation_name: Annotated[
        str | None,
        typer.Option(
            "--activation",
            metavar="NAME",
            help=f"After hidden layers, if the file does not say: {ACTIVATION_NAMES}.",
        ),
    ] = None,
    output_activation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Likewise, after the last layer."),
    ] = None,
    output_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which output of an ONNX model is the action."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of several networks of a state_dict(): actor."),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="same|scaled",
            help="The file's actions are in these units, or stand for these ranges.",
        ),
    ] = None,
    correct: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="A correction of what the policy means, such as attitude:xyzw; may be repeated.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="The rate that the policy was trained at, to compare."),
    ] = None,
    fly: Annotated[
        bool,
        typer.Option(
            "--fly/--no-fly",
            help="Fly it in the environment, and name the likely fault if it does badly.",
        ),
    ] = True,
    recorded: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An .npz of observations and the actions that the library gave: compare these.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The run's folder. [default: one under runs/]"),
    ] = None,
    safe_action: SafeActionOption = None,
    step_interval_us: StepIntervalOption = None,
    channels: Channels = None,
    json_output: Json = False,
) -> None:
    """Read the file without executing anything in it.

    docs/import.md says what is read, and how it is proven.
    """
    if is_own(file):
        refuse(context, "with a file of ours, which states it", *NOT_OF_OURS)
        import_own(file, output, json_output)
        return
    if environment is None:
        refuse(context, "without --environment", "fly", "channels")
    given = Given(
        activation("--activation", activation_name),
        activation("--output-activation", output_activation),
        output_name,
        part,
    )
    request = ImportRequest(
        file,
        contract,
        environment,
        normalizer,
        recorded,
        given,
        tuple(correct or ()),
        rate,
        fly,
        actions,
        output,
        safe_action,
        step_interval_us,
        channel_table(channels),
    )
    run(request, json_output)

"""Runs of single files: a policy image or a checkpoint that the page, a board or an export saved.

A command that takes a run takes such a file, too. It becomes the folder of a run in
build/opened/, by the hash of its content; nothing else is written. `rlt import` and
`rlt train --resume FILE` make a run of it that stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from rltools_host.boards.board_link import open_board_link
from rltools_host.boards.session import BoardSession
from rltools_host.build import cmake, experiments, firmware
from rltools_host.build.boards import load_board
from rltools_host.build.description import ExperimentDescription, channels, is_subject_name
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.files import read_limited, replace_folder
from rltools_host.lines import aside
from rltools_host.policies.contract import Contract
from rltools_host.policies.image import PolicyImage, parse_foreign_policy
from rltools_host.runs import contents
from rltools_host.runs.checkpoint import (
    IMAGE_MAGIC,
    Checkpoint,
    from_safetensors,
    require_experiment,
    split_file,
)
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import folder_date, is_run, new_run_path, timestamp
from rltools_host.runs.saves import CHECKPOINT_FILE, MAGIC, POLICY_FILE
from rltools_host.runs.task import short, slug
from rltools_host.training.board import fetch_policy, put_on_board
from rltools_host.training.hyperparameters import default_values
from rltools_host.training.plan import TrainingRequest
from rltools_host.tree import PROJECT, command_line

MAX_BYTES = 1 << 28  # as the page opens (LONGEST_FILE of main.js)
POLICY, CHECKPOINT = "policy", "checkpoint"
OUR_FORMAT = b"rltools-checkpoint-"  # in the header
LONGEST_STEM = 40  # of a file's name, in the folder's name
HASH_DIGITS = 16


@dataclass(frozen=True)
class FileRun:
    """The run in a file: its run.json, and the files of its save."""

    run: Run
    step: int
    state_sha256: str
    files: Mapping[str, bytes]

    def write(self, path: Path, state: str = "opened") -> RunFolder:
        """Write the folder of the run, which must be empty."""
        folder = RunFolder.create(path, self.run)
        try:
            run = structs.replace(folder.content, state=state, ended=timestamp())
            folder.commit(self.step, self.state_sha256, self.files, run)
        finally:
            folder.close()
        return folder


def run_of_file(name: str) -> str:
    """Return the folder of the run that a file holds; the name itself if it is not a file's."""
    path = Path(name)
    if not name or not path.is_file():
        return name
    data = content_of(path)
    digest = hashlib.sha256(data).hexdigest()[:HASH_DIGITS]
    folder = PROJECT.build / "opened" / f"{short(slug(path.stem) or 'run', LONGEST_STEM)}-{digest}"
    if not is_run(folder):
        found = run_in(path, data)
        with replace_folder(folder) as new:
            found.write(new)
    tell_assumptions(RunFolder.open(folder))
    return str(folder)


def tell_assumptions(folder: RunFolder) -> None:
    """Print what a policy image does not state of its experiment."""
    run = folder.content
    if run.imported is None and not folder.checkpoint_path.is_file():
        aside(
            f"assumed: the settings of {run.experiment} at their defaults (an image states none), "
            "state them by its checkpoint"
        )


def content_of(path: Path) -> bytes:
    try:
        return read_limited(path, MAX_BYTES)
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} cannot be opened: {error}") from None


def is_own(path: Path) -> bool:
    """Return whether this is a file of ours, and not one that another library wrote."""
    try:
        data = read_limited(path, MAX_BYTES) if path.is_file() else b""
    except (OSError, ValueError):
        return False
    return data.startswith((MAGIC, IMAGE_MAGIC)) or is_checkpoint(path, data)


def is_checkpoint(path: Path, data: bytes) -> bool:
    try:
        return OUR_FORMAT in split_file(data, path)[0]
    except DamagedFileError:
        return False


def kind_of(path: Path, data: bytes) -> str:
    """Return what a file is by how it begins; UsageError if it is none of ours."""
    if data.startswith(MAGIC):
        return POLICY
    if data.startswith(IMAGE_MAGIC):
        raise UsageError(
            f"{path} is a board's checkpoint, which does not name its experiment: open it in the "
            "page of `rlt web`, and download it there as .safetensors"
        )
    if is_checkpoint(path, data):
        return CHECKPOINT
    raise UsageError(
        f"{path} is neither a policy image (.rltp) nor a checkpoint (.safetensors) of ours: "
        f"`{command_line('import', path)}` makes a run of another library's policy"
    )


def run_in(path: Path, data: bytes) -> FileRun:
    return (policy_in if kind_of(path, data) == POLICY else checkpoint_in)(path, data)


def is_here(experiment: str) -> bool:
    """Return whether this tree or project has the experiment, also with other sizes."""
    return (
        experiment in experiments.list_experiments()
        or experiments.sizes_of_name(experiment) is not None
    )


# -- a policy image --------------------------------------------------------------------------------


def policy_in(path: Path, data: bytes) -> FileRun:
    """Return the run of a policy image, which states neither hyperparameters nor settings."""
    image = parse_foreign_policy(data, str(path))
    run = Run(
        environment=image.environment,
        board="host",
        started=timestamp(),
        fingerprint=f"{image.fingerprint:08x}",
        seed=image.seed,
        steps=image.step,
        step=image.step,
    )
    if is_here(image.experiment):
        description = experiments.describe(image.experiment)
        values = default_values(description)
        run = structs.replace(run, **described(description), hyperparameters=values)
    else:
        run = structs.replace(
            run,
            experiment=image.experiment if is_subject_name(image.experiment) else "",
            contract=contract_here(image),
            imported=contents.Imported(
                library="a policy image",
                file=path.name if path.name.isprintable() else "",
                sha256=image.sha256,
                proof="its own examples",
                observations=len(image.examples),
            ),
        )
    return FileRun(run, image.step, image.state_sha256, {POLICY_FILE: data})


def described(description: ExperimentDescription) -> dict[str, object]:
    """Return the fields of run.json that an experiment's description has."""
    return {
        "experiment": description.name,
        "environment": str(description.environment["name"]),
        "algorithm": description.algorithm,
        "contract": description.contract,
        "safe_action": list(description.environment.get("safe_action", [])),
    }


def contract_here(image: PolicyImage) -> str | None:
    """Return the name of the contract that the image is made for; None if it is not here."""
    for name in experiments.names(experiments.CONTRACT):
        stated = experiments.describe_contract(name)
        observations, actions = channels(stated["observations"]), channels(stated["actions"])
        contract = Contract(observations, actions, stated["step_interval_us"])
        if image.added_inputs_at(contract.checksum) is not None:
            return name
    return None


# -- a checkpoint ----------------------------------------------------------------------------------


def checkpoint_in(path: Path, data: bytes, with_policy: bool = True) -> FileRun:
    """Return the run of a checkpoint; with_policy: also its policy, which the host's board
    computes."""
    checkpoint, entries = from_safetensors(data, path)
    name = checkpoint.experiment
    if not is_here(name):
        has_task = experiments.GENERATED.fullmatch(name)
        raise UsageError(
            f"{path} is of {name}, a Gymnasium task, which it does not hold: give the run's folder"
            if has_task
            else f"{path} is of the experiment {name}, which is not here: put its header into "
            "experiments/, or work in its project"
        )
    description = experiments.describe(name)
    require_experiment(checkpoint, entries, description, path)
    values = default_values(description)
    values |= dict(checkpoint.hyperparameters)
    run = Run(
        **described(description),  # type: ignore[arg-type]
        board=experiments.native_board(name).name,
        started=timestamp(),
        fingerprint=f"{checkpoint.fingerprint:08x}",
        seed=int(values["seed"]),
        steps=max(int(values["steps"]), checkpoint.step),
        step=checkpoint.step,
        hyperparameters=values,
        learning=dict(description.learning),
        versions=dict(checkpoint.versions),
    )
    files = {CHECKPOINT_FILE: data}
    if with_policy:
        files[POLICY_FILE] = policy_of(checkpoint, run.board)
    return FileRun(run, checkpoint.step, checkpoint.state_sha256, files)


def policy_of(checkpoint: Checkpoint, board_name: str) -> bytes:
    """Return the policy image of a training state, as a board of this machine writes it."""
    board = load_board(board_name)
    program = firmware.build_firmware(board, checkpoint.experiment)
    link = open_board_link(board, None, program, "build it again")
    with contextlib.closing(link):
        session, identity = BoardSession.connect(link, cmake.load_dialect(), board.address)
        session.node.require(
            identity,
            checkpoint.experiment,
            checkpoint.fingerprint,
            board.firmware,
            "build it again",
        )
        put_on_board(session, checkpoint, lambda _: lambda _done, _all: None)
        return fetch_policy(session, session.training.result())


# -- runs that stay --------------------------------------------------------------------------------


@contextlib.contextmanager
def resumable(request: TrainingRequest) -> Iterator[TrainingRequest]:
    """Yield a request that resumes a checkpoint file with a new run instead of the file.

    The new run is deleted where it does not begin.
    """
    path = Path(request.resume or "")
    data = content_of(path)
    if kind_of(path, data) != CHECKPOINT:
        raise UsageError(
            f"{path} is a policy, from which no training can continue: give the checkpoint "
            "(.safetensors) of its run"
        )
    found = checkpoint_in(path, data, with_policy=False)
    run = found.run
    stem = f"{folder_date()}-{run.experiment}-{request.board or run.board}-s{run.seed}"
    folder = found.write(request.out or new_run_path(stem), state="paused").path
    try:
        yield replace(request, resume=str(folder), out=None)
    except BaseException:
        if not RunFolder.open(folder).content.sessions:
            shutil.rmtree(folder)
        raise


def imported_run(path: Path, out: Path | None = None) -> RunFolder:
    """Return a new run of a policy image or a checkpoint."""
    found = run_in(path, content_of(path))
    stem = short(slug(path.stem) or "run", LONGEST_STEM)
    state = "paused" if CHECKPOINT_FILE in found.files else "imported"
    folder = found.write(out or new_run_path(f"imported-{stem}"), state)
    tell_assumptions(folder)
    return folder

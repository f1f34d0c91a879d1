"""The import of a foreign policy: it is read, proven, and saved as an ordinary run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from rltools_host.build.description import MAX_STEP_INTERVAL_US, ranges_of
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.policies.contract import (
    STEP_INTERVAL_ASSUMED,
    Contract,
    Statements,
    choices_of,
    safe_action_of,
)
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.image_writing import require_interval
from rltools_host.policies.importing import proof, reading
from rltools_host.policies.importing.corrections import corrected, corrections_of
from rltools_host.policies.importing.faults import Finding, Search
from rltools_host.policies.importing.network import (
    ForeignPolicy,
    Normalize,
    Stage,
    Starts,
    check_stages,
    is_recurrent,
    run,
)
from rltools_host.policies.importing.pickles import Array, UnreadableError
from rltools_host.policies.importing.process import read_files
from rltools_host.policies.importing.proof import (
    FORMULAS,
    Proof,
    compared,
    computed,
    count_same_choices,
    single,
)
from rltools_host.policies.importing.state_dicts import NO_NORMALIZER, Given
from rltools_host.policies.importing.target import (
    Target,
    target_of_contract,
    target_of_description,
    target_of_environment,
)
from rltools_host.policies.statements import assumptions
from rltools_host.runs import contents
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import new_run_path, require_empty, timestamp
from rltools_host.runs.provenance import git_revision, machine, package_versions
from rltools_host.runs.saves import POLICY_FILE
from rltools_host.runs.task import IntervalSource, short
from rltools_host.tree import near_path

ARRAYS = ("observations", "actions")
STARTS = "episode_starts"
PYTORCH_WEIGHTS = "policy.safetensors"  # in the folder of `rlt export --to pytorch`
Steps = tuple[Float32Array, Array, Starts | None]  # observations (n, o), actions (n, a), starts (n)


def prove_recorded(
    image: PolicyImage,
    stages: list[Stage],
    path: Path,
    contract: Contract,
    steps: Steps,
    precision: type[np.floating[Any]] = np.float32,
) -> Proof:
    """Compare the image with actions that the library computed, in the contract's units."""
    seen, actions, starts = steps
    what = f"those recorded in {near_path(path)}"
    low, high = ranges_of(contract.actions, np.float64)
    if choices_of(contract.actions):
        if not ((actions >= low) & (actions <= high) & (actions == np.rint(actions))).all():
            raise DamagedFileError(f"{path}: an action is none of the choices, which count from 0")
        outputs = run(stages, seen.astype(float), starts)
        proof = compared(image, stages, seen, starts, outputs, FORMULAS, precision)
        proof = replace(proof, chosen_by=what)
        scale = max(1.0, float(np.abs(outputs).max()))
        ours, theirs = computed(image, seen, starts)[1], actions.astype(np.int64)
        same = count_same_choices(ours, outputs, theirs, contract, proof, scale)
        return replace(proof, same_choices=same)
    half, middle = (high - low) / 2, (high + low) / 2
    return compared(image, stages, seen, starts, (actions - middle) / half, what, precision)


def recorded(
    arrays: Mapping[str, Array], path: Path, contract: Contract, in_time: bool = False
) -> Steps:
    """Return observations and actions of an .npz file's arrays. in_time: also which steps begin an
    episode, the first alone where the file does not say."""
    rows = []
    for name, channels in zip(ARRAYS, (contract.observations, contract.actions), strict=True):
        values = arrays.get(name)
        if (
            values is None
            or values.ndim != 2
            or values.shape[1] != len(channels)
            or not len(values)
        ):
            shape = "no such array" if values is None else f"{values.shape}"
            raise DamagedFileError(
                f"{path}: {name} must be (count, {len(channels)}), and it has {shape}"
            )
        if not (np.abs(values) <= np.finfo(np.float32).max).all():
            raise DamagedFileError(f"{path}: a number of {name} is infinite or not a number")
        rows.append(values)
    if len(rows[0]) != len(rows[1]):
        raise DamagedFileError(f"{path} has {len(rows[0])} observations and {len(rows[1])} actions")
    starts = starts_in(arrays, path, len(rows[0])) if in_time else None
    return single(rows[0]), rows[1], starts


def starts_in(arrays: Mapping[str, Array], path: Path, count: int) -> Starts:
    given = arrays.get(STARTS)
    if given is None:
        return np.arange(count) < 1
    if given.shape != (count,) or not np.isin(given, (0, 1)).all() or given[0] != 1:
        raise DamagedFileError(
            f"{path}: {STARTS} must be 1 where an episode begins, with the first of the "
            f"{count} observations, and 0 elsewhere"
        )
    starts: Starts = given == 1
    return starts


NOTHING_GIVEN = Given()
SAME_RATE = 0.01  # relative difference
LONGEST_STEM = 40  # of a file's name, in the run's name


@dataclass(frozen=True)
class ImportRequest:
    """A request to import a file for a contract or an environment, or for the contract that the
    file describes."""

    file: Path
    contract: str | None = None
    environment: str | None = None
    normalizer: Path | None = None
    recorded: Path | None = None
    given: Given = NOTHING_GIVEN
    corrections: tuple[str, ...] = ()  # words of importing/corrections.py
    rate_hz: float | None = None  # that the policy was trained at
    flies: bool = True  # in the environment, if there is one
    actions: str | None = None  # proof.SAME, proof.SCALED, or what the file says
    output: Path | None = None
    safe_action: str | None = None  # as --safe-action says
    step_interval_us: int | None = None  # if the target states none
    channels: Mapping[str, object] = field(default_factory=dict)  # of the environment


@dataclass(frozen=True)
class Imported:
    """A foreign policy as an image, and its proofs. Nothing is saved yet."""

    request: ImportRequest
    policy: ForeignPolicy
    target: Target
    stages: tuple[Stage, ...]  # to actions in [-1, 1]
    image: PolicyImage
    proofs: tuple[proof.Proof, ...]
    notes: tuple[str, ...]
    assumed: tuple[str, ...]  # each "<what>, state it by <how>"

    def assumptions(self) -> list[str]:
        """Return a line for each thing that nobody states of its contract."""
        return assumptions(self.image, "--safe-action", "--step-interval-us")

    def fly(self) -> Finding | None:
        """Fly the policy in its environment, or return None where it has none."""
        if self.target.task is None or not self.request.flies:
            return None
        return Search(self.image, self.target).run()


def read_policy(request: ImportRequest) -> Imported:
    """Read, fold and prove a policy. Raise RltError, whose message says why that fails."""
    is_described = request.contract is None and request.environment is None
    if (request.contract and request.environment) or (
        is_described and request.file.suffix not in reading.ENDINGS
    ):
        raise UsageError(
            "name where the policy is to act, by one of --contract NAME and --environment NAME"
        )
    if request.actions not in (None, proof.SAME, proof.SCALED):
        raise UsageError(f'--actions "{request.actions}": choose same or scaled')
    weights = request.file / PYTORCH_WEIGHTS
    file = weights if weights.is_file() else request.file
    found = read_files(file, request.given, request.normalizer, request.recorded)
    policy = found.policy
    if request.normalizer is not None and found.normalizer is not None:
        policy = with_normalizer(policy, request.normalizer, found.normalizer)
    elif policy.lacks_normalizer:
        raise UsageError(
            f"{request.file} was trained with a VecNormalize, which lies in a file of its own: "
            "give what its save() wrote with --normalizer FILE"
        )
    rate_hz = rate_of(policy) if request.rate_hz is None else request.rate_hz
    target = target_of(request, policy, rate_hz)
    target = with_statements(target, request.safe_action, request.step_interval_us)
    policy = proof.without_deviations(policy, target.contract)
    # An environment has one rate. An executor separates ticks from steps of training.
    may_differ = is_recurrent(policy.stages) and target.task is None
    steps = steps_between(rate_hz, target, may_differ=may_differ)
    stages = proof.normalized_stages(policy, target.contract, request.actions)
    corrections = corrections_of(request.corrections, target.contract)
    stages = proof.without_idle_end(corrected(stages, corrections), target.contract)
    given = None  # observations and actions of the library
    if request.recorded is not None and found.recorded is not None:
        in_time = is_recurrent(stages)
        given = recorded(found.recorded, request.recorded, target.contract, in_time)
    seen = None if given is None else (given[0], given[2])
    name = request.file.stem
    image = proof.image_of(stages, target, policy, name, found.sha256, steps, seen)
    source: IntervalSource = "" if target.task is None else target.task.step_interval_from
    stated = Statements(target.contract.safe_action, target.contract.assumed, source)
    image = replace(image, stated=stated)
    image.verify()
    precision = policy.precision
    proofs = [proof.prove(image, stages, precision)]
    if policy.reference is not None and not corrections:
        proofs.append(proof.prove_by_library(image, policy, target.contract, request.actions))
    if request.recorded is not None and given is not None:
        path = request.recorded
        proofs.append(prove_recorded(image, stages, path, target.contract, given, precision))
    notes = (
        *policy.notes,
        *proof.other_ranges(policy, target.contract),
        *proof.losses(policy, target.contract, proofs),
    )
    if is_described and policy.stated is not None:
        notes += policy.stated.notes()
    assumed = (*policy.assumed, *proof.assumed_scaling(policy, target.contract, request.actions))
    return Imported(request, policy, target, tuple(stages), image, tuple(proofs), notes, assumed)


def target_of(request: ImportRequest, policy: ForeignPolicy, rate_hz: float | None) -> Target:
    if request.contract is not None:
        return target_of_contract(request.contract)
    if request.environment is not None:
        return target_of_environment(request.environment, policy, request.channels)
    if rate_hz is not None:
        require_rate(rate_hz)
        rate_hz = rate_of(policy) or rate_hz  # the caller refuses another rate than the stated one
    return target_of_description(request.file, policy, rate_hz)


def with_statements(target: Target, safe_action: str | None, interval_us: int | None) -> Target:
    """Return the target with what a user states on the command line.

    Raise UsageError where it states another time of a step.
    """
    contract, task = target.contract, target.task
    if safe_action is not None:
        given = safe_action_of(safe_action, contract.actions)
        both = zip(contract.safe_action or (None,) * len(given), given, strict=True)
        stated = tuple(before if now is None else now for before, now in both)
        contract = contract.with_safe_action(stated)
    if interval_us is not None:
        require_interval(interval_us)
        stated_us, assumed = contract.step_interval_us, contract.assumed
        if not assumed & STEP_INTERVAL_ASSUMED and interval_us != stated_us:
            raise UsageError(
                f"--step-interval-us {interval_us}: {target.name} states {stated_us:,} us"
            )
        assumed &= ~STEP_INTERVAL_ASSUMED
        contract = replace(contract, step_interval_us=interval_us, assumed=assumed)
    if task is not None:
        task = msgspec.structs.replace(
            task,
            safe_action=contract.safe_action,
            step_interval_us=contract.step_interval_us,
            step_interval_from="channels" if interval_us is not None else task.step_interval_from,
        )
    return replace(target, contract=contract, task=task)


def rate_of(policy: ForeignPolicy) -> float | None:
    """Return the rate in Hz where the file states it."""
    return None if policy.step_interval_us is None else 1e6 / policy.step_interval_us


def steps_between(rate_hz: float | None, target: Target, *, may_differ: bool) -> int:
    """Return how many ticks of the target a step of training takes.

    may_differ: a whole number of ticks is accepted, else one. Raise UsageError for another rate.
    """
    here = 1e6 / target.contract.step_interval_us
    if rate_hz is None:
        return 1
    require_rate(rate_hz)
    steps = max(round(here / rate_hz), 1) if may_differ else 1
    if not abs(rate_hz * steps / here - 1) <= SAME_RATE:
        what = "its rate, or a whole multiple of it" if may_differ else "its rate"
        if target.contract.assumed & STEP_INTERVAL_ASSUMED:
            what += f", or state that of this one by --step-interval-us {round(1e6 / rate_hz)}"
        raise UsageError(
            f"the policy is for {rate_hz:g} Hz, and {target.name} is asked at {here:g} Hz: name a "
            f"contract or environment with {what}"
        )
    return steps


def require_rate(rate_hz: float) -> None:
    least = 1e6 / MAX_STEP_INTERVAL_US
    if not least <= rate_hz <= 1e6:
        raise UsageError(f"--rate {rate_hz:g}: a rate is from {least:.2g} to 1,000,000 Hz")


def with_normalizer(policy: ForeignPolicy, path: Path, added: list[Stage]) -> ForeignPolicy:
    """Return the policy behind a VecNormalize that was saved beside it."""
    if isinstance(policy.stages[0], Normalize):
        raise UsageError(f"--normalizer {path}: the file has a normalizer of its own")
    stages = (*added, *policy.stages)
    try:
        check_stages(stages)
    except UnreadableError:
        raise UsageError(
            f"--normalizer {path}: it is of another number of observations than the policy"
        ) from None
    return dataclasses.replace(
        policy,
        stages=stages,
        lacks_normalizer=False,
        assumed=tuple(each for each in policy.assumed if not each.startswith(NO_NORMALIZER)),
        observation_bounds=None,
    )


def save(imported: Imported) -> RunFolder:
    """Write the run's folder: run.json and the policy, no checkpoint."""
    path = imported.request.output
    if path is None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", imported.request.file.stem).strip(".-")
        path = new_run_path(f"imported-{short(name or 'policy', LONGEST_STEM)}")
    elif path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{path} is not empty: choose another folder with --out")
    else:
        require_empty(path)
    folder = RunFolder.create(path, run_of(imported))
    try:
        image = imported.image
        folder.commit(
            image.step,
            image.state_sha256,
            {POLICY_FILE: image.data},
            structs.replace(folder.content, state="imported", ended=timestamp()),
        )
    finally:
        folder.close()
    return folder


def run_of(imported: Imported) -> Run:
    """Return the run.json of an imported run."""
    policy, target, image = imported.policy, imported.target, imported.image
    last = imported.proofs[-1]
    return Run(
        experiment=image.experiment,
        environment=image.environment,
        contract=target.contract_name,
        algorithm=policy.library,
        board="host",
        seed=image.seed,
        steps=image.step,
        step=image.step,
        started=timestamp(),
        **git_revision(),
        host={**machine()},
        versions=package_versions(),
        state="importing",
        imported=contents.Imported(
            library=policy.library,
            file=imported.request.file.name if imported.request.file.name.isprintable() else "",
            sha256=image.state_sha256,
            proof=last.what,
            observations=last.count,
            difference=last.difference,
            expected_return=policy.expected_return,
            corrections=list(imported.request.corrections),
        ),
        gymnasium=target.task,
        safe_action=[] if target.task is not None else list(target.contract.safe_action),
    )

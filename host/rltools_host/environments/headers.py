"""The headers that are compiled for a task, a contract and an experiment, which builds find in
build/gymnasium_tasks.

Each is named after its content: the name ends with the digest of the text. So a task whose contract
or sizes differ has other files, whatever it is called, and nothing that is compiled for one task is
taken for another's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rltools_host.build import cmake
from rltools_host.build.catalog import algorithms
from rltools_host.build.description import (
    LONGEST_NAME,
    Channel,
    comment_text,
    string_literal,
)
from rltools_host.build.experiments import CONTRACT, DIGITS, EXPERIMENT, generated_header
from rltools_host.files import write_changed
from rltools_host.runs.contents import Run
from rltools_host.runs.task import Task, short, slug

TASK_WORDS = 4  # of a digest in the greeting: rl/environments/external/connection.h

CONTRACT_HEADER = """// {contract}: written by the host tools for {environment}
// (docs/gymnasium_tasks.md).
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {{

struct {struct} {{
  static constexpr const char* kContractName = "{contract}";
  static constexpr std::uint32_t kStepInterval_us = {step_interval_us:d};
  static constexpr int kObservationDim = {observation_dim};
  static constexpr int kActionDim = {action_dim};
  static constexpr Channel kObservations[kObservationDim] = {{
{observations}
  }};
  static constexpr Channel kActions[kActionDim] = {{
{actions}
  }};
{safe_action}{assumed}}};

}}  // namespace rlt::contracts
"""

HEADER = """// {experiment}: written by the host tools for {environment}
// (docs/gymnasium_tasks.md).
// Requires: hosted
#pragma once

#include "../contracts/{contract_file}"
#include "{algorithm_include}"
#include "rltools/rl/environments/external/task.h"

namespace rlt {{

struct {struct}Environment : contracts::{contract_struct}, external::Task {{
  using Scalar = float;
  static constexpr const char* kName = {environment_literal};
  static constexpr std::uint32_t kTask[4] = {{{task}}};
{solved_return}  using Observation = float[kObservationDim];
  RLT_DEFINE_FIELDS(State, RLT_EXTERNAL_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
}};

struct {struct} {{
  static constexpr const char* kName = {experiment_literal};
  using Scalar = float;
  using Environment = {struct}Environment;
  using Algorithm = {algorithm_type};
  using Actor = Algorithm::TaskActor<Environment, {hidden}>;
  using Critic = Algorithm::TaskCritic<Environment, {hidden}>;
  using Hyperparameters = {hyperparameters};
  static constexpr int kEnvironments = {environments:d};
  static constexpr int kEpisodeSteps = {episode_steps:d};
  static constexpr int kBatchSize = {batch_size:d};
  static constexpr int kTileRows = {tile_rows};
  static constexpr int kReplayCapacity = {buffer_size:d};
  static constexpr int kRolloutSteps = {n_steps:d};
{normalizer}}};

}}  // namespace rlt
"""


# Of a task that is not `normalizes`, and of one that is: those of before have their own.
HYPERPARAMETERS = "TaskHyperparametersOf<Algorithm, Environment>"
WITH_NORM_OBS = f"WithNormObs<{HYPERPARAMETERS}>"
NORMALIZER = "  static constexpr bool kNormalized = true;\n"


def float_literal(value: float) -> str:
    """Return C++ for the nearest float."""
    (nearest,) = struct.unpack("f", struct.pack("f", value))
    text = f"{nearest:.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def channel_lines(channels: Sequence[Channel]) -> str:
    return "\n".join(
        f"      {{{string_literal(channel.name)}, {string_literal(channel.unit)}, "
        f"{float_literal(channel.minimum)}, {float_literal(channel.maximum)}}},"
        for channel in channels
    )


def safe_action_line(task: Task) -> str:
    """Return the line of the contract, nothing where nobody states a safe action."""
    if not task.safe_action:
        return ""
    values = ", ".join(map(float_literal, task.safe_values))
    return f"  static constexpr float kSafeAction[kActionDim] = {{{values}}};\n"


def assumed_line(task: Task) -> str:
    """Return the line of the contract for what nobody states."""
    assumed = [] if task.states_interval else ["kStepIntervalAssumed"]
    assumed += [] if task.safe_action and None not in task.safe_action else ["kSafeActionAssumed"]
    if not assumed:
        return ""
    return f"  static constexpr std::uint32_t kAssumed = {' | '.join(assumed)};\n"


def tile_rows(batch_size: int) -> int:
    """Return the largest divisor of a batch up to 64: activations are held for so many samples."""
    return max(rows for rows in range(1, 65) if batch_size % rows == 0)


def struct_of(name: str) -> str:
    """Return the name of the struct: GymServoSac for gym-servo-sac."""
    return "".join(word[0].upper() + word[1:] for word in name.split("-"))


def contract_text(task: Task, struct_name: str) -> str:
    """Return the whole header; equal tasks have equal ones."""
    return CONTRACT_HEADER.format(
        contract=task.contract,
        struct=struct_name,
        environment=comment_text(task.environment),
        step_interval_us=task.step_interval_us,
        observation_dim=len(task.observations),
        action_dim=len(task.actions),
        observations=channel_lines(task.observations),
        actions=channel_lines(task.actions),
        safe_action=safe_action_line(task),
        assumed=assumed_line(task),
    )


def experiment_text(task: Task, struct_name: str, contract_name: str, digest: bytes) -> str:
    """Return the whole header, which includes the contract's."""
    sizes = task.sizes
    solved = (
        ""
        if task.solved_return is None
        else f"  static constexpr float kSolvedReturn = {float_literal(task.solved_return)};\n"
    )
    words = struct.unpack(f"<{TASK_WORDS}I", digest[: 4 * TASK_WORDS])
    return HEADER.format(
        experiment=comment_text(task.experiment),
        experiment_literal=string_literal(task.experiment),
        environment=comment_text(task.environment),
        environment_literal=string_literal(task.environment),
        struct=struct_name,
        contract_struct=struct_of(contract_name),
        contract_file=generated_header(contract_name, CONTRACT).name,
        task=", ".join(f"0x{word:08x}u" for word in words),
        algorithm_include=algorithms()[task.algorithm].include,
        algorithm_type=algorithms()[task.algorithm].struct,
        solved_return=solved,
        hidden=", ".join(f"{width:d}" for width in task.hidden),
        environments=sizes.environments,
        episode_steps=task.episode_steps,
        batch_size=sizes.batch_size,
        tile_rows=tile_rows(sizes.batch_size),
        buffer_size=sizes.buffer_size,
        n_steps=sizes.n_steps,
        hyperparameters=WITH_NORM_OBS if task.normalizes else HYPERPARAMETERS,
        normalizer=NORMALIZER if task.normalizes else "",
    )


@dataclass(frozen=True)
class Headers:
    """The headers of a task, and the names by which builds know them.

    `digest` is of both files' texts: programs that were compiled for the same task have the same
    one, and no others.
    """

    contract: str  # gym-servo-0123456789abcdef
    experiment: str  # gym-servo-sac-0123456789abcdef
    contract_text: str
    experiment_text: str
    digest: bytes  # of 32 bytes

    def write(self) -> None:
        """Write them where builds look for them. An unchanged file stays untouched, so that what
        was built of it is still good."""
        cmake.require_place()
        write_changed(generated_header(self.contract, CONTRACT), self.contract_text)
        write_changed(generated_header(self.experiment, EXPERIMENT), self.experiment_text)


def headers_of(task: Task) -> Headers:
    """Return the headers of a task; equal ones for equal tasks, also from a run's folder."""
    contract = build_name(task.contract, digest_of(contract_text(task, "Contract")))
    # With the contract's name, and so with its digest; but for what the digest itself decides.
    digest = digest_of(experiment_text(task, "Experiment", contract, bytes(4 * TASK_WORDS)))
    experiment = build_name(task.experiment, digest)
    return Headers(
        contract,
        experiment,
        contract_text(task, struct_of(contract)),
        experiment_text(task, struct_of(experiment), contract, digest),
        digest,
    )


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def build_name(name: str, digest: bytes) -> str:
    """Return the readable name, of letters, digits and hyphens alone, with the digest."""
    stem = short(f"gym-{slug(slug(name).removeprefix('gym-'))}", LONGEST_NAME).rstrip("-")
    return f"{stem}-{digest.hex()[:DIGITS]}"


def subject_of_run(run: Run) -> str:
    """Return the name by which builds know a run's experiment, whether or not it is here."""
    return run.experiment if run.gymnasium is None else headers_of(run.gymnasium).experiment


def contract_of_run(run: Run) -> str | None:
    """Write the headers of a run's task, and return the name of its contract; None without a
    task."""
    if run.gymnasium is None:
        return None
    headers = headers_of(run.gymnasium)
    headers.write()
    return headers.contract

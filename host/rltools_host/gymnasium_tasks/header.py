"""The headers of a task, its contract and its experiment, which builds find in
build/gymnasium_tasks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from rltools_host.build.cpp_text import comment_text, string_literal
from rltools_host.build.subjects import CONTRACT, EXPERIMENT, generated_header
from rltools_host.files import write_atomically
from rltools_host.gymnasium_tasks.task import ChannelRange, Task

STEPS = {"sac": 100_000, "td3": 100_000, "ppo": 1_000_000}  # of a run where nobody says

CONTRACT_HEADER = """// {contract}: written by the host tools for {environment}
// (docs/gymnasium_tasks.md).
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {{

struct {contract_struct} {{
  static constexpr const char* kContractName = "{contract}";
  static constexpr std::uint32_t kStepInterval_us = {step_interval_us};
  static constexpr int kObservationDim = {observation_dim};
  static constexpr int kActionDim = {action_dim};
  static constexpr Channel kObservations[kObservationDim] = {{
{observations}
  }};
  static constexpr Channel kActions[kActionDim] = {{
{actions}
  }};
}};

}}  // namespace rlt::contracts
"""

HEADER = """// {experiment}: written by the host tools for {environment}
// (docs/gymnasium_tasks.md).
// Requires: hosted
#pragma once

#include "../contracts/{contract_file}"
#include "rltools/rl/algorithms/{algorithm}.h"
#include "rltools/rl/environments/external/task.h"

namespace rlt {{

struct {struct}Environment : contracts::{contract_struct}, external::Task {{
  using Scalar = float;
  static constexpr const char* kName = {environment_literal};
{solved_return}  using Observation = float[kObservationDim];
  RLT_DEFINE_FIELDS(State, RLT_EXTERNAL_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
}};

struct {struct} {{
  static constexpr const char* kName = "{experiment}";
  using Scalar = float;
  using Environment = {struct}Environment;
  using Algorithm = {algorithm_type};
  using Actor = Mlp<Scalar, Dimensions<{actor}>, Activation::relu, Activation::{actor_output}>;
  using Critic = Mlp<Scalar, Dimensions<{critic}>, Activation::relu, Activation::identity>;
  struct Hyperparameters : {algorithm_type}Hyperparameters {{
    Hyperparameters() {{
{defaults}
    }}
  }};
  static constexpr int kEnvironments = {environments};
  static constexpr int kEpisodeSteps = {episode_steps};
  static constexpr int kBatchSize = {batch_size};
  static constexpr int kTileRows = {tile_rows};
{memory}
}};

}}  // namespace rlt
"""


def float_literal(value: float) -> str:
    """C++ for the float that is nearest."""
    (nearest,) = struct.unpack("f", struct.pack("f", value))
    text = f"{nearest:.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def channel_lines(channels: Sequence[ChannelRange]) -> str:
    return "\n".join(
        f"      {{{string_literal(channel.name)}, {string_literal(channel.unit)}, "
        f"{float_literal(channel.minimum)}, {float_literal(channel.maximum)}}},"
        for channel in channels
    )


def default_lines(task: Task) -> str:
    """Defaults that suit tasks of some size; all of them are for --set to change."""
    steps = STEPS[task.algorithm]
    lines = [f"steps = {steps};", f"eval_every = {steps // 10};"]
    lines += (
        ["initial_log_std = -0.7f;"] if task.algorithm == "ppo" else ["learning_starts = 1000;"]
    )
    return "\n".join(f"      {line}" for line in lines)


def tile_rows(batch_size: int) -> int:
    """The largest divisor of a batch that is small: activations are held for so many samples."""
    return max(rows for rows in range(1, 65) if batch_size % rows == 0)


def struct_of(name: str) -> str:
    """gym-servo-sac is GymServoSac."""
    return "".join(word[0].upper() + word[1:] for word in name.split("-"))


def contract_of(task: Task) -> str:
    """The whole file; the same task has the same one."""
    return CONTRACT_HEADER.format(
        contract=task.contract,
        contract_struct=struct_of(task.contract),
        environment=comment_text(task.environment),
        step_interval_us=task.step_interval_us,
        observation_dim=len(task.observations),
        action_dim=len(task.actions),
        observations=channel_lines(task.observations),
        actions=channel_lines(task.actions),
    )


def experiment_of(task: Task) -> str:
    """The whole file, which includes the other one."""
    observation, action = len(task.observations), len(task.actions)
    hidden = list(task.hidden)
    sizes = task.sizes
    is_ppo = task.algorithm == "ppo"
    outputs = 2 * action if task.algorithm == "sac" else action
    solved = (
        ""
        if task.solved_return is None
        else f"  static constexpr float kSolvedReturn = {float_literal(task.solved_return)};\n"
    )
    memory = (
        f"  static constexpr int kRolloutSteps = {sizes.rollout_steps};"
        if is_ppo
        else f"  static constexpr int kReplayCapacity = {sizes.replay_capacity};"
    )
    return HEADER.format(
        experiment=task.experiment,
        environment=comment_text(task.environment),
        environment_literal=string_literal(task.environment),
        struct=struct_of(task.experiment),
        contract_struct=struct_of(task.contract),
        contract_file=generated_header(task.contract, CONTRACT).name,
        algorithm=task.algorithm,
        algorithm_type=task.algorithm.capitalize(),
        solved_return=solved,
        actor=", ".join(map(str, [observation, *hidden, outputs])),
        critic=", ".join(map(str, [observation + (0 if is_ppo else action), *hidden, 1])),
        actor_output="tanh" if task.algorithm == "td3" else "identity",
        defaults=default_lines(task),
        environments=sizes.environments,
        episode_steps=task.episode_steps,
        batch_size=sizes.batch_size,
        tile_rows=tile_rows(sizes.batch_size),
        memory=memory,
    )


def write_headers(task: Task) -> None:
    """Puts them where builds look for them."""
    write(generated_header(task.contract, CONTRACT), contract_of(task).encode())
    write(generated_header(task.experiment, EXPERIMENT), experiment_of(task).encode())


def write(path: Path, content: bytes) -> None:
    """One that is there already stays untouched: what was built of it is still good."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)

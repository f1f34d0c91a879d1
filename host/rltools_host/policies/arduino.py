"""A policy as a library for Arduino: integrations/arduino, and the headers of the core."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rltools_host.build.cpp_text import comment_text
from rltools_host.build.description import Channel
from rltools_host.policies import export
from rltools_host.policies.contract import PastAction
from rltools_host.policies.image import PolicyImage
from rltools_host.policies.library_folder import LICENSE, VERSION, folder_of, library_headers
from rltools_host.tree import TREE

TEMPLATE = TREE.root / "integrations" / "arduino" / "library"
MARK = "library.properties"
URL = "https://arxiv.org/abs/2306.03530"


def class_name(image: PolicyImage) -> str:
    """ "pendulum-td3" is PendulumTd3Policy."""
    words = export.identifier(image.experiment).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Policy"


def channel_comments(what: str, channels: Sequence[Channel]) -> str:
    return f"// {what}:\n{export.channel_comment(channels)}"


def interface_header(image: PolicyImage) -> str:
    """What a sketch includes."""
    return INTERFACE.format(
        name=class_name(image),
        title=comment_text(
            f"Policy of {image.experiment} for {image.environment}: "
            f"{image.step:,} training steps, seed {image.seed}, network {image.shape}."
        ),
        observations=channel_comments("Observations", image.contract.observations),
        actions=channel_comments("Actions", image.actions),
        observation_dim=len(image.contract.observations),
        action_dim=len(image.actions),
        step_interval_us=image.step_interval_us,
        safe_action=", ".join(f"{value:.9g}" for value in image.runner.safe_action()[0]),
    )


def data_header(image: PolicyImage) -> str:
    """What the library's source includes besides: contract and image."""
    widest = max(len(image.observations), *(layer.bias.size for layer in image.layers))
    added = image.place_inputs
    ages = [asked.ticks for asked in added if isinstance(asked, PastAction)]
    return DATA.format(
        observations=export.channel_rows(image.contract.observations),
        actions=export.channel_rows(image.actions),
        safe_action=export.number_list(image.runner.safe_action()[0]),
        scratch_floats=2 * widest + max(2 * len(image.actions), (len(added) + 1) // 2),
        # Sums are kept where there is a history.
        history_ticks=max(ages, default=1 if added else 0),
        bytes=export.byte_rows(image.data),
    )


def sensor_lines(image: PolicyImage) -> str:
    """An observation in the middle of its ranges, which the user replaces."""
    return "\n".join(
        comment_text(
            f"  observation[{index}] = "
            f"{(channel.minimum + channel.maximum) / 2:.9g};  // {channel.name}, {channel.unit}"
        )
        for index, channel in enumerate(image.contract.observations)
    )


def motor_lines(image: PolicyImage) -> str:
    return "\n".join(
        comment_text(f"  // action[{index}]: {channel.name}, {channel.unit}")
        for index, channel in enumerate(image.actions)
    )


def library_files(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """The library's name and files."""
    name = class_name(image)
    replaced = {
        "PolicyName": name,
        "  // SENSORS": sensor_lines(image),
        "  // MOTORS": motor_lines(image),
    }
    files = {}
    for path, content in folder_of(TEMPLATE).items():
        text = content.decode()
        for word, replacement in replaced.items():
            text = text.replace(word, replacement)
        files[path.replace("PolicyName", name)] = text.encode()
    files[f"src/{name}.h"] = interface_header(image).encode()
    files[f"src/{name}_data.h"] = data_header(image).encode()
    for header, content in library_headers(files.values()).items():
        files[f"src/{header}"] = content
    sentence = f"Policy of {image.experiment}, trained for {image.environment}"
    properties = {
        "name": name,
        "version": VERSION,
        "author": "RLtools",
        "maintainer": "RLtools",
        "sentence": comment_text(f"{sentence}."),
        "paragraph": comment_text(
            f"Network {image.shape}, {image.step} training steps, seed {image.seed}, "
            f"a step every {image.step_interval_us} us."
        ),
        "category": "Device Control",
        "url": URL,
        "architectures": "*",
        "includes": f"{name}.h",
    }
    files[MARK] = "".join(f"{key}={value}\n" for key, value in properties.items()).encode()
    manifest = {
        "name": name,
        "version": VERSION,
        "description": properties["sentence"],
        "keywords": "reinforcement learning, control",
        "homepage": URL,
        "license": "MIT",
        "frameworks": "arduino",
        "platforms": "*",
        "headers": f"{name}.h",
        "build": {"flags": ["-ffp-contract=off"]},
    }
    files["library.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    files["LICENSE"] = LICENSE.read_bytes()
    return name, files


INTERFACE = """\
// {title}
// Written by `rlt export RUN --to arduino`.
//
{observations}
{actions}
#pragma once

#include <stdint.h>

class {name}Class {{
 public:
  static constexpr int kObservationDim = {observation_dim};
  static constexpr int kActionDim = {action_dim};
  static constexpr uint32_t kStepInterval_us = {step_interval_us};

  // Once, in setup(). False where this processor, compiler or a flag of it gives other bits than
  // those of training: there is no policy then. `safe_action` (kActionDim) is what is done where
  // something is wrong; null: {safe_action}, of the contract that the policy is made for.
  bool begin(const float* safe_action = nullptr);

  // At kStepInterval_us or faster, with micros(). The action is always set: finite and within its
  // ranges. False: it is the safe one, and status() says why.
  bool step(uint32_t now_us, const float* observation, float* action);

  // What the last step did, in words.
  const char* status() const;
}};

extern {name}Class {name};
"""

DATA = """\
// The contract and the image of the policy: for the library's own source.
#pragma once

#include "rltools/policy/contract.h"

namespace {{

constexpr rlt::Channel kObservations[] = {{
{observations}
}};
constexpr rlt::Channel kActions[] = {{
{actions}
}};
constexpr float kSafeAction[] = {{{safe_action}}};
constexpr int kScratchFloats = {scratch_floats};
// Of its own last actions, which the library gives it.
constexpr int kHistoryTicks = {history_ticks};

alignas(4) const unsigned char kImage[] RLT_IN_FLASH = {{
{bytes}
}};

}}  // namespace
"""

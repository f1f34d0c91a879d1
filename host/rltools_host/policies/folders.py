"""A policy as a folder that needs nothing of this repository: a library for Arduino or a component
for ESP-IDF, with the headers of the core that run the policy, or a module for Zephyr, in C."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rltools_host.build.description import Channel, comment_text
from rltools_host.errors import UsageError
from rltools_host.files import replace_folder
from rltools_host.policies import export
from rltools_host.policies.contract import (
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    PastAction,
    Recurrence,
    output_dim,
)
from rltools_host.policies.core import float_literal
from rltools_host.policies.esp_idf import EMBEDDED as EMBEDDED
from rltools_host.policies.esp_idf import EXAMPLE, asserts, fitted
from rltools_host.policies.image import PolicyImage
from rltools_host.tree import TREE

LICENSE = TREE.root / "LICENSE"
LIBRARY = "rltools"  # folder of the core's headers in an export
INTEGRATIONS = TREE.root / "integrations"
ARDUINO, ARDUINO_MARK = INTEGRATIONS / "arduino" / "library", "library.properties"
VERSION = "0.1.0"
URL = "https://arxiv.org/abs/2306.03530"
ZEPHYR, ZEPHYR_MARK = INTEGRATIONS / "zephyr" / "policy", "zephyr/module.yml"
ESP_IDF, ESP_IDF_MARK = INTEGRATIONS / "esp_idf" / "rlt_policy", "idf_component.yml"
# Files of the component, without those that a build leaves behind.
ESP_IDF_PARTS = (
    *("CMakeLists.txt", "Kconfig", ESP_IDF_MARK, "include", "src", f"{EXAMPLE}/CMakeLists.txt"),
    *(f"{EXAMPLE}/partitions.csv", f"{EXAMPLE}/sdkconfig.defaults", f"{EXAMPLE}/main"),
)


def library_headers(sources: Iterable[bytes]) -> dict[str, bytes]:
    """Return the library's headers that these sources include, directly or not: name -> content.

    What is included behind a condition counts as well, because it is another processor's.
    """
    found: dict[str, bytes] = {}
    waiting = list(sources)
    while waiting:
        for name in re.findall(r'#include "(rltools/[^"]+)"', waiting.pop().decode()):
            if name not in found:
                found[name] = (TREE.include / name).read_bytes()
                waiting.append(found[name])
    return dict(sorted(found.items()))


def write_folder(folder: Path, files: Mapping[str, bytes], mark: str) -> None:
    """Write the folder at once, in place of an earlier export.

    mark: a file that each export has; raise UsageError where a folder lacks it. Files that a user
    has added stay, but for headers of the library's own folder.
    """
    if folder.exists() and not (folder / mark).is_file():
        raise UsageError(f"{folder} is there already and has no {mark}: choose another folder")
    with replace_folder(folder) as new:
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for path in sorted(folder.rglob("*")):
            target = new / path.relative_to(folder)
            is_own = LIBRARY in target.relative_to(new).parts
            if path.is_file() and not target.exists() and not is_own:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)


def folder_of(root: Path, *parts: str) -> dict[str, bytes]:
    """Return all files of the folder, or of these parts of it: path -> content."""
    found = [path for part in parts or ("",) for path in ((root / part), *(root / part).rglob("*"))]
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(found)
        if path.is_file()
    }


# -- Arduino ---------------------------------------------------------------------------------------


def class_name(image: PolicyImage) -> str:
    """Return for example PendulumTd3Policy for "pendulum-td3"."""
    words = export.identifier(image.experiment).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Policy"


def channel_comments(what: str, channels: Sequence[Channel]) -> str:
    return f"// {what}:\n{export.channel_comment(channels)}"


def interface_header(image: PolicyImage) -> str:
    """Return the header that a sketch includes."""
    return INTERFACE.format_map(
        {
            **export.fields(image),
            "name": class_name(image),
            "observations": channel_comments("Observations", image.contract.observations),
            "actions": channel_comments("Actions", image.actions),
            "safe_action": ", ".join(f"{value:.9g}" for value in image.runner.safe_action()[0]),
        }
    )


def data_header(image: PolicyImage) -> str:
    """Return contract and image, for the library's own source."""
    to_accept = output_dim(image.actions) + len(image.actions)
    to_run = image.runner.scratch.size - to_accept
    state_dim = image.runner.state_dim
    added = image.added_inputs
    ages = [asked.ticks for asked in added if isinstance(asked, PastAction)]
    return DATA.format(
        **export.fields(image),
        scratch_floats=to_run + max(to_accept, 2 * state_dim + (len(added) + 1) // 2),
        # Sums and a hidden state need a history of one tick.
        history_ticks=max(ages, default=1 if added or state_dim else 0),
    )


ANALOG_PINS = 6  # that boards for Arduino have


def sensor_lines(channels: Sequence[Channel], has_pins: bool) -> str:
    """Return lines that stand in for sensors until the user replaces them: a pin's voltage for each
    channel where there are enough pins, else the middle of its range."""
    lines = []
    for index, channel in enumerate(channels):
        value = f"{(channel.minimum + channel.maximum) / 2:.9g}"
        if has_pins and len(channels) <= ANALOG_PINS:
            low, high = map(float_literal, (channel.minimum, channel.maximum))
            value = f"readPin(A{index}, {low}, {high})"
        lines.append(f"  observation[{index}] = {value};  // {channel.name}, {channel.unit}")
    return "\n".join(map(comment_text, lines))


def motor_lines(image: PolicyImage) -> str:
    return "\n".join(
        comment_text(
            f"  // action[{index}]: {channel.name}, "
            f"{export.meaning(channel) if channel.choices else channel.unit}"
        )
        for index, channel in enumerate(image.actions)
    )


def filled(root: Path, words: Mapping[str, str]) -> dict[str, bytes]:
    """Return a folder's files with these words replaced, in names of files too."""
    files = {}
    for path, content in folder_of(root).items():
        text = content.decode()
        for word, replacement in words.items():
            text, path = text.replace(word, replacement), path.replace(word, replacement)
        files[path] = text.encode()
    return files


def arduino_library(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """Return the library's name and files."""
    name = class_name(image)
    words = {
        "PolicyName": name,
        "  // SENSORS": sensor_lines(image.contract.observations, has_pins=True),
        "  // MOTORS": motor_lines(image),
    }
    files = filled(ARDUINO, words)
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
    files[ARDUINO_MARK] = "".join(f"{key}={value}\n" for key, value in properties.items()).encode()
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

  // Return the outcome of the last step, in words.
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
// Ticks of its own last actions, which the library gives it.
constexpr int kHistoryTicks = {history_ticks};

alignas(4) const unsigned char kImage[] RLT_IN_FLASH = {{
{bytes}
}};

}}  // namespace
"""


# -- Zephyr ----------------------------------------------------------------------------------------


# Replacements of the sample's marks.
CALLS = {
    "// STATE\n": "",
    "// FIRST": "policy_name_evaluate(observation, action);",
    "// STEP": "k_timer_status_sync(&step);",
    "/* ACT */": "policy_name_evaluate(observation, action)",
}
# Executor's rules of a hidden state, in C.
STATE = """\
// The policy's memory before the last step of training, after it, and after the present call.
static float state[POLICY_NAME_STATE_DIM];
static float kept_state[POLICY_NAME_STATE_DIM];
static float next_state[POLICY_NAME_STATE_DIM];
static uint32_t since_kept_us = POLICY_NAME_TRAINED_INTERVAL_US;

// As policy_name_evaluate(), `elapsed_us` after the last call: the state moves on with the step of
// training, and is zero after faults and pauses where the policy says so.
static bool act(uint32_t elapsed_us) {{
  bool acted, is_step;
  since_kept_us += elapsed_us;
{pause}  is_step = since_kept_us >= POLICY_NAME_TRAINED_INTERVAL_US;
  if (is_step) memcpy(state, kept_state, sizeof(state));
  memcpy(next_state, state, sizeof(state));
  acted = policy_name_evaluate(observation, next_state, action);
  if (acted && is_step) {{
    memcpy(kept_state, next_state, sizeof(state));
    since_kept_us = 0;
  }}
{fault}  return acted;
}}
"""
RESET = """\
  if ({when}) {{
    policy_name_reset(kept_state);
    since_kept_us = POLICY_NAME_TRAINED_INTERVAL_US;
  }}
"""


def calls_in_time(recurrence: Recurrence) -> dict[str, str]:
    pause = RESET.format(when="elapsed_us > POLICY_NAME_MAX_PAUSE_US")
    fault = RESET.format(when="!acted")
    return {
        "// STATE\n": STATE.format(
            pause=pause if recurrence.reset_at & RESET_AT_PAUSE else "",
            fault=fault if recurrence.reset_at & RESET_AT_FAULT else "",
        ),
        "// FIRST": "policy_name_evaluate(observation, next_state, action);",
        "// STEP": "const uint32_t ticks = k_timer_status_sync(&step);",
        "/* ACT */": "act(ticks * POLICY_NAME_STEP_INTERVAL_US)",
    }


def zephyr_module(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """Return the module's name and files."""
    name = f"{export.identifier(image.experiment)}_policy"
    words = {
        **(CALLS if image.recurrence is None else calls_in_time(image.recurrence)),
        "policy_name": name,
        "POLICY_NAME": name.upper(),
        "  // SENSORS": sensor_lines(image.observations, has_pins=False),
        "  // MOTORS": motor_lines(image),
    }
    files = filled(ZEPHYR, words)
    # Zephyr's default of 1,024 bytes is hardly enough for more than itself.
    stack = -(-export.stack_bytes(image) // 512) * 512
    files["samples/control/prj.conf"] += f"CONFIG_MAIN_STACK_SIZE={stack}\n".encode()
    files[f"include/{name}.h"] = export.c_header(image).encode()
    files["LICENSE"] = LICENSE.read_bytes()
    return name, files


# -- ESP-IDF ---------------------------------------------------------------------------------------


def policy_header(image: PolicyImage) -> str:
    """Return contract and image for rlt_policy_init(), in C."""
    return ESP_IDF_HEADER.format_map({**export.fields(image), "asserts": asserts(image)})


def esp_idf_component(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """Return the component's name and files."""
    files = fitted(image, folder_of(ESP_IDF, *ESP_IDF_PARTS))
    sources = [content for path, content in files.items() if path.endswith((".h", ".cpp"))]
    for header, content in library_headers(sources).items():
        files[f"include/{header}"] = content
    name = export.identifier(image.experiment)
    files[f"include/{name}_policy.h"] = policy_header(image).encode()
    files[EMBEDDED] = image.data
    files["LICENSE"] = LICENSE.read_bytes()
    return ESP_IDF.name, files


ESP_IDF_HEADER = """\
// The policy of {name}: step {step}, seed {seed}. Written by `rlt export RUN --to esp-idf`.
#pragma once

{asserts}

static const rlt_channel_t {name}_observations[] = {{
{observations}
}};
static const rlt_channel_t {name}_actions[] = {{
{actions}
}};
// The action where something is wrong.
static const float {name}_safe_action[] = {{{safe_action}}};
static const rlt_contract_t {name}_contract = {{
    {step_interval_us}, {observation_dim}, {action_dim}, {name}_observations, {name}_actions,
    {name}_safe_action}};

static const uint8_t {name}_image[{size}] __attribute__((aligned(4))) = {{
{bytes}
}};
"""

# The function that returns name and files of a folder, and a file that marks an earlier export.
FOLDERS: dict[str, tuple[Callable[[PolicyImage], tuple[str, dict[str, bytes]]], str]] = {
    "arduino": (arduino_library, ARDUINO_MARK),
    "esp-idf": (esp_idf_component, ESP_IDF_MARK),
    "zephyr": (zephyr_module, ZEPHYR_MARK),
}

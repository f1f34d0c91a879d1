"""A run's policy as the image itself, or as one self-contained header of C99 and C++11.

The header holds the image's numbers as literals that give their bits, and its functions come from
core/math.h, so that it computes the bits that the core computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from rltools_host.build.description import (
    Channel,
    comment_text,
    string_literal,
)
from rltools_host.policies.contract import (
    LEAST_ALLOWED,
    Example,
    ObservationSum,
    PastAction,
    masks_of,
    output_dim,
)
from rltools_host.policies.core import activations, core_math_source, float_literal
from rltools_host.policies.header_layers import (
    PARTS,
    dense_functions,
    input_source,
    layer_sources,
    remembering,
)
from rltools_host.policies.image import Float32Array, PolicyImage

HEADER_TEMPLATE = Path(__file__).with_name("policy_header.h.in")


def identifier(name: str) -> str:
    """The name as a C++ identifier."""
    letters = re.sub(r"\W", "_", name, flags=re.ASCII)
    return letters if letters[:1].isalpha() else f"policy_{letters}"


def encode_image(image: PolicyImage) -> bytes:
    return image.data


def encode_header(image: PolicyImage) -> bytes:
    return c_header(image).encode()


def encode_array(image: PolicyImage, name: str | None = None) -> bytes:
    """The image as an array in a header: what PolicyDeployment::begin() takes as built in.

    The array is `name`, which is that of the header's file, or else <experiment>_image.
    """
    experiment = identifier(image.experiment)
    array = identifier(name or f"{experiment}_image")
    lines = [
        f"// The policy image of {experiment}: step {image.step}, seed {image.seed}.",
        "#pragma once",
        "",
        "#include <stdint.h>",
        "",
        f"alignas(4) static const uint8_t {array}[{len(image.data)}] = {{",
        byte_rows(image.data),
        "};",
    ]
    return ("\n".join(lines) + "\n").encode()


def byte_rows(data: bytes) -> str:
    """Literals, comma separated, 16 in a line."""
    rows = (data[i : i + 16] for i in range(0, len(data), 16))
    return "\n".join("    " + " ".join(f"0x{byte:02x}," for byte in row) for row in rows)


FORMATS: dict[str, tuple[str, Callable[[PolicyImage], bytes]]] = {
    "image": (".rltp", encode_image),
    "c": ("_policy.h", encode_header),
    "c-image": ("_image.h", encode_array),
}


INDENT, WIDTH = "    ", 100


def number_rows(values: Iterable[float]) -> str:
    """Literals, comma separated, in lines of at most WIDTH columns."""
    lines, line = [], INDENT
    for value in values:
        literal = float_literal(value) + ","
        if len(line) + len(literal) > WIDTH:
            lines.append(line.rstrip())
            line = INDENT
        line += literal + " "
    return "\n".join([*lines, line.rstrip()])


def array(name: str, values: Float32Array) -> str:
    flat = np.asarray(values, np.float32).ravel()
    return f"static const float {name}[{flat.size}] = {{\n{number_rows(flat.tolist())}\n}};"


def channel_rows(channels: Sequence[Channel]) -> str:
    return "\n".join(
        f"    {{{string_literal(channel.name)}, {string_literal(channel.unit)}, "
        f"{float_literal(channel.minimum)}, {float_literal(channel.maximum)}}},"
        for channel in channels
    )


def channel_comment(channels: Sequence[Channel], mark: str = "//") -> str:
    return "\n".join(
        comment_text(f"{mark}   [{index}] {channel.name}, {meaning(channel)}")
        for index, channel in enumerate(channels)
    )


def meaning(channel: Channel) -> str:
    """A channel's unit and range, or the numbers of its choices."""
    if channel.choices:
        return ", ".join(f"{number} {name}" for number, name in enumerate(channel.choices))
    return f"{channel.unit}, {channel.minimum:g} to {channel.maximum:g}"


# Of a policy with choices, in policy_header.h.in: how many outputs each action has, and what is
# done where they are of a choice.
CHOOSE = """\
  static const int choices[{guard}_ACTION_DIM] = {{{counts}}};
"""
CHOOSE_ONE = """\
    if (choices[i] > 0) {  // the largest output, the first of equal ones
      int best = 0;
      for (int k = 1; k < choices[i]; k++) best = output[k] > output[best] ? k : best;
      action[i] = (float)best;
      output += choices[i];
      continue;
    }
"""


# The same where observations forbid choices.
CHOOSE_MASKED = """\
  static const int choices[{guard}_ACTION_DIM] = {{{counts}}};
  // Of each output the observation that forbids it below one half.
  static const int masks[{guard}_OUTPUT_DIM] = {{{masks}}};
  const int* mask = masks;
"""
CHOOSE_ONE_MASKED = """\
    if (choices[i] > 0) {{  // the largest output that is allowed, the first of equal ones
      int best = -1, largest = 0;
      for (int k = 0; k < choices[i]; k++) {{
        const bool is_allowed = mask[k] < 0 || observation[mask[k]] >= {least};
        if (is_allowed && (best < 0 || output[k] > output[best])) best = k;
        largest = output[k] > output[largest] ? k : largest;
      }}
      action[i] = (float)(best < 0 ? largest : best);
      output += choices[i];
      mask += choices[i];
      continue;
    }}
    mask++;
"""


def choosing(image: PolicyImage, guard: str) -> dict[str, str]:
    """How outputs become an action."""
    counts = [len(channel.choices) for channel in image.actions]
    masks = masks_of(image.observations, image.actions)
    found = {"seen": "", "observation": "", "example_observation": ""}
    if not any(counts):
        return {**found, "choose": "", "choose_one": "", "scaled": "output[i]"}
    numbers = ", ".join(map(str, counts))
    if all(mask is None for mask in masks):
        choose = CHOOSE.format(guard=guard, counts=numbers)
        return {**found, "choose": choose, "choose_one": CHOOSE_ONE, "scaled": "*output++"}
    places = ", ".join("-1" if mask is None else str(mask) for mask in masks)
    return {
        "seen": "const float* observation, ",
        "observation": "observation, ",
        "example_observation": "example->observation, ",
        "choose": CHOOSE_MASKED.format(guard=guard, counts=numbers, masks=places),
        "choose_one": CHOOSE_ONE_MASKED.format(least=float_literal(LEAST_ALLOWED)),
        "scaled": "*output++",
    }


def safe_output(image: PolicyImage) -> Float32Array:
    """Outputs that mean the safe action: of a choice 1 for what is chosen, and 0."""
    action, normalized = image.runner.safe_action()
    found: list[float] = []
    for channel, value, scaled in zip(image.actions, action, normalized, strict=True):
        names = range(len(channel.choices))
        found += [float(number == value) for number in names] or [float(scaled)]
    return np.array(found, np.float32)


def observation_comment(image: PolicyImage) -> str:
    added = image.place_inputs
    first = len(image.observations) - len(added)
    text = channel_comment(image.observations)
    if any(isinstance(asked, ObservationSum) for asked in added):
        text += (
            "\n// `<observation>_sum` is the sum over the steps before of that element times the\n"
            "// seconds of a step, clamped to its range; 0 at first."
        )
    past = [first + i for i, asked in enumerate(added) if isinstance(asked, PastAction)]
    if past:
        text += (
            f"\n// From [{past[0]}] on they are its own outputs: `<action>_t-<n>` is what\n"
            "// evaluate_normalized() gave n steps ago, clamped to -1 and 1; 0 before there were "
            "as many."
        )
    return text


def example_rows(examples: Sequence[Example], is_recurrent: bool) -> str:
    rows = []
    for example in examples:
        fields = (example.observation, example.output, example.action)
        numbers = [number_list(values) for values in fields]
        begins = f", {str(example.begins).lower()}" if is_recurrent else ""
        rows.append(
            f"    {{{{{numbers[0]}}},\n     {{{numbers[1]}}},\n     {{{numbers[2]}}},\n"
            f"     0x{example.trace:08x}u{begins}}},"
        )
    return "\n".join(rows)


def number_list(values: Float32Array) -> str:
    return ", ".join(map(float_literal, values.tolist()))


def fields(image: PolicyImage) -> dict[str, Any]:
    """What the texts of several exports say of a policy, and of the contract where it acts."""
    return {
        "name": identifier(image.experiment),
        "title": comment_text(
            f"Policy of {image.experiment} for {image.environment}: "
            f"{image.step:,} training steps, seed {image.seed}, network {image.shape}."
        ),
        "step": image.step,
        "seed": image.seed,
        "step_interval_us": image.step_interval_us,
        "observation_dim": len(image.contract.observations),
        "action_dim": len(image.actions),
        "output_dim": output_dim(image.actions),
        "observations": channel_rows(image.contract.observations),
        "actions": channel_rows(image.actions),
        "safe_action": number_list(image.runner.safe_action()[0]),
        "size": len(image.data),
        "bytes": byte_rows(image.data),
    }


def c_header(image: PolicyImage) -> str:
    """The policy as source that C99 and C++11 compile. Every name in it begins with its own."""
    name = identifier(image.experiment) + "_policy"
    guard = name.upper()
    used = {activations()[layer.activation] for layer in image.layers}
    functions = {name for value in used for name in re.findall(r"math::(\w+)", value)}
    functions |= {"sigmoid", "tanh"} if image.recurrence is not None else set()
    parameters = "\n\n".join(
        array(f"{name}_{part}_{index}", values)
        for index, layer in enumerate(image.layers)
        for part, values in zip(PARTS, layer.tensors, strict=False)
    )
    if image.normalizer is not None:
        mean, inverse_std = image.normalizer
        parameters = (
            f"{array(f'{name}_mean', mean)}\n\n{array(f'{name}_inverse_std', inverse_std)}\n\n"
            f"{parameters}"
        )
    header = Template(HEADER_TEMPLATE.read_text(encoding="utf-8"))
    return header.substitute(
        fields(image),
        name=name,
        guard=guard,
        step_interval=f"{image.step_interval_us:,}",
        observation_comment=observation_comment(image),
        action_comment=channel_comment(image.actions),
        experiment=string_literal(image.experiment),
        environment=string_literal(image.environment),
        state_sha256=image.state_sha256,
        observation_dim=len(image.observations),
        example_count=len(image.examples),
        observations=channel_rows(image.observations),
        safe_output=number_list(safe_output(image)),
        **choosing(image, guard),
        examples=example_rows(image.examples, image.recurrence is not None),
        parameters=parameters,
        core_math=core_math_source(
            sorted({*functions, "fma", "clamp", "absolute", "to_bits"}), name, guard
        ),
        dense=dense_functions(name, image.layers),
        largest=float_literal(float(np.finfo(np.float32).max)),
        layers="\n".join([input_source(name, image), *layer_sources(name, image.layers)]),
        **remembering(image, name, guard),
    )

"""A run's policy as the image itself, as an array in a header, or as one self-contained header of
C99 and C++11: the runtime rlt_policy.h, and the image with its sizes, texts and names."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template

import numpy as np

from rltools_host.build.description import (
    Channel,
    comment_text,
    string_literal,
)
from rltools_host.errors import UsageError
from rltools_host.policies.contract import (
    DENSE,
    GRU,
    LSTM,
    RESET_AT_FAULT,
    ObservationSum,
    PastAction,
    output_dim,
)
from rltools_host.policies.core import float_literal
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.statements import stated_safe_action
from rltools_host.tree import TREE, near_path

RUNTIME = TREE.root / "integrations" / "c" / "rlt_policy.h"
PART_OF_KIND = {GRU: "GRU", LSTM: "LSTM"}  # of the runtime
HEADER_TEMPLATE = Path(__file__).with_name("policy_header.h.in")


def identifier(name: str) -> str:
    """Return the name as a C++ identifier."""
    letters = re.sub(r"\W", "_", name, flags=re.ASCII)
    return letters if letters[:1].isalpha() else f"policy_{letters}"


def encode_array(image: PolicyImage, name: str | None = None) -> bytes:
    """Return the image as an array in a C header, for PolicyDeployment::begin().

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
    """Return the bytes as literals, 16 in a line."""
    rows = (data[i : i + 16] for i in range(0, len(data), 16))
    return "\n".join("    " + " ".join(f"0x{byte:02x}," for byte in row) for row in rows)


FORMATS: dict[str, tuple[str, Callable[[PolicyImage], bytes]]] = {
    "image": (".rltp", lambda image: image.data),
    "c": ("_policy.h", lambda image: c_header(image).encode()),
    "c-image": ("_image.h", encode_array),
}


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
    """Return a channel's unit and range, or the numbers and names of its choices."""
    if channel.choices:
        return ", ".join(f"{number} {name}" for number, name in enumerate(channel.choices))
    return f"{channel.unit}, {channel.minimum:g} to {channel.maximum:g}"


def safe_output(image: PolicyImage) -> Float32Array:
    """Return outputs that mean the safe action.

    For a discrete action, 1 for the safe choice and 0 for the others.
    """
    action, normalized = image.runner.safe_action()
    found: list[float] = []
    for channel, value, scaled in zip(image.actions, action, normalized, strict=True):
        names = range(len(channel.choices))
        found += [float(number == value) for number in names] or [float(scaled)]
    return np.array(found, np.float32)


def action_comment(image: PolicyImage) -> str:
    """Return the actions, each with its safe value, and whether that is assumed."""
    stated = stated_safe_action(image)
    rows = channel_comment(image.actions).split("\n")
    taken = image.runner.safe_action()[0]
    for index, (channel, value, given) in enumerate(zip(image.actions, taken, stated, strict=True)):
        word = channel.choices[int(value)] if channel.choices else f"{value:g}"
        rows[index] += f"; safe: {comment_text(word)}{'' if given is not None else ', assumed'}"
    return "\n".join(rows)


def observation_comment(image: PolicyImage) -> str:
    added = image.added_inputs
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


def number_list(values: Float32Array) -> str:
    return ", ".join(map(float_literal, values.tolist()))


def fields(image: PolicyImage) -> dict[str, object]:
    """Return the values that several exports' templates take: of the policy, and of the contract
    where it acts."""
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


# Of a recurrent policy, in policy_header.h.in.
REMEMBERS = """\
//
// The policy remembers what it observed: `state` ({state_dim} numbers) moves on with each call. One
// call is a step of {trained:,} us. To act more often, call it between two steps with a copy of
// what the state was before the first of them. {name}_reset() sets it to zero: at the
// beginning, after an observation that was missing or old, and after a pause of more than
// {pause:,} us.{fault}
"""
RESET = """
// The hidden state of a policy that has observed nothing.
static inline void {name}_reset(float* state) {{
  for (int i = 0; i < {guard}_STATE_DIM; i++) state[i] = 0.0f;
}}
"""


def remembering(image: PolicyImage, name: str, guard: str) -> dict[str, str]:
    """Return what the header says, and does, of a hidden state; nothing where there is none."""
    recurrence = image.recurrence
    if recurrence is None:
        texts = "remembers own_state state state_dim reset reset_in_namespace"
        return {**dict.fromkeys(texts.split(), ""), "state_or_null": "NULL"}
    fault = "\n// A call that returns false does it, too."
    if not recurrence.reset_at & RESET_AT_FAULT:
        fault = "\n// A call that returns false leaves it as it was."
    return {
        "remembers": REMEMBERS.format(
            state_dim=recurrence.state_dim,
            trained=recurrence.trained_interval_us,
            pause=recurrence.max_pause_us,
            name=name,
            fault=fault,
        ),
        "own_state": ", float* state",
        "state": ", state",
        "state_or_null": "state",
        "state_dim": (
            f"#define {guard}_STATE_DIM {recurrence.state_dim}\n"
            f"#define {guard}_TRAINED_INTERVAL_US {recurrence.trained_interval_us}u\n"
            f"#define {guard}_MAX_PAUSE_US {recurrence.max_pause_us}u\n"
        ),
        "reset": RESET.format(name=name, guard=guard),
        "reset_in_namespace": (
            f"static constexpr int kStateDim = {guard}_STATE_DIM;\n"
            f"inline void reset(float* state) {{ {name}_reset(state); }}\n"
        ),
    }


def scratch_floats(image: PolicyImage) -> int:
    """Return RLT_SCRATCH_FLOATS() of rlt_policy.h for a policy."""
    widest = max(len(image.observations), *(layer.width for layer in image.layers))
    recurrent = [layer for layer in image.layers if layer.kind != DENSE]
    products = max((2 * layer.bias.size for layer in recurrent), default=0)
    return 2 * widest + products + sum(layer.state_dim for layer in recurrent)


@cache
def runtime() -> tuple[str, Mapping[str, int]]:
    """Return rlt_policy.h, and the bits by which its caller selects parts: RLT_WITH_<NAME>."""
    text = RUNTIME.read_text(encoding="utf-8")
    bits = re.findall(r"^  RLT_WITH_(\w+) = (0x[0-9a-f]+)", text, re.MULTILINE)
    return text, {name: int(bit, 16) for name, bit in bits}


def sizes(image: PolicyImage) -> dict[str, object]:
    """Return the parts of rlt_policy.h that a policy needs, and its floats of scratch memory.

    Raise UsageError where the runtime lacks an activation, as of one that was added to the core.
    """
    bits, parts = runtime()[1], 0
    for layer in image.layers:
        name = PART_OF_KIND.get(layer.kind, layer.activation.upper())
        if name not in bits:
            raise UsageError(
                f"{near_path(RUNTIME)} does not compute {layer.activation}: add its lines there, "
                "or take --to arduino, which has the core itself"
            )
        parts |= bits[name]
    scratch, actions, outputs = scratch_floats(image), len(image.actions), output_dim(image.actions)
    return {
        "parts": f"{parts:#x}",
        "scratch_floats": scratch,
        "verify_floats": scratch + outputs + actions,
    }


def stack_bytes(image: PolicyImage) -> int:
    """Return what a call of the header's takes at most: its arrays, and 1 KB for all else."""
    return 1024 + 4 * (scratch_floats(image) + output_dim(image.actions) + len(image.actions))


def word_rows(data: bytes) -> str:
    """Return the little-endian words as literals, eight in a line."""
    words = [f"0x{word:08x}," for (word,) in struct.iter_unpack("<I", data)]
    return "\n".join("    " + " ".join(words[i : i + 8]) for i in range(0, len(words), 8))


def c_header(image: PolicyImage) -> str:
    """Return the policy as source that C99 and C++11 compile.

    Every name in it begins with the policy's, but for those of the runtime.
    """
    name = identifier(image.experiment) + "_policy"
    guard = name.upper()
    header = Template(HEADER_TEMPLATE.read_text(encoding="utf-8"))
    return header.substitute(
        fields(image),
        name=name,
        guard=guard,
        runtime=runtime()[0],
        step_interval=f"{image.step_interval_us:,}",
        observation_comment=observation_comment(image),
        action_comment=action_comment(image),
        experiment=string_literal(image.experiment),
        environment=string_literal(image.environment),
        state_sha256=image.state_sha256,
        observation_dim=len(image.observations),
        example_count=len(image.examples),
        observations=channel_rows(image.observations),
        safe_output=number_list(safe_output(image)),
        word_count=len(image.data) // 4,
        words=word_rows(image.data),
        **sizes(image),
        **remembering(image, name, guard),
    )

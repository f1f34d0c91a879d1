"""A run's policy as the image itself, or as one self-contained C++17 header.

The header holds the image's numbers as hexadecimal literals, which are exact, and its functions
come from core/math.h, so that it computes the bits that the core computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from rltools_host.build.description import Channel
from rltools_host.policies.contract import ObservationSum, PastAction
from rltools_host.policies.core_source import activations, core_math_source
from rltools_host.policies.image import Example, Float32Array, Layer, PolicyImage
from rltools_host.runs.policy_text import comment_text, string_literal

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


def float_literal(value: float) -> str:
    """An exact hexadecimal literal of a finite binary32 number."""
    number = float(np.float32(value))
    if not np.isfinite(number):
        raise ValueError(f"{value} has no literal")
    sign, rest = ("-", number.hex()[1:]) if number.hex().startswith("-") else ("", number.hex())
    mantissa, exponent = rest.split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{sign}{'0x0' if mantissa == '0x' else mantissa}p{int(exponent)}f"


def number_rows(values: Iterable[float], indent: str = "    ", width: int = 100) -> str:
    """Literals, comma separated, in lines of at most `width` columns."""
    lines, line = [], indent
    for value in values:
        literal = float_literal(value) + ","
        if len(line) + len(literal) > width:
            lines.append(line.rstrip())
            line = indent
        line += literal + " "
    return "\n".join([*lines, line.rstrip()])


def array(name: str, values: Float32Array) -> str:
    flat = np.asarray(values, np.float32).ravel()
    return f"inline constexpr float {name}[{flat.size}] = {{\n{number_rows(flat.tolist())}\n}};"


def channel_rows(channels: Sequence[Channel]) -> str:
    return "\n".join(
        f"    {{{string_literal(channel.name)}, {string_literal(channel.unit)}, "
        f"{float_literal(channel.minimum)}, {float_literal(channel.maximum)}}},"
        for channel in channels
    )


def channel_comment(channels: Sequence[Channel]) -> str:
    return "\n".join(
        comment_text(
            f"//   [{index}] {channel.name}, {channel.unit}, "
            f"{channel.minimum:g} to {channel.maximum:g}"
        )
        for index, channel in enumerate(channels)
    )


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
            "// evaluate_normalised() gave n steps ago, clamped to -1 and 1; 0 before there were "
            "as many."
        )
    return text


def layer_call(index: int, layer: Layer, count: int) -> str:
    in_dim, out_dim = layer.weights.shape
    source = "input" if index == 0 else f"hidden_{index - 1}"
    is_last = index == count - 1
    target = "output" if is_last else f"hidden_{index}"
    declaration = "" if is_last else f"  float {target}[{out_dim}];\n"
    return (
        f"{declaration}  dense<{in_dim}, {out_dim}>(kWeights{index}, kBias{index}, "
        f"{source}, {target}, {activation_type(layer.activation)}{{}});\n"
        f"  visit({target}, {out_dim});"
    )


def input_source(image: PolicyImage) -> str:
    if image.normaliser is None:
        return "  const float* input = observation;"
    return (
        "  float input[kObservationDim];\n"
        "  for (int i = 0; i < kObservationDim; i++) {\n"
        "    input[i] = (observation[i] - kMean[i]) * kInverseStd[i];\n"
        "  }"
    )


def example_rows(examples: Sequence[Example]) -> str:
    rows = []
    for example in examples:
        fields = (example.observation, example.output, example.action)
        numbers = [number_list(values) for values in fields]
        rows.append(
            f"    {{{{{numbers[0]}}},\n     {{{numbers[1]}}},\n     {{{numbers[2]}}},\n"
            f"     0x{example.trace:08x}u}},"
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
        "observations": channel_rows(image.contract.observations),
        "actions": channel_rows(image.actions),
        "safe_action": number_list(image.runner.safe_action()[0]),
        "size": len(image.data),
        "bytes": byte_rows(image.data),
    }


def c_header(image: PolicyImage) -> str:
    """The policy as C++17 source."""
    name = identifier(image.experiment) + "_policy"
    used = sorted({layer.activation for layer in image.layers})
    values = {activation: activations()[activation] for activation in used}
    functions = {name for value in values.values() for name in re.findall(r"math::(\w+)", value)}
    structs = "\n".join(
        f"struct {activation_type(activation)} {{\n"
        f"  float operator()(float x) const {{ return {value_of_float(value)}; }}\n}};"
        for activation, value in values.items()
    )
    parameters = "\n\n".join(
        f"{array(f'kWeights{index}', layer.weights)}\n\n{array(f'kBias{index}', layer.bias)}"
        for index, layer in enumerate(image.layers)
    )
    if image.normaliser is not None:
        mean, inverse_std = image.normaliser
        parameters = (
            f"{array('kMean', mean)}\n\n{array('kInverseStd', inverse_std)}\n\n{parameters}"
        )
    header = Template(HEADER_TEMPLATE.read_text(encoding="utf-8"))
    return header.substitute(
        fields(image),
        name=name,
        step_interval=f"{image.step_interval_us:,}",
        observation_comment=observation_comment(image),
        action_comment=channel_comment(image.actions),
        experiment=string_literal(image.experiment),
        environment=string_literal(image.environment),
        state_sha256=image.state_sha256,
        observation_dim=len(image.observations),
        example_count=len(image.examples),
        observations=channel_rows(image.observations),
        safe_output=number_list(image.runner.safe_action()[1]),
        examples=example_rows(image.examples),
        parameters=parameters,
        core_math=core_math_source(sorted({*functions, "fma", "clamp", "absolute"})),
        activations=structs,
        input=input_source(image),
        layers="\n".join(
            layer_call(index, layer, len(image.layers)) for index, layer in enumerate(image.layers)
        ),
    )


def value_of_float(value: str) -> str:
    """An activation's expression where T is float and the functions of the core are at hand."""
    return re.sub(r"\bT\(", "float(", value).replace("math::", "")


def activation_type(activation: str) -> str:
    return activation.capitalize()

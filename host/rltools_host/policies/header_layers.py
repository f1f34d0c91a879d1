"""The layers of a policy as source of C, for the header of policies/export.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rltools_host.policies.contract import GATES, GRU, RESET_AT_FAULT, Layer
from rltools_host.policies.core import activations
from rltools_host.policies.image import PolicyImage

PARTS = ("weights", "bias", "hidden_weights", "hidden_bias")  # as Layer.tensors has them

# `count` outputs of a layer of `outputs` in all, the first of which the pointers are at.
DENSE = """\
static inline void {name}_dense_{count}(const float* weights, const float* bias, const float* input,
    int inputs, int outputs, float* output) {{
  float sum[{count}];
  for (int k = 0; k < {count}; k++) sum[k] = bias[k];
  for (int i = 0; i < inputs; i++) {{
    for (int k = 0; k < {count}; k++) {{
      sum[k] = {name}_fma(input[i], weights[i * outputs + k], sum[k]);
    }}
  }}
  for (int k = 0; k < {count}; k++) output[k] = sum[k] + 0.0f;
}}"""
BLOCK = 8  # outputs at a time


def dense_functions(name: str, layers: Sequence[Layer]) -> str:
    sizes = [layer.bias.size for layer in layers]  # of a recurrent one's two products, too
    counts = {BLOCK for size in sizes if size >= BLOCK} | {size % BLOCK for size in sizes}
    return "\n\n".join(DENSE.format(name=name, count=count) for count in sorted(counts - {0}))


def product(name: str, part: str, shape: tuple[int, ...], source: str, target: str) -> list[str]:
    """target = source . weights + bias; `part` is what their names begin and end with."""
    inputs, outputs = shape
    weights, bias = (f"{name}_{part.format(kind)}" for kind in ("weights", "bias"))
    whole = outputs - outputs % BLOCK

    def call(count: int, place: str) -> str:
        plus = f" + {place}" if place else ""
        return (
            f"{name}_dense_{count}({weights}{plus}, {bias}{plus}, "
            f"{source}, {inputs}, {outputs}, {target}{plus});"
        )

    lines = []
    if whole:
        lines += [f"for (int i = 0; i < {whole}; i += {BLOCK}) {{", f"  {call(BLOCK, 'i')}", "}"]
    if whole < outputs:
        lines += [call(outputs - whole, str(whole) if whole else "")]
    return lines


def layer_sources(name: str, layers: Sequence[Layer]) -> Iterator[str]:
    place = 0  # in the hidden state
    for index, layer in enumerate(layers):
        is_last = index == len(layers) - 1
        source = "input" if index == 0 else f"hidden_{index - 1}"
        target = "output" if is_last else f"hidden_{index}"
        lines = [] if is_last else [f"float {target}[{layer.width}];"]
        if layer.hidden is None:
            lines += product(name, f"{{}}_{index}", layer.weights.shape, source, target)
            value = value_of_float(name, activations()[layer.activation])
            if value != "x":
                lines += [
                    f"for (int i = 0; i < {layer.width}; i++) {{",
                    f"  const float x = {target}[i];",
                    f"  {target}[i] = {value};",
                    "}",
                ]
        else:
            lines += recurrent_lines(name, index, layer, source, target, place)
            place += layer.state_dim
        lines += [f"if (trace != NULL) *trace = {name}_crc32({target}, {layer.width}, *trace);"]
        yield "\n".join(f"  {line}" for line in lines)


def recurrent_lines(
    name: str, index: int, layer: Layer, source: str, target: str, place: int
) -> list[str]:
    """nn/recurrent_at_run_time.h, for a state that begins at `place` of the policy's."""
    width = layer.width
    own = f"state + {place}" if place else "state"
    sums, hidden = f"sums_{index}", f"hidden_sums_{index}"
    columns = GATES[layer.kind] * width
    cells = lstm_lines if layer.kind != GRU else gru_lines
    return [
        f"float {sums}[{columns}], {hidden}[{columns}];",
        *product(name, f"{{}}_{index}", (layer.weights.shape[0], columns), source, sums),
        *product(name, f"hidden_{{}}_{index}", (width, columns), own, hidden),
        f"for (int i = 0; i < {width}; i++) {{",
        *cells(name, sums, hidden, width, place, target),
        "}",
    ]


def gru_lines(
    name: str, sums: str, hidden: str, width: int, place: int, target: str
) -> Iterator[str]:
    at = f"{place} + i" if place else "i"
    yield from [
        f"  const float reset = {name}_sigmoid({sums}[i] + {hidden}[i]);",
        f"  const float keep = {name}_sigmoid({sums}[{width} + i] + {hidden}[{width} + i]);",
        f"  const float candidate = {name}_tanh(",
        f"      {name}_fma(reset, {hidden}[{2 * width} + i], {sums}[{2 * width} + i]));",
        f"  const float before = state[{at}];",
        f"  {target}[i] = {name}_fma(keep, before - candidate, candidate) + 0.0f;",
        f"  state[{at}] = {target}[i];",
    ]


def lstm_lines(
    name: str, sums: str, hidden: str, width: int, place: int, target: str
) -> Iterator[str]:
    at = f"{place} + i" if place else "i"

    def gate(number: int) -> str:
        offset = f"{number * width} + i" if number else "i"
        return f"{sums}[{offset}] + {hidden}[{offset}]"

    yield from [
        f"  const float in = {name}_sigmoid({gate(0)});",
        f"  const float forget = {name}_sigmoid({gate(1)});",
        f"  const float candidate = {name}_tanh({gate(2)});",
        f"  const float out = {name}_sigmoid({gate(3)});",
        f"  const float before = state[{place + width} + i];",
        f"  const float cell = {name}_fma(forget, before, in * candidate) + 0.0f;",
        f"  state[{place + width} + i] = cell;",
        f"  {target}[i] = out * {name}_tanh(cell) + 0.0f;",
        f"  state[{at}] = {target}[i];",
    ]


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
BEFORE_CALL = """\
  float before[{guard}_STATE_DIM];
  memcpy(before, state, sizeof(before));
"""
HELD = "  memcpy(state, before, sizeof(before));\n"


def remembering(image: PolicyImage, name: str, guard: str) -> dict[str, str]:
    """What the header says, and does, of a hidden state; nothing where there is none."""
    recurrence = image.recurrence
    if recurrence is None:
        texts = "remembers own_state state state_dim reset begins example_state "
        texts += "begin_example before_call on_fault reset_in_namespace"
        return dict.fromkeys(texts.split(), "")
    resets = bool(recurrence.reset_at & RESET_AT_FAULT)
    fault = "\n// A call that returns false does it, too."
    if not resets:
        fault = "\n// A call that returns false leaves it as it was."
    return {
        "remembers": REMEMBERS.format(
            state_dim=recurrence.state_dim,
            trained=recurrence.trained_interval_us,
            pause=recurrence.most_pause_us,
            name=name,
            fault=fault,
        ),
        "own_state": ", float* state",
        "state": ", state",
        "state_dim": (
            f"#define {guard}_STATE_DIM {recurrence.state_dim}\n"
            f"#define {guard}_TRAINED_INTERVAL_US {recurrence.trained_interval_us}u\n"
            f"#define {guard}_MOST_PAUSE_US {recurrence.most_pause_us}u\n"
        ),
        "reset": RESET.format(name=name, guard=guard),
        "begins": "  bool begins;  // with a state of zeros, else it goes on\n",
        "example_state": f"  float state[{guard}_STATE_DIM];\n",
        "begin_example": f"    if (example->begins) {name}_reset(state);\n",
        "before_call": "" if resets else BEFORE_CALL.format(guard=guard),
        "on_fault": f"  {name}_reset(state);\n" if resets else HELD,
        "reset_in_namespace": (
            f"static constexpr int kStateDim = {guard}_STATE_DIM;\n"
            f"inline void reset(float* state) {{ {name}_reset(state); }}\n"
        ),
    }


def stack_bytes(image: PolicyImage) -> int:
    """What a call of the header's takes at most: its arrays, where a compiler lets none of them
    share a place, and 1 KB for all else."""
    floats = 2 * len(image.observations) + 2 * len(image.actions)
    for layer in image.layers:
        floats += layer.width + 2 * layer.state_dim
        floats += 2 * layer.bias.size if layer.kind in GATES else 0
    return 1024 + 4 * floats


def input_source(name: str, image: PolicyImage) -> str:
    if image.normalizer is None:
        return "  const float* input = observation;"
    count = len(image.observations)
    return (
        f"  float input[{count}];\n"
        f"  for (int i = 0; i < {count}; i++) {{\n"
        f"    input[i] = (observation[i] - {name}_mean[i]) * {name}_inverse_std[i];\n"
        "  }"
    )


def value_of_float(name: str, value: str) -> str:
    """An activation's expression in C, where the functions of the core are `name`_<function>."""
    return re.sub(r"\bT\(", "(float)(", value).replace("math::", f"{name}_")

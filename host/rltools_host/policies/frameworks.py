"""A policy for other frameworks: an ONNX model, safetensors, and a module of PyTorch that reads
these.

Each takes an observation in its units and returns the action in its own; normalizer, scaling and
range are inside. They round in another order than the core, so their bits are not the core's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template

import numpy as np

from rltools_host.build.description import ranges_of
from rltools_host.policies import export
from rltools_host.policies.activations import activation_named
from rltools_host.policies.contract import DENSE, GRU, LSTM
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.onnx_model import contract_text, encode_onnx, require_no_masks
from rltools_host.runs.checkpoint import TensorEntry, safetensors_header, with_header

# Names of Layer.tensors.
DENSE_NAMES = ("weight", "bias")
CELL_NAMES = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")  # of GRUCell and LSTMCell
CELLS = {DENSE: "Linear", GRU: "GRUCell", LSTM: "LSTMCell"}  # of torch.nn


def tensors(image: PolicyImage) -> dict[str, Float32Array]:
    """Return the tensors by the names of the module's state_dict() in PyTorch.

    Weights are (out, in), as there.
    """
    low, high = ranges_of(image.actions)
    count = len(image.observations)
    mean, inverse_std = image.normalizer or (np.zeros(count), np.ones(count))
    found = {"mean": mean, "inverse_std": inverse_std, "lowest": low, "highest": high}
    for index, layer in enumerate(image.layers):
        names = DENSE_NAMES if layer.hidden is None else CELL_NAMES
        for name, values in zip(names, layer.tensors, strict=True):
            found[f"layers.{index}.{name}"] = values.T
    return {name: np.ascontiguousarray(value, "<f4") for name, value in found.items()}


def encode_safetensors(image: PolicyImage) -> bytes:
    """Return the tensors as safetensors (https://huggingface.co/docs/safetensors).

    The metadata has the contract and the activations.
    """
    activations = [layer.activation for layer in image.layers]
    metadata = {"contract": contract_text(image), "activations": json.dumps(activations)}
    return safetensors_file(tensors(image), metadata)


def safetensors_file(values: Mapping[str, Float32Array], metadata: Mapping[str, str]) -> bytes:
    entries: dict[str, TensorEntry] = {}
    payload = b""
    for name, value in values.items():
        end = len(payload) + value.nbytes
        offsets = [len(payload), end]
        entries[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": offsets}
        payload += value.tobytes()
    return with_header(safetensors_header(metadata, entries), payload)


# Parts of policy_module.py.in: outputs x become an action.
SCALING = """\
        half_range = (self.highest - self.lowest) / 2
        action = x.clamp(-1, 1) * half_range + (self.highest + self.lowest) / 2
        action = torch.minimum(torch.maximum(action, self.lowest), self.highest)
"""
CHOOSING = """\
        actions = []
        for index, outputs in enumerate(x.split([count or 1 for count in CHOICES], -1)):
            lowest, highest = self.lowest[index], self.highest[index]
            scaled = outputs.clamp(-1, 1) * (highest - lowest) / 2 + (highest + lowest) / 2
            chosen = outputs.argmax(-1, keepdim=True).to(x.dtype)
            actions.append(chosen if CHOICES[index] else scaled.clamp(lowest, highest))
        action = torch.cat(actions, -1)
"""
# A layer's output from x, and the additions for a recurrent policy.
STEP = """\
            x = activation(layer(x))
"""
RECURRENT_STEP = """\
            if isinstance(layer, torch.nn.Linear):
                x = activation(layer(x))
            elif isinstance(layer, torch.nn.GRUCell):
                x = layer(x, next(before))
                after.append(x)
            else:
                x, cells = layer(x, next(before).chunk(2, -1))
                after += [x, cells]
"""
BEGIN = """\
        if state is None:
            state = observation.new_zeros(*observation.shape[:-1], sum(STATES))
        before, after = iter(state.split(STATES, -1)), []
"""
REMEMBERS = """

    The policy remembers: `action, state = policy(observation, state)`, with states (..., {dim}). No
    state is one of zeros, as at the beginning of an episode. A call is a step of {trained:,} us: to
    act more often, keep the state of the last such step. Observations are (n, {inputs}) or
    ({inputs}).
    """


def remembering(image: PolicyImage) -> dict[str, str]:
    """Return the parts of the module that handle a hidden state; empty without one."""
    recurrence = image.recurrence
    if recurrence is None:
        nothing = dict.fromkeys(("states", "remembers", "own_state", "begin", "next_state"), "")
        return {**nothing, "step": STEP}
    widths = [layer.state_dim for layer in image.layers if layer.hidden is not None]
    text = REMEMBERS.format(
        dim=recurrence.state_dim,
        trained=recurrence.trained_interval_us,
        inputs=len(image.observations),
    )
    return {
        "states": f"STATES = {widths}  # numbers that each recurrent layer remembers\n",
        "remembers": text,
        "own_state": ", state=None",
        "begin": BEGIN,
        "step": RECURRENT_STEP,
        "next_state": ", torch.cat(after, -1)",
    }


PYTORCH_MARK = "policy.py"
PYTORCH = Path(__file__).with_name("policy_module.py.in")


def pytorch_module(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """Return the folder's name and files."""
    require_no_masks(image, "PyTorch")
    sizes = [len(image.observations), *(layer.width for layer in image.layers)]
    functions = [activation_named(layer.activation).torch for layer in image.layers]
    kinds = [CELLS[layer.kind] for layer in image.layers]
    counts = [len(action.choices) for action in image.actions]
    choices = f"CHOICES = {counts}  # outputs of each action; 0: it is a number\n"
    template = Template(PYTORCH.read_text(encoding="utf-8"))
    text = template.substitute(
        **remembering(image),
        title=export.fields(image)["title"],
        layers=", ".join(f"torch.nn.{kind}" for kind in kinds),
        inputs=sizes[0],
        outputs=len(image.actions),
        action=CHOOSING if any(counts) else SCALING,
        choices=choices if any(counts) else "",
        observations=export.channel_comment(image.observations, "#"),
        actions=export.channel_comment(image.actions, "#"),
        sizes=sizes,
        activations=", ".join(functions),
    )
    files = {PYTORCH_MARK: text.encode(), "policy.safetensors": encode_safetensors(image)}
    return f"{export.identifier(image.experiment)}_policy_pytorch", files


FRAMEWORK_FORMATS = {
    "onnx": ("_policy.onnx", encode_onnx),
    "safetensors": ("_policy.safetensors", encode_safetensors),
}
FRAMEWORK_FOLDERS = {"pytorch": (pytorch_module, PYTORCH_MARK)}

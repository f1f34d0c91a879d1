"""Policies as an ONNX model, safetensors and a module of PyTorch: the actions of the image."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

import numpy_torch
from foreign_files import needs_onnx
from policy_run import make_policy_run
from policy_samples import NETWORKS, patched, sample_images
from rltools_host.build.description import ranges_of
from rltools_host.commands.export import run as export_run
from rltools_host.errors import RefusedError
from rltools_host.policies import frameworks, onnx_model
from rltools_host.policies.activations import ACTIVATIONS
from rltools_host.policies.core import activations
from rltools_host.policies.double_precision import SMALLEST_LIMIT, allowed
from rltools_host.policies.image import PolicyImage, parse_policy

SAMPLES = ("summing_quadrotor", *NETWORKS)
RECURRENT = ("recurrent_pendulum", "recurrent_quadrotor", "lstm_quadrotor")


def sample(name: str) -> PolicyImage:
    return parse_policy(sample_images()[name])


def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1 / (1 + np.exp(-x))


def cell(values, layer, x, state):  # type: ignore[no-untyped-def]
    """The formulas of torch.nn.GRUCell and LSTMCell: outputs, and the state, which of an LSTM has
    its cells behind them."""
    weights = values[f"{layer}.weight_hh"].T
    h = state[:, : len(weights)]
    given = x @ values[f"{layer}.weight_ih"].T + values[f"{layer}.bias_ih"]
    own = h @ weights + values[f"{layer}.bias_hh"]
    gates = weights.shape[1] // len(weights)
    if gates == 3:
        (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(given, 3, -1), np.split(own, 3, -1)
        z = sigmoid(x_z + h_z)
        h = (1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n) + z * h
        return h, h
    i, f, g, o = np.split(given + own, 4, -1)
    c = sigmoid(f) * state[:, len(weights) :] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h, np.concatenate([h, c], -1)


@pytest.mark.parametrize("name", ["gelu", "summing_quadrotor", *RECURRENT])
def test_safetensors_hold_all_that_the_action_takes(name: str) -> None:
    """The action computed from the file alone, in double precision."""
    image = sample(name)
    data = frameworks.encode_safetensors(image)
    values = {key: value.astype(np.float64) for key, value in load(data).items()}
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    half_range = (values["highest"] - values["lowest"]) / 2
    ours = image.runner.begin(STEPS_SIDE_BY_SIDE)
    states = {
        f"layers.{index}": np.zeros((STEPS_SIDE_BY_SIDE, layer.state_dim))
        for index, layer in enumerate(image.layers)
    }
    for observations in in_time(image):
        x = (observations - values["mean"]) * values["inverse_std"]
        for index, activation in enumerate(json.loads(header["activations"])):
            layer = f"layers.{index}"
            if f"{layer}.weight" in values:
                x = x @ values[f"{layer}.weight"].T + values[f"{layer}.bias"]
            else:
                x, states[layer] = cell(values, layer, x, states[layer])
            x = ACTIVATIONS[activation].value(x)
        action = np.clip(x, -1, 1) * half_range + (values["highest"] + values["lowest"]) / 2
        most = allowed(image, observations, ours)
        difference = np.abs(action - image.runner.run(observations, ours)[1]) / half_range
        assert (difference <= most.actions).all()
    contract = json.loads(header["contract"])
    assert contract["step_interval_us"] == image.step_interval_us
    assert [row["name"] for row in contract["actions"]] == [c.name for c in image.actions]
    if name == "recurrent_quadrotor":
        assert contract["recurrence"] == {
            "trained_interval_us": 10_000,
            "most_pause_us": 40_000,
            "state_dim": 16,
            "reset_at": ["activation", "fault", "stale input", "pause"],
        }


STEPS_SIDE_BY_SIDE = 50


def in_time(image: PolicyImage) -> np.ndarray:
    """(steps, STEPS_SIDE_BY_SIDE, observations); of a policy without a state, too."""
    return onnx_model.sampled_observations(image).reshape(
        -1, STEPS_SIDE_BY_SIDE, len(image.observations)
    )


@needs_onnx
@pytest.mark.all
@pytest.mark.parametrize("name", RECURRENT)
def test_onnxruntime_goes_on_from_the_state(name: str) -> None:
    import onnxruntime

    image = sample(name)
    model = onnx_model.encode_onnx(image)  # which compares actions and states itself
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["observation", "state"]
    low, high = ranges_of(image.actions)
    for example in image.examples:
        if example.begins:
            state = image.runner.begin()
        given = {"observation": example.observation[None], "state": state}
        action, state = session.run(["action", "next_state"], given)
        difference = np.abs(action[0] - example.action) / (high - low)
        assert difference.max() <= 2e-6


@needs_onnx
@pytest.mark.all
@pytest.mark.parametrize("name", [*SAMPLES, "choosing"])
def test_onnxruntime_gives_the_actions(name: str) -> None:
    import onnx
    import onnxruntime

    image = sample(name)
    model = onnx_model.encode_onnx(image)  # which compares the actions itself
    document = onnx.load_from_string(model)
    onnx.checker.check_model(document, full_check=True)
    properties = {entry.key: entry.value for entry in document.metadata_props}
    assert json.loads(properties["contract"])["observations"][0]["unit"]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outside = 1e6 * np.ones((3, len(image.observations)), np.float32)
    actions = session.run(None, {"observation": outside})[0]
    low, high = ranges_of(image.actions)
    assert ((actions >= low) & (actions <= high)).all()


@needs_onnx
@pytest.mark.all
def test_a_model_with_other_actions_is_not_written() -> None:
    image, other = sample("tanh"), sample("relu")
    model = onnx_model.encode_onnx(other)
    with pytest.raises(RefusedError, match="nothing was written"):
        onnx_model.require_same_actions(image, model)


def module_in_numpy(image: PolicyImage, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exported module's Policy, whose PyTorch is numpy_torch.py."""
    for path, content in frameworks.pytorch_module(image)[1].items():
        (folder / path).write_bytes(content)
    for name, module in numpy_torch.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    file = folder / frameworks.PYTORCH_MARK
    names = {"__name__": "policy", "__file__": str(file)}
    exec(compile(file.read_text(), file, "exec"), names)  # which this test has written
    return names["Policy"]()


@pytest.mark.parametrize("name", [*SAMPLES, "choosing"])
def test_the_formulas_of_the_module_give_the_actions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = sample(name)
    observations = onnx_model.sampled_observations(image)
    actions = module_in_numpy(image, tmp_path, monkeypatch)(numpy_torch.Tensor(observations))
    assert actions.dtype == np.float32
    low, high = ranges_of(image.actions)
    difference = np.abs(actions - image.evaluate(observations)) / ((high - low) / 2)
    most = allowed(image, observations, image.runner.begin(len(observations)))
    is_close = most.is_close_choice(image, image.output(observations))
    assert (is_close | (difference <= most.actions)).all()


@pytest.mark.parametrize("name", RECURRENT)
def test_the_formulas_of_the_module_go_on_from_the_state(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = sample(name)
    policy = module_in_numpy(image, tmp_path, monkeypatch)
    low, high = ranges_of(image.actions)
    states, state = image.runner.begin(STEPS_SIDE_BY_SIDE), None
    for rows in in_time(image):
        actions, state = policy(numpy_torch.Tensor(rows), state)
        most = allowed(image, rows, states)
        difference = np.abs(actions - image.runner.run(rows, states)[1]) / ((high - low) / 2)
        assert (difference <= most.actions).all()
    assert (np.abs(state - states) <= most.states).all()


@pytest.mark.all
@pytest.mark.parametrize("name", RECURRENT)
def test_the_module_of_pytorch_goes_on_from_the_state(name: str, tmp_path: Path) -> None:
    """Over the golden sequences, and 20 steps of 50 episodes side by side."""
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    image = sample(name)
    for path, content in frameworks.pytorch_module(image)[1].items():
        (tmp_path / path).write_bytes(content)
    golden = np.array([example.observation for example in image.examples])
    np.savez(
        tmp_path / "given.npz",
        golden=golden,
        begins=[example.begins for example in image.examples],
        steps=in_time(image),
    )
    program = (
        "import numpy, torch, policy\n"
        "given = numpy.load('given.npz')\n"
        "network = policy.Policy()\n"
        "actions, state, found = [], None, []\n"
        "with torch.no_grad():\n"
        "    for row, begins in zip(given['golden'], given['begins']):\n"
        "        action, state = network(torch.from_numpy(row), None if begins else state)\n"
        "        actions.append(action.numpy())\n"
        "    state = None\n"
        "    for rows in given['steps']:\n"
        "        action, state = network(torch.from_numpy(rows), state)\n"
        "        found.append(action.numpy())\n"
        "numpy.savez('found.npz', golden=actions, steps=found, state=state.numpy())\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    found = np.load(tmp_path / "found.npz")
    low, high = ranges_of(image.actions)
    expected = np.array([example.action for example in image.examples])
    difference = np.abs(found["golden"] - expected) / ((high - low) / 2)
    assert difference.max() <= SMALLEST_LIMIT
    states = image.runner.begin(STEPS_SIDE_BY_SIDE)
    for rows, given in zip(in_time(image), found["steps"], strict=True):
        most = allowed(image, rows, states)
        difference = np.abs(given - image.runner.run(rows, states)[1]) / ((high - low) / 2)
        assert (difference <= most.actions).all()
    assert (np.abs(found["state"] - states) <= most.states).all()


def test_the_module_of_pytorch_is_python_whatever_the_names_are() -> None:
    image = sample("relu")
    hostile = parse_policy(patched(image.data, 80, "32s", b'"""\nimport os\n#'))
    text = frameworks.pytorch_module(hostile)[1][frameworks.PYTORCH_MARK].decode()
    compile(text, "policy.py", "exec")
    assert not any(line.startswith("import os") for line in text.splitlines())


def test_the_hosts_activations_are_the_cores() -> None:
    assert tuple(ACTIVATIONS) == activations()


def test_the_command_writes_each(tmp_path: Path) -> None:
    run = make_policy_run(tmp_path / "run")
    path = export_run(str(run), "safetensors", tmp_path)
    assert path.name == "pendulum_td3_policy.safetensors"
    folder = export_run(str(run), "pytorch", tmp_path / "out")
    assert {file.name for file in folder.iterdir()} == {"policy.py", "policy.safetensors"}

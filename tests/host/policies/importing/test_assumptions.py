"""What a foreign file states is read or refused; what it does not state is said, and `--recorded`
proves it. The twelve policies that were once imported wrongly without a word are among them."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from safetensors.numpy import save_file

from foreign_files import FOLDER, needs_onnx
from policy_samples import sample_images
from rltools_host.commands import cli
from rltools_host.errors import RltError
from rltools_host.policies.frameworks import encode_safetensors, pytorch_module
from rltools_host.policies.image import parse_policy
from rltools_host.policies.image_writing import sampled
from rltools_host.policies.importing.onnx_files import policy_in
from rltools_host.policies.importing.pickles import Call, Global, UnreadableError
from rltools_host.policies.importing.proof import image_of, normalized_stages
from rltools_host.policies.importing.reading import read_foreign
from rltools_host.policies.importing.run import Imported, ImportRequest, read_policy
from rltools_host.policies.importing.sbx import function_name
from rltools_host.policies.importing.stable_baselines3 import vec_normalize
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.importing.target import Target, target_of_contract


def changed(name: str, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """One of the archives with another `data`."""
    path = folder / name
    with zipfile.ZipFile(FOLDER / name) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.namelist():
            content = source.read(entry)
            if entry == "data":
                document = json.loads(content)
                change(document)
                content = json.dumps(document).encode()
            target.writestr(entry, content)
    return path


def pickled(value: Any) -> dict[str, str]:
    text = base64.b64encode(pickle.dumps(value)).decode()
    return {":type:": str(type(value)), ":serialized:": text}


def keyword(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["policy_kwargs"].update({name: value})


def image(*shape: int, **more: Any) -> Callable[[dict[str, Any]], None]:
    """Of a space of images, as the library keeps it: with its channels first."""
    box = pickled(spaces.Box(0, 255, shape, np.uint8))

    def change(data: dict[str, Any]) -> None:
        data["observation_space"] = box
        data["policy_kwargs"].update(more)

    return change


def space(kind: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.update(action_space=pickled(kind))


def own_class(data: dict[str, Any]) -> None:
    data["policy_class"] = pickled(Path)


def nothing_stated(data: dict[str, Any]) -> None:
    del data["policy_kwargs"]


REFUSED: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "images, channels last": ("sb3_ppo.zip", image(1, 4, 4), "are images"),
    "images that are not divided": (
        *("sb3_ppo.zip", image(3, 2, 2, normalize_images=False)),
        "are images",
    ),
    "an argument that is not known": ("sb3_ppo.zip", keyword("skip", True), '"skip", which is not'),
    "one of another algorithm": ("sb3_td3.zip", keyword("squash_output", False), "squash_output"),
    "squashing that is no word": ("sb3_ppo.zip", keyword("squash_output", 1), "neither true nor"),
    "a limit that is none": ("sb3_sac_sde.zip", keyword("clip_mean", True), "is not a number"),
    "arguments of an extractor": (
        *("sb3_ppo.zip", keyword("features_extractor_kwargs", {"features_dim": 3})),
        "have a features extractor",
    ),
    "a class of the user's": ("sb3_ppo.zip", own_class, "only the library's own are known"),
    "no arguments at all": ("sb3_ppo.zip", nothing_stated, "no policy_kwargs"),
    "a space of another width": (
        *("sb3_dqn_lander.zip", space(spaces.Discrete(3))),
        "its action space and its network contradict each other",
    ),
    "a space that is none of numbers": (
        *("sb3_dqn_lander.zip", space(spaces.MultiBinary(4))),
        'its action space is a "MultiBinary": only a Box',
    ),
    "a lambda": ("sbx_ppo_lambda.zip", dict, "a function of the user's"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_archive_states_and_is_not_read_is_refused(name: str, tmp_path: Path) -> None:
    file, change, sentence = REFUSED[name]
    path = changed(file, tmp_path, change)
    with pytest.raises(RltError) as refused:
        read_foreign(path, path.read_bytes(), Given())
    assert sentence in str(refused.value)


@pytest.mark.parametrize("name", ["sb3_ppo_squashed", "sb3_sac_clip_mean", "sbx_ppo_relu"])
def test_what_an_archive_states_is_read(name: str) -> None:
    """The library's own actions (1000), for arguments that were ignored: errors of 1.5 and more of
    a range of 4."""
    contract = "pendulum" if name.startswith("sbx") else "quadrotor"
    imported = read_policy(ImportRequest(FOLDER / f"{name}.zip", contract=contract))
    given = imported.image.evaluate(sampled(imported.target.contract, 1000))
    assert np.abs(given - np.load(FOLDER / f"{name}.npy")).max() <= 2e-6
    assert [each for each in imported.assumed if "normalizer" not in each] == []


def test_an_archive_of_the_old_gym_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spaces are of gym, whose classes have the same names."""
    old = type("Box", (spaces.Box,), {"__module__": "gym.spaces.box"})
    for module in ("gym", "gym.spaces", "gym.spaces.box"):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(Box=old))
    box = old(-1.5, 2.0, (1,))
    assert b"gym.spaces.box" in base64.b64decode(pickled(box)[":serialized:"])
    path = changed("sb3_ppo.zip", tmp_path, space(box))
    bounds = read_foreign(path, path.read_bytes(), Given()).action_bounds
    assert bounds is not None
    assert [float(end.item()) for end in bounds] == [-1.5, 2.0]


def test_a_vec_normalize_of_rewards_alone_leaves_the_observations() -> None:
    content = (FOLDER / "sb3_ppo_vec_normalize.pkl").read_bytes()
    stated = b"norm_obs" + pickle.MEMOIZE
    off = content.replace(stated + pickle.NEWTRUE, stated + pickle.NEWFALSE)
    assert len(vec_normalize(content)) == 2  # the statistics and the clip
    assert off != content
    assert vec_normalize(off) == []


def jax_function(kind: str, name: str, module: str) -> Call:
    if kind == "custom_jvp":
        state = {"__module__": module, "__name__": name}
        return Call(Global("jax._src.custom_derivatives.custom_jvp"), (), state)
    code = Call(Global("cloudpickle.cloudpickle._make_function"), (None, {"__name__": module}))
    return Call(Global("jaxlib._jax.PjitFunction"), (), {"function_name": name, "fun": code})


@pytest.mark.parametrize("kind", ["PjitFunction", "custom_jvp"])
def test_a_function_is_known_by_its_name_only_where_it_is_jaxs(kind: str) -> None:
    """A user's own that is called tanh, or compiled, is none of these."""
    assert function_name(jax_function(kind, "silu", "jax._src.nn.functions")) == "silu"
    assert function_name(jax_function(kind, "tanh", "__main__")) == "a function of the user's"
    exact = (Global("jax._src.nn.functions.gelu"), (), {"approximate": False}, None)
    assert function_name(Call(Global("functools.partial"), (), exact)) == "exact gelu"
    assert function_name(exact[0]) == "gelu"  # approximated, and refused


# -- tables of tensors, which state no order -------------------------------------------------------


def table(path: Path, *, layers: int = 3) -> tuple[Path, list[np.ndarray]]:
    draws = np.random.default_rng(5)
    sizes = [3, *[8] * (layers - 1), 1]
    weights = [
        draws.normal(0, 0.4, pair).astype("f4") for pair in zip(sizes[1:], sizes, strict=False)
    ]
    tensors = {}
    for index, values in enumerate(weights):
        tensors |= {f"{index}.weight": values, f"{index}.bias": np.zeros(len(values), "f4")}
    save_file(tensors, path)
    return path, weights


def skipping(x: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
    first = np.tanh(x @ weights[0].T)
    return np.tanh((first + np.tanh(first @ weights[1].T)) @ weights[2].T)


def twice(x: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
    hidden = np.tanh(np.tanh(x @ weights[0].T) @ weights[1].T)
    return np.tanh(np.tanh(hidden @ weights[1].T) @ weights[2].T)


@pytest.mark.parametrize("used", [skipping, twice])
def test_a_module_that_is_no_chain_is_said_and_disproven(used: Any, tmp_path: Path) -> None:
    path, weights = table(tmp_path / "a.safetensors")
    request = ImportRequest(path, contract="pendulum", given=Given("tanh", "tanh"))
    (order, scaling) = (each for each in read_policy(request).assumed if "normalizer" not in each)
    assert order.startswith('its layers one behind the other, "0 > 1 > 2", each used once')
    assert order.endswith("state it by a model of ONNX or by --recorded FILE")
    assert scaling.endswith("state it by --actions scaled or --actions same")
    seen = sampled(target_of_contract("pendulum").contract, 200)
    recorded = tmp_path / "recorded.npz"
    np.savez(recorded, observations=seen, actions=2 * used(seen, weights))
    proven = ImportRequest(
        path, contract="pendulum", given=Given("tanh", "tanh"), recorded=recorded
    )
    with pytest.raises(RltError, match="gives other actions than those recorded"):
        read_policy(proven)


def test_the_word_on_actions_counts_behind_a_tanh(tmp_path: Path) -> None:
    path, _ = table(tmp_path / "a.safetensors")
    seen = sampled(target_of_contract("pendulum").contract, 50)

    def given(actions: str) -> Imported:
        said = Given("tanh", "tanh")
        return read_policy(ImportRequest(path, contract="pendulum", given=said, actions=actions))

    same, scaled = given("same"), given("scaled")
    assert not any("--actions" in each for each in (*same.assumed, *scaled.assumed))
    np.testing.assert_allclose(
        scaled.image.evaluate(seen), 2 * same.image.evaluate(seen), rtol=1e-5
    )


LINES = {
    "rsl_rl.pt": ("activation elu (RSL-RL's default", "output activation identity (RSL-RL's def"),
    "skrl.pt": (
        "epsilon 1e-08 and clip_threshold 5 of its RunningStandardScaler",
        "output activation identity (skrl's default",
        "its layers one behind the other",
    ),
    "sb3_ppo.zip": (),
}


@pytest.mark.parametrize("file", LINES)
def test_each_thing_that_a_file_does_not_state_is_one_line(file: str) -> None:
    given = Given("silu") if file == "skrl.pt" else Given()
    assumed = read_foreign(FOLDER / file, (FOLDER / file).read_bytes(), given).assumed
    assert len(assumed) == len(LINES[file])
    for line, beginning in zip(assumed, LINES[file], strict=True):
        assert line.startswith(beginning)
        assert ", state it by " in line


# -- models of ONNX --------------------------------------------------------------------------------


def model(*names: str, skips: bool = False) -> bytes:
    """Dense layers to each of the outputs, of one width."""
    from onnx import TensorProto, helper, numpy_helper

    draws = np.random.default_rng(2)
    constants = [numpy_helper.from_array(draws.normal(size=(3, 3)).astype("f4"), "w")]
    nodes = [
        helper.make_node("MatMul", ["obs", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Add", ["b", "obs" if skips else "zero"], ["c"]),
    ]
    constants.append(numpy_helper.from_array(np.full(3, 0.5, "f4"), "zero"))
    for index, name in enumerate(names):
        head = draws.normal(size=(3, 1)).astype("f4")
        constants.append(numpy_helper.from_array(head, f"w{index}"))
        nodes.append(helper.make_node("MatMul", ["c", f"w{index}"], [name]))

    def vector(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])

    outputs = [vector(name, 1) for name in names]
    graph = helper.make_graph(nodes, "policy", [vector("obs", 3)], outputs, constants)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


@needs_onnx
def test_which_output_of_several_is_the_action() -> None:
    """The first was taken: log_std of a model whose outputs are of one width."""
    seen = np.random.default_rng(0).normal(size=(20, 3)).astype("f4")
    content = model("log_std", "mean")

    def outputs(content: bytes, name: str | None = None) -> np.ndarray:
        found = policy_in(content, name)
        assert found.reference is not None
        return found.reference(seen)

    by_name = policy_in(content)
    assert by_name.assumed == (
        'its output "mean" is the action (by its name), and left out is "log_std", state it by '
        "--output-name NAME",
    )
    np.testing.assert_array_equal(outputs(content), outputs(content, "mean"))
    assert np.abs(outputs(content) - outputs(content, "log_std")).max() > 0.1
    assert policy_in(content, "log_std").assumed == policy_in(model("a")).assumed == ()
    for names in (("a", "b"), ("mu", "mean")):
        with pytest.raises(
            UnreadableError, match=r"several outputs, .*: name the one .* by --outp"
        ):
            policy_in(model(*names))
    with pytest.raises(UnreadableError, match='it has no output "c": its outputs are "a", "b"'):
        policy_in(model("a", "b"), "c")


@needs_onnx
def test_a_model_that_is_no_chain_is_refused() -> None:
    with pytest.raises(UnreadableError, match='joins two values by "Add", and only a chain'):
        policy_in(model("a", skips=True))


# -- what `rlt export` writes ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gelu", "choosing", "summing_quadrotor", "lstm_quadrotor"])
@pytest.mark.parametrize("form", ["safetensors", "pytorch"])
def test_what_is_exported_comes_back_with_the_same_bits(
    name: str, form: str, tmp_path: Path
) -> None:
    ours = parse_policy(sample_images()[name])
    files = {"policy.safetensors": encode_safetensors(ours)}
    if form == "pytorch":
        files = pytorch_module(ours)[1]
    path = tmp_path / "policy.safetensors"
    path.write_bytes(files[path.name])
    policy = read_foreign(path, path.read_bytes(), Given())
    assert (policy.assumed, policy.notes) == ((), ())
    recurrence = ours.recurrence
    interval_us = ours.step_interval_us if recurrence is None else recurrence.trained_interval_us
    assert policy.step_interval_us == interval_us
    target = Target(ours.inputs)  # with what a place adds to an observation
    stages = normalized_stages(policy, target.contract, None)
    between = interval_us // ours.step_interval_us
    back = image_of(stages, target, policy, "back", "0" * 64, between)
    assert back.shape == ours.shape
    seen = sampled(ours.inputs, 100)
    begun, theirs = ours.runner.begin(1), back.runner.begin(1)
    for row in seen:
        expected = ours.runner.run(row[None], begun)[1]
        np.testing.assert_array_equal(back.runner.run(row[None], theirs)[1], expected)


def test_an_exported_folder_is_imported_for_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = parse_policy(sample_images()["pendulum"])
    for name, content in pytorch_module(ours)[1].items():
        (tmp_path / name).write_bytes(content)
    words = ["import", str(tmp_path), "--out", str(tmp_path / "run")]
    assert cli.run([*words, "--contract", "pendulum"]) == 0
    assert "assumed" not in capsys.readouterr().err
    other = ["import", str(tmp_path), "--contract", "pendulum", "--activation", "relu"]
    assert cli.run(other) != 0
    assert "says what its activations are" in capsys.readouterr().err
    data = (tmp_path / "policy.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    for texts in ({"activations": '["relu"]'}, {**header["__metadata__"], "activations": '["a"]'}):
        text = json.dumps({**header, "__metadata__": texts}).encode()
        content = len(text).to_bytes(8, "little") + text + data[8 + size :]
        with pytest.raises(RltError, match=r"its (metadata is not that|activations are not those)"):
            read_foreign(Path("a.safetensors"), content, Given())

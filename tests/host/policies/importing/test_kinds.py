"""Files as users have them: tables of tensors in the layouts of their programs, models of ONNX as
several exporters write them, and what is no policy. Each is imported or refused by its name."""

from __future__ import annotations

import dataclasses
import pickle
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreign_files import FOLDER, GOLDENS, needs_onnx
from rltools_host.errors import DamagedFileError
from rltools_host.policies.importing import proof, state_dicts
from rltools_host.policies.importing.network import Activate, ForeignPolicy, Normalize, run
from rltools_host.policies.importing.onnx_files import policy_in
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.policies.importing.reading import content_of, read_foreign, read_normalizer
from rltools_host.policies.importing.run import ImportRequest, read_policy
from rltools_host.policies.importing.stable_baselines3 import network_of, policy_in_table
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.importing.target import Target, target_of_contract

Array = Any
RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(-2, 2, (50, 3))
TANH = Given("tanh", "tanh")


def network(*widths: int, prefix: str = "", first: int = 0) -> dict[str, Array]:
    """A state_dict() of layers 0, 2, 4 ..."""
    found = {}
    for index, (taken, given) in enumerate(pairwise(widths)):
        name = f"{prefix}{first + 2 * index}"
        found[f"{name}.weight"] = RANDOM.normal(size=(given, taken))
        found[f"{name}.bias"] = RANDOM.normal(size=given)
    return found


ACTOR = network(3, 8, 6, 2)
CRITIC = network(3, 8, 1)
Q = network(5, 8, 1)


def under(prefix: str, table: Mapping[str, Array]) -> dict[str, Array]:
    return {prefix + name: values for name, values in table.items()}


def expected(table: Mapping[str, Array], x: Array) -> Array:
    """tanh behind every layer, as torch.nn.Sequential has it."""
    for name in [name for name in table if name.endswith(".weight")]:
        x = np.tanh(x @ table[name].T + table[name.removesuffix("weight") + "bias"])
    return x


def named(table: Mapping[str, Array], *names: str) -> dict[str, Array]:
    """The same layers by other names."""
    layers = dict.fromkeys(name.partition(".")[0] for name in table)
    new = dict(zip(layers, names, strict=True))
    return {f"{new[k.partition('.')[0]]}.{k.partition('.')[2]}": v for k, v in table.items()}


SPINNING_UP = named(ACTOR, "net.0", "net.2", "mu_layer")
HEAD = {"log_std_layer.weight": np.ones((2, 6)), "log_std_layer.bias": np.ones(2)}
LAYOUTS: dict[str, tuple[dict[str, Any], str | None]] = {
    "compiled": (under("_orig_mod.", ACTOR), None),
    "distributed": (under("module.", ACTOR), None),
    "compiled, then distributed": (under("module._orig_mod.", ACTOR), None),
    "distributed, then compiled": (under("_orig_mod.module.", ACTOR), None),
    "a compiled part": (under("actor._orig_mod.", ACTOR) | under("critic.", CRITIC), None),
    "an actor that ends in tanh": (under("actor.", ACTOR) | under("critic.", CRITIC), None),
    "an actor among others": (under("actor.", ACTOR) | under("q1.", Q) | under("q2.", Q), None),
    "an actor in a table": ({"model": under("actor.", ACTOR) | under("critic.", CRITIC)}, None),
    "several tables": ({"actor": ACTOR, "critic": CRITIC, "step": np.array(3.0)}, None),
    "a part that is named": (under("one.", ACTOR) | under("two.", Q), "one"),
    "a part by the name in its table": (
        {"model": under("one.", ACTOR) | under("two.", Q)},
        "one",
    ),
    "Spinning Up's PPO": (
        {"pi.log_std": np.zeros(2)} | under("pi.mu_net.", ACTOR) | under("v.v_net.", CRITIC),
        None,
    ),
    "Spinning Up's SAC": (under("pi.", SPINNING_UP | HEAD) | under("q1.", Q), None),
    "a value's head": (
        SPINNING_UP | {"value_head.weight": np.ones((1, 6)), "value_head.bias": np.ones(1)},
        None,
    ),
    **{
        f"under {key}": ({key: ACTOR, "optimizer": {"0": np.ones(3)}}, None)
        for key in ("model", "policy", "actor", "model_state_dict", "actor_state_dict", "agent")
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_actor_in_many_layouts(layout: str) -> None:
    document, part = LAYOUTS[layout]
    policy = state_dicts.policy_in(document, dataclasses.replace(TANH, part=part))
    assert policy.library == "PyTorch"
    np.testing.assert_allclose(run(policy.stages, X), expected(ACTOR, X), atol=1e-12)
    is_chosen = any("state it by --part NAME" in line for line in policy.assumed)
    assert is_chosen == (
        "critic" in str(document) or "q1" in str(document) or "v.v" in str(document)
    )


def test_layers_whose_names_are_sorted_follow_on_each_other_where_they_fit() -> None:
    """As in .safetensors, where `mu_layer` is in front of `net`."""
    table = {name: SPINNING_UP[name] for name in sorted(SPINNING_UP)}
    policy = state_dicts.policy_in(table, TANH, keeps_order=False)
    np.testing.assert_allclose(run(policy.stages, X), expected(ACTOR, X), atol=1e-12)


def test_a_model_that_skrls_policy_and_value_share() -> None:
    value = {"value_layer.weight": np.ones((1, 6)), "value_layer.bias": np.ones(1)}
    table = named(ACTOR, "net.0", "net.2", "mean_layer") | {"log_std_parameter": np.ones(2)} | value
    policy = state_dicts.policy_in({"policy": table, "value": table}, TANH)
    assert policy.library == "skrl"
    np.testing.assert_allclose(run(policy.stages, X), expected(ACTOR, X), atol=1e-12)
    assert any(line.startswith('"value_layer" left out') for line in policy.assumed)


REFUSED: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "no name of a policy": (under("a.", ACTOR) | under("b.", Q), None, '"a", "b": name the one'),
    "two parts of a name": (
        {"a": under("one.", ACTOR) | under("two.", Q), "b": under("one.", ACTOR)},
        *("one", 'no network "one": its networks are "a.one", "a.two"'),
    ),
    "no such part": (under("a.", ACTOR) | under("b.", Q), "c", 'no network "c": its networks are'),
    "a normalizer beside it": (
        {"actor": ACTOR, "obs_rms": {"mean": np.ones(3)}},
        *(None, '"obs_rms.mean" beside its network, a normalizer whose formula'),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_does_not_say_which_network_it_is(case: str) -> None:
    document, part, sentence = REFUSED[case]
    with pytest.raises(UnreadableError) as refused:
        state_dicts.policy_in(document, dataclasses.replace(TANH, part=part))
    assert sentence in str(refused.value)


def test_twice_as_many_outputs_as_actions_are_means_and_deviations() -> None:
    policy = state_dicts.policy_in(network(3, 8, 2), TANH)
    contract = target_of_contract("pendulum").contract
    first = proof.without_deviations(policy, contract)
    np.testing.assert_allclose(run(first.stages, X), run(policy.stages, X)[:, :1], rtol=1e-12)
    assert "its first 1 of 2 outputs are the actions" in first.assumed[-1]


@pytest.mark.parametrize("second", ["shared_net.2", "policy_net.0"])
def test_layers_that_an_older_stable_baselines3_shares_with_the_value(second: str) -> None:
    """`net_arch=[8, 6]` and `net_arch=[8, dict(pi=[6], vf=[5])]`, before version 1.8."""
    names = ("mlp_extractor.shared_net.0", f"mlp_extractor.{second}", "action_net")
    table = renamed(ACTOR, names)
    table |= under("mlp_extractor.value_net.", network(8, 5)) | network(5, 1, prefix="value_net.")
    _, stages, _ = network_of(table, {}, ())
    before = np.arctanh(expected(ACTOR, X))
    np.testing.assert_allclose(run(stages, X), before, rtol=1e-9)


def test_a_policy_that_was_saved_without_its_algorithm() -> None:
    """The state_dict() of model.policy, whose names are those of the archive's policy.pth."""
    names = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
    table = {"state_dict": {k.replace("a.", ""): v for k, v in renamed(ACTOR, names).items()}}
    policy = policy_in_table(table, Given())
    assert policy.library == "Stable-Baselines3 PPO"
    assert policy.is_normalized is False
    for said in ("activation tanh", "no tanh behind its actions"):
        assert any(line.startswith(said) for line in policy.assumed)
    last = {"0.weight": ACTOR["4.weight"], "0.bias": ACTOR["4.bias"]}
    hidden = {name: ACTOR[name] for name in ACTOR if name[0] != "4"}
    outputs = expected(hidden, X) @ last["0.weight"].T + last["0.bias"]
    np.testing.assert_allclose(run(policy.stages, X), outputs, atol=1e-12)


def test_a_ppo_policy_without_hidden_layers() -> None:
    table = renamed(network(3, 2), ("action_net",))  # net_arch=[]
    policy = policy_in_table(table, Given())
    outputs = X @ table["action_net.weight"].T + table["action_net.bias"]
    np.testing.assert_allclose(run(policy.stages, X), outputs, atol=1e-12)


SAVED = FOLDER / "sb3_ppo_relu_policy.pt"
NO_SPACES: dict[str, Any] = {"observation_space": None, "action_space": None}


def test_what_a_saved_policy_states_is_read() -> None:
    """policy.save() writes the arguments of the policy's class: tanh was assumed for its ReLU, as
    if the file did not say."""
    policy = read_foreign(SAVED, SAVED.read_bytes(), Given())
    assert Activate("relu") in policy.stages
    assert policy.action_bounds is not None
    assert [line.partition(" (")[0] for line in policy.assumed] == [
        "policy class MlpPolicy",
        "no normalizer of observations",
    ]
    with pytest.raises(DamagedFileError, match="says what its activations are: leave --act"):
        read_foreign(SAVED, SAVED.read_bytes(), Given("tanh"))
    table = {"action_net.0.weight": np.ones((2, 3))}
    with pytest.raises(UnreadableError, match="does not say whether its actions end in tanh"):
        policy_in_table({"state_dict": table}, Given(), {"data": NO_SPACES})


def renamed(table: Mapping[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    parts = [(name, part) for name in names for part in ("weight", "bias")]
    return {f"{n}.{part}": v for (n, part), v in zip(parts, table.values(), strict=True)}


# -- observations without bounds -------------------------------------------------------------------


def test_a_clipped_observation_without_bounds_gives_the_librarys_actions() -> None:
    """The actions of a policy with VecNormalize were up to 4.7e-02 wrong for those of a million."""
    (golden,) = (each for each in GOLDENS if each.normalizer)
    imported = read_policy(golden.request())
    target = target_of_contract("quadrotor")
    wide = [
        dataclasses.replace(each, minimum=-1e6, maximum=1e6)
        for each in target.contract.observations
    ]
    contract = dataclasses.replace(target.contract, observations=tuple(wide))
    stages = list(imported.stages)
    image = proof.image_of(stages, Target(contract), imported.policy, "wide", "00" * 32)
    assert proof.prove(image, stages).difference <= 1e-6
    image.verify()


# -- models of ONNX --------------------------------------------------------------------------------

W, B, V, C = (RANDOM.normal(size=size).astype("f4") for size in ((3, 8), (8,), (8, 4), (4,)))
Node = tuple[str, str, str]  # operator and attributes, inputs, outputs
FIRST: Node = ("Gemm", "x W B", "h")
LAST: Node = ("Gemm", "t V C", "action")


def model(nodes: tuple[Node, ...], version: int = 18, kind: str = "FLOAT", **more: Array) -> bytes:
    """Nodes of text, such as ("Clip min=-1.0", "h", "t"): an empty input is written as a dot."""
    import onnx
    from onnx import helper, numpy_helper

    made = []
    for text, inputs, outputs in nodes:
        operator, *given = text.split()
        attributes = {key: eval(value) for key, value in (each.split("=") for each in given)}
        names = [name.replace(".", "") for name in inputs.split()]
        made.append(helper.make_node(operator, names, outputs.split(), **attributes))
    constants = {"W": W, "B": B, "V": V, "C": C, **more}
    number = onnx.TensorProto.DataType.Value(kind)
    half = np.float16 if kind == "FLOAT16" else None
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", number, [None, 3])],
        [helper.make_tensor_value_info("action", number, [None, None])],
        [numpy_helper.from_array(np.asarray(v, half), name) for name, v in constants.items()],
    )
    opset = helper.make_opsetid("", version)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


HALF, ONE, ROOT = np.float32(0.5), np.float32(1), np.float32(2**0.5)
GELU = (("Div", "h root", "d"), ("Erf", "d", "e"), ("Add", "e one", "p"))
PARTS = {"half": HALF, "one": ONE, "root": ROOT}
CUT = {"low": np.float32(-0.3), "high": np.float32(0.4)}
MODELS: dict[str, tuple[tuple[Node, ...], dict[str, Any]]] = {
    "clip by attributes": ((FIRST, ("Clip min=-0.2 max=0.5", "h", "t"), LAST), {"version": 9}),
    "clip by one attribute": ((FIRST, ("Clip max=0.5", "h", "t"), LAST), {"version": 9}),
    "clip without a lower end": ((FIRST, ("Clip", "h . high", "t"), LAST), CUT),
    "clip without an upper end": ((FIRST, ("Clip", "h low", "t"), LAST), CUT),
    "a constant of one number": (
        (FIRST, ("Constant value_float=-0.5", "", "low"), ("Clip", "h low high", "t"), LAST),
        {"high": CUT["high"]},
    ),
    "double": ((FIRST, ("Cast to=11", "h", "d"), ("Cast to=1", "d", "t"), LAST), {}),
    "GELU, halved at the end": (
        (FIRST, *GELU, ("Mul", "h p", "m"), ("Mul", "m half", "t"), LAST),
        PARTS,
    ),
    "GELU, halved first": (
        (FIRST, *GELU, ("Mul", "h half", "m"), ("Mul", "m p", "t"), LAST),
        PARTS,
    ),
    "GELU, its factor halved": (
        (FIRST, *GELU, ("Mul", "p half", "m"), ("Mul", "m h", "t"), LAST),
        PARTS,
    ),
    "the first half of a split": (
        (FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w"), ("Split axis=-1", "w s", "action r")),
        {"s": np.array([2, 2])},
    ),
    "the second half of a split by its attribute": (
        (
            *(FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w")),
            ("Split axis=1 split=[1,3]", "w", "r action"),
        ),
        {"version": 11},
    ),
    "a slice": (
        (FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w"), ("Slice", "w a b c", "action")),
        {"a": np.array([1]), "b": np.array([-1]), "c": np.array([1])},
    ),
    "a half whose size is computed": (  # x.chunk(2, -1)[0] in the exporter of before 2.5
        (
            *(FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w"), ("Shape", "w", "shape")),
            *(("Gather", "shape one", "width"), ("Add", "width one", "more")),
            *(("Div", "more two", "half"), ("Mul", "half one", "end")),
            ("Slice", "w none end one", "action"),
        ),
        {"none": np.array([0]), "one": np.array([1]), "two": np.array([2])},
    ),
    "its own number of rows": (  # x.view(x.size(0), -1)
        (
            *(FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w"), ("Shape", "w", "shape")),
            *(("Gather", "shape first", "row"), ("Unsqueeze", "row none", "rows")),
            *(("Concat axis=0", "rows rest", "s"), ("Reshape", "w s", "action")),
        ),
        {"first": np.array(0), "none": np.array([0]), "rest": np.array([-1])},
    ),
    "a shape that it has": (
        (FIRST, ("Tanh", "h", "t"), ("Gemm", "t V C", "w"), ("Reshape", "w s", "action")),
        {"s": np.array([-1, 4])},
    ),
}


@needs_onnx
@pytest.mark.parametrize("name", MODELS)
def test_what_exporters_write_is_computed_as_onnxruntime_does(name: str) -> None:
    nodes, more = MODELS[name]
    policy = policy_in(model(nodes, **more))
    assert policy.reference is not None
    theirs = policy.reference(X.astype("f4"))
    np.testing.assert_allclose(run(policy.stages, X.astype("f4")), theirs, atol=3e-6)


NOT_READ: dict[str, tuple[tuple[Node, ...], str]] = {
    "noise": (
        (FIRST, ("RandomNormalLike", "h", "n"), ("Add", "h n", "t"), LAST),
        "it draws its action at random, by RandomNormalLike: export the action without noise",
    ),
    "whole numbers": (
        (FIRST, ("Cast to=7", "h", "i"), ("Cast to=1", "i", "t"), LAST),
        "it makes its numbers INT64, by a Cast",
    ),
    "a shape that grows": (
        (
            *(
                FIRST,
                ("Shape", "h", "s0"),
                *(("Concat axis=0", f"s{i} s{i}", f"s{i + 1}") for i in range(40)),
            ),
            *(
                ("Gather", "s40 zero", "n"),
                ("Gemm", "h V C", "w"),
                ("Slice", "w zero n zero", "action"),
            ),
        ),
        "it is not an ONNX model, or it is damaged",
    ),
    "a size that grows": (
        (
            *(FIRST, ("Shape", "h", "s"), ("Gather", "s one", "n0")),
            *(("Mul", f"n{i} n{i}", f"n{i + 1}") for i in range(60)),
            *(("Gemm", "h V C", "w"), ("Slice", "w zero n60 one", "action")),
        ),
        "it is not an ONNX model, or it is damaged",
    ),
    "an operator": ((FIRST, ("LeakyRelu", "h", "t"), LAST), 'operator "LeakyRelu", which is not'),
}


@needs_onnx
@pytest.mark.parametrize("name", NOT_READ)
def test_what_a_chain_cannot_compute_is_named(name: str) -> None:
    nodes, sentence = NOT_READ[name]
    with pytest.raises(UnreadableError) as refused:
        policy_in(model(nodes, zero=np.array([0]), one=np.array([1])))
    assert sentence in str(refused.value)


@needs_onnx
@pytest.mark.parametrize("kind", ["FLOAT16", "FLOAT"])
def test_half_precision_is_computed_in_single_and_said(kind: str, tmp_path: Path) -> None:
    nodes = (FIRST, ("Tanh", "h", "t"), LAST)
    if kind == "FLOAT":
        nodes = (FIRST, ("Cast to=10", "h", "i"), ("Cast to=1", "i", "o"), ("Tanh", "o", "t"), LAST)
    file = tmp_path / "half.onnx"
    file.write_bytes(model(nodes, kind=kind, V=V[:, :1], C=C[:1]))
    asked = dataclasses.replace(GOLDENS[0].request(), file=file, actions="same")
    imported = read_policy(asked)
    exact, half = imported.proofs
    assert exact.difference <= 1e-6 < half.difference <= 1e-2
    assert any("it computes in half precision" in note for note in imported.notes)


# -- notes -----------------------------------------------------------------------------------------

STATED = FOLDER / "leapp_stated.yaml"


def described(folder: Path, *changes: tuple[str, str]) -> tuple[str, ...]:
    """The notes on LEAPP's description with other words in it, as a policy of the quadrotor."""
    import onnx

    model = onnx.load(STATED.with_suffix(".onnx"))
    text = STATED.read_text().replace("frequency: 100.0", "frequency: 500.0")  # the quadrotor's
    for before, behind in changes:
        assert before in text
        text = text.replace(before, behind)
    (entry,) = (each for each in model.graph.input if each.name == "rate")
    if "name: rate" not in text:
        entry.name = "robot::rate"
        for node in model.graph.node:
            node.input[:] = ["robot::rate" if x == "rate" else x for x in node.input]
    (folder / "leapp_stated.onnx").write_bytes(model.SerializeToString())
    file = folder / "policy.yaml"
    file.write_text("\n".join(line for line in text.split("\n") if "sha256sum" not in line))
    return read_policy(ImportRequest(file, contract="quadrotor", actions="same")).notes


@needs_onnx
def test_a_description_is_read_with_a_note_on_what_is_not_known(tmp_path: Path) -> None:
    usual = described(tmp_path)
    assert not any("LEAPP's format" in note or "does not name" in note for note in usual)
    notes = described(
        tmp_path,
        ("name: rate", "name: 'robot::rate'"),  # it was no plain text
        ("config version: '1.3'", "config version: '9.0'"),
        ("      element_names: [[x, y, z]]\n", ""),
    )
    for beginning in (
        'it is of LEAPP\'s format "9.0", and 1.3 is known here',
        "the file does not name its 13 observations: their order is taken to be position_error_x",
    ):
        assert any(note.startswith(beginning) for note in notes)


def test_a_channel_that_the_normalizer_has_not_seen_change_is_named() -> None:
    """A deviation of 1e-6 makes of 0.001 the largest input."""
    (golden,) = (each for each in GOLDENS if each.normalizer)
    imported = read_policy(golden.request())
    first, *others = imported.policy.stages
    assert isinstance(first, Normalize)
    contract = imported.target.contract
    assert not any("hardly seen" in note for note in imported.notes)
    inverse_std = first.inverse_std.copy()
    inverse_std[1] = 1e6
    stages = (Normalize(first.mean, inverse_std), *others)
    policy = dataclasses.replace(imported.policy, stages=stages)
    (note,) = proof.losses(policy, contract, [])
    assert note.startswith(f"the normalizer has hardly seen {contract.observations[1].name} change")


def test_a_policy_of_masks_in_a_place_without_them_is_named() -> None:
    policy = read_policy(GOLDENS[0].request()).policy
    contract = target_of_contract("pendulum").contract
    assert proof.losses(policy, contract, []) == []
    (note,) = proof.losses(dataclasses.replace(policy, asks_for_masks=True), contract, [])
    assert note.startswith(
        "it was trained with masks (MaskablePPO), and no observation here is one"
    )


# -- what is no policy -----------------------------------------------------------------------------


def archive(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"x")


def read(path: Path) -> ForeignPolicy:
    return read_foreign(path, content_of(path), Given())


OTHERS: dict[str, tuple[bytes | tuple[str, ...], str]] = {
    "m.h5": (b"\x89HDF\r\n\x1a\n", "a Keras model in HDF5: export the model to ONNX"),
    "m.tflite": (b"\x1c\0\0\0TFL3", "a TensorFlow Lite model: export the model to ONNX"),
    "m.npy": (b"\x93NUMPY\1\0", "a NumPy array: save the weights as a table"),
    "m.pkl": (b"\x80\x04N.", "a pickle, whose code would have to be executed: save the module's"),
    "m.keras": (("metadata.json", "config.json"), "a Keras model: export the model to ONNX"),
    "m.npz": (("a.npy", "b.npy"), "NumPy arrays without an order: save the weights"),
    "m.pt2": (("m/models/model.json",), "a torch.export program: save the module's state_dict"),
    "m.bin": (b"what", "its format is not supported; supported are the .zip of Stable-Baselines3"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_policy_is_named_with_the_way_on(name: str, tmp_path: Path) -> None:
    content, sentence = OTHERS[name]
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        archive(path, *content)
    with pytest.raises(DamagedFileError) as refused:
        read(path)
    assert sentence in str(refused.value)


class Module:
    """As torch.save(policy) writes it."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = {}


def test_a_whole_module_is_named_with_the_way_on(tmp_path: Path) -> None:
    path = tmp_path / "policy.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("policy/data.pkl", pickle.dumps(Module(), 2))
    with pytest.raises(
        DamagedFileError, match=r"a whole module, .*: save its state_dict\(\) where"
    ):
        read(path)


def test_a_folder_and_a_program_name_the_file_that_is_read(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match="is a folder, and no file in it is a policy's"):
        read(tmp_path)
    (tmp_path / "policy.onnx").write_bytes(b"")
    with pytest.raises(DamagedFileError, match=r'is a folder: import the policy in it, "policy'):
        read(tmp_path)
    program = tmp_path / "policy.pt"
    archive(program, "policy/data.pkl", "policy/constants.pkl")
    with pytest.raises(DamagedFileError, match=r'TorchScript program: .*; "policy\.onnx" be'):
        read(program)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(DamagedFileError, match="it is a TensorFlow SavedModel: export the model"):
        read(tmp_path)
    with pytest.raises(DamagedFileError, match=r"a zip archive: give what VecNormalize\.save"):
        read_normalizer(program, program.read_bytes())

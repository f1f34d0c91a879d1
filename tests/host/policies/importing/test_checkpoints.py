"""Files that other libraries wrote (tests/goldens/foreign): the image gives their actions."""

from __future__ import annotations

import numpy as np
import pytest

from foreign_files import CHOICES, GOLDENS, RECURRENT, Golden, GoldenChoices
from policy_samples import sample_images
from rltools_host.build import tools
from rltools_host.policies.contract import output_dim
from rltools_host.policies.image import parse_policy
from rltools_host.policies.image_writing import sampled
from rltools_host.policies.importing.onnx_files import GROUP, policy_in
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.policies.importing.proof import (
    EPISODE_STEPS,
    LARGEST_DIFFERENCE,
    SAMPLES,
    image_of,
    normalized_stages,
    ranges_of,
)
from rltools_host.policies.importing.run import read_policy
from rltools_host.policies.importing.sbx import jax_layers
from rltools_host.policies.importing.target import Target
from rltools_host.policies.onnx_model import encode_onnx


def needs_onnx(file: str) -> None:
    if file.endswith((".onnx", ".yaml")) and not tools.group_is_installed(GROUP):
        pytest.skip(f"the group {GROUP} of packages is not installed")


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.file)
def test_the_image_gives_the_librarys_actions(golden: Golden) -> None:
    needs_onnx(golden.file)
    imported = read_policy(golden.request())
    assert imported.policy.library == golden.library
    assert imported.image.shape == golden.shape
    contract = imported.target.contract
    actions = np.load(golden.recorded).astype(float)
    assert actions.shape == (SAMPLES, len(contract.actions))
    low, high = ranges_of(contract.actions)
    given = imported.image.evaluate(sampled(contract, SAMPLES)).astype(float)
    difference = np.abs(given - actions) / ((high - low) / 2)
    assert difference.max() <= LARGEST_DIFFERENCE
    # Of every action there are some within the range: a saturated one would prove little.
    assert ((actions > low) & (actions < high)).mean(axis=0).min() > 0.2
    parse_policy(imported.image.data).verify()


@pytest.mark.parametrize("golden", RECURRENT, ids=lambda golden: golden.file)
def test_the_image_gives_the_librarys_actions_in_time(golden: Golden) -> None:
    imported = read_policy(golden.request())
    assert imported.policy.library == golden.library
    assert imported.image.shape == golden.shape
    (proof,) = imported.proofs
    assert (proof.count, proof.episodes) == (SAMPLES, SAMPLES // EPISODE_STEPS)
    contract = imported.target.contract
    observations = sampled(contract, SAMPLES).reshape(-1, EPISODE_STEPS, len(contract.observations))
    actions = np.load(golden.recorded).reshape(-1, EPISODE_STEPS, len(contract.actions))
    low, high = ranges_of(contract.actions)
    states = imported.image.runner.begin(len(observations))
    for seen, expected in zip(observations.swapaxes(0, 1), actions.swapaxes(0, 1), strict=True):
        given = imported.image.runner.run(seen, states)[1].astype(float)
        assert (np.abs(given - expected) / ((high - low) / 2)).max() <= LARGEST_DIFFERENCE
    assert ((actions > low) & (actions < high)).mean(axis=(0, 1)).min() > 0.2
    # What was observed before counts.
    first = imported.image.evaluate(observations[:, -1])
    assert (np.abs(first - actions[:, -1]) / (high - low)).max() > 1e-3
    parse_policy(imported.image.data).verify()


@pytest.mark.parametrize("golden", CHOICES, ids=lambda golden: golden.file)
def test_the_image_gives_the_librarys_outputs_and_choices(golden: GoldenChoices) -> None:
    needs_onnx(golden.file)
    imported = read_policy(golden.request())
    assert imported.policy.library == golden.library
    assert imported.image.shape == golden.shape
    contract = imported.target.contract
    count = len(contract.actions)
    recorded = np.load(golden.recorded)
    assert recorded.shape == (SAMPLES, count + output_dim(contract.actions))
    observations = sampled(contract, SAMPLES)
    outputs = imported.image.output(observations)
    assert np.abs(outputs - recorded[:, count:]).max() <= LARGEST_DIFFERENCE
    assert (imported.image.evaluate(observations) == recorded[:, :count]).all()
    for chosen in recorded[:, :count].T:  # one that is always the same would prove little
        assert (np.unique(chosen, return_counts=True)[1] >= SAMPLES / 10).sum() > 1
    assert all(proof.same_choices == SAMPLES for proof in imported.proofs)
    assert imported.proofs[0].line().endswith(", 1,000 choices the same")
    parse_policy(imported.image.data).verify()


@pytest.mark.parametrize(
    ("names", "last"),
    [(("Dense_0", "LayerNorm_0"), 1), (("Dense_1", "Dense_2"), 1), (("Dense_0",), 2), ((), 1)],
)
def test_other_layers_of_jax_than_dense_ones_are_refused(names: tuple[str, ...], last: int) -> None:
    table = {name: {"kernel": np.eye(2), "bias": np.zeros(2)} for name in (*names, "log_std")}
    with pytest.raises(UnreadableError, match=r"^its actor has layers other than dense ones"):
        jax_layers({"params": table}, "tanh", "identity", last)


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "elu", "tanh", "pendulum"])
def test_what_is_exported_as_onnx_comes_back(name: str) -> None:
    """But for rounding: normalizer and ranges are in the model."""
    needs_onnx(".onnx")
    image = parse_policy(sample_images()[name])
    policy = policy_in(encode_onnx(image))
    assert policy.is_normalized is False or image.layers[-1].activation == "tanh"
    target = Target(image.contract)
    stages = normalized_stages(policy, target.contract, None)
    back = image_of(stages, target, policy, "back", image.state_sha256)
    assert back.shape == image.shape
    assert [layer.activation for layer in back.layers] == [
        layer.activation for layer in image.layers
    ]
    np.testing.assert_allclose(
        np.clip(back.output(sampled(target.contract, 100)), -1, 1),
        np.clip(image.output(sampled(target.contract, 100)), -1, 1),
        atol=1e-6,
    )

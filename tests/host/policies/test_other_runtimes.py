"""What another runtime computes of a policy: its rounding is told from a fault, for each export of
each shipped experiment."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beside_core import require_the_cores_bits
from foreign_files import needs_onnx
from rltools_host.build.description import Channel
from rltools_host.build.experiments import list_experiments
from rltools_host.commands.export import run as export_run
from rltools_host.errors import UsageError
from rltools_host.policies import onnx_model
from rltools_host.policies.contract import Contract, Layer, choices_of, masks_of
from rltools_host.policies.double_precision import allowed
from rltools_host.policies.export import FORMATS
from rltools_host.policies.folders import FOLDERS
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.policies.image import PolicyImage, parse_policy, read_run_policy
from rltools_host.policies.image_writing import Network, Origin, sampled, write_image
from training_calls import train_here, train_task

IN_NUMPY = {"relu": lambda x: np.maximum(x, np.float32(0)), "tanh": np.tanh}


def drawn_image(reach: float, *widths: int, flipped: tuple[int, int, int] | None = None):  # type: ignore[no-untyped-def]
    """A network with weights drawn for observations of that reach; flipped: the layer and place of
    a weight that has the other sign."""
    draws = np.random.default_rng(3)
    layers = []
    for index, (taken, given) in enumerate(pairwise(widths)):
        weights = draws.normal(0, 1.4 / np.sqrt(taken), (taken, given))
        weights[draws.random(weights.shape) < 0.02] = 0
        bias = draws.normal(0, 0.1, given)
        if flipped is not None and flipped[0] == index:
            weights[flipped[1:]] *= -1
        layers.append(Layer("relu", weights.astype("f4"), bias.astype("f4")))
    layers[0] = replace(layers[0], weights=layers[0].weights / np.float32(reach / 3))
    layers[-1] = replace(layers[-1], activation="tanh")
    observations = tuple(Channel(f"o{i}", "deg", -reach, reach) for i in range(widths[0]))
    actions = tuple(Channel(f"a{i}", "deg", -20, 30) for i in range(widths[-1]))
    contract = Contract(observations, actions, 20_000)
    rows = sampled(contract, 8)
    origin = Origin("drawn", "Drawn", 1, 1, "00" * 32)
    return parse_policy(write_image(Network(None, layers), contract, origin, rows))


def in_single(image: PolicyImage, observations: np.ndarray) -> np.ndarray:
    """Actions from -1 to 1, by NumPy's products in single precision."""
    x = observations
    for layer in image.layers:
        x = IN_NUMPY[layer.activation](x @ layer.weights + layer.bias)
    return x.astype(float)


@pytest.mark.parametrize(
    ("reach", "widths"), [(180, (9, 64, 64, 4)), (3, (17, 256, 256, 17)), (40, (348, 64, 6))]
)
def test_rounding_is_allowed_and_one_flipped_weight_is_not(
    reach: float, widths: tuple[int, ...]
) -> None:
    image = drawn_image(reach, *widths)
    observations = onnx_model.sampled_observations(image)
    limits = allowed(image, observations, image.runner.begin(len(observations))).actions
    outputs = image.output(observations)
    difference = np.abs(in_single(image, observations) - outputs)
    assert (difference <= limits).all()
    assert difference.max() > 2e-7  # there is rounding
    draws = np.random.default_rng(4)
    for _ in range(12):
        layer = draws.integers(len(image.layers))
        place = tuple(draws.integers(image.layers[layer].weights.shape))
        if image.layers[layer].weights[place] != 0:
            wrong = drawn_image(reach, *widths, flipped=(layer, *place))
            assert (np.abs(wrong.output(observations) - outputs) > limits).any(), (layer, place)


def require_each_export(run: Path, folder: Path) -> None:
    """All formats, each checked by the command; of forbidden choices those which have them. The
    runtime in C, which some of them carry, computes the core's bits."""
    image = read_run_policy(str(run))
    require_the_cores_bits({"policy": image.data}, folder)
    has_masks = any(mask is not None for mask in masks_of(image.observations, image.actions))
    for to in (*FORMATS, *FRAMEWORK_FORMATS, *FOLDERS, *FRAMEWORK_FOLDERS):
        if has_masks and to in ("onnx", "pytorch"):
            with pytest.raises(UsageError, match="forbid choices"):
                export_run(str(run), to, folder)
            continue
        written = export_run(str(run), to, folder)
        assert written.is_dir() if to in (*FOLDERS, *FRAMEWORK_FOLDERS) else written.is_file()


SHORTER = {"foundation-quadrotor": ("teacher_steps=50000",)}  # of 30 million


# A recurrent one; the task below chooses. The others with --slow, a minute each and more.
QUICK = ("pendulum-ppo-masked",)


def quick_or_slow(*values: str, quick: bool) -> Any:
    return pytest.param(*values, marks=() if quick else pytest.mark.slow)


@needs_onnx
@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "experiment", [quick_or_slow(name, quick=name in QUICK) for name in list_experiments()]
)
def test_every_export_of_a_shipped_experiment(experiment: str, tmp_path: Path) -> None:
    settings = SHORTER.get(experiment, ())
    run = tmp_path / "run"
    train_here(experiment, "host", steps=300, settings=settings, out=run, tensorboard=False)
    require_each_export(run, tmp_path)


@needs_onnx
@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("task", "algorithm"),
    [
        quick_or_slow("gym:HalfCheetah-v5", "sac", quick=False),
        quick_or_slow("gym:Hopper-v5", "td3", quick=False),
        quick_or_slow("gym:Humanoid-v5", "ppo", quick=False),
        quick_or_slow("gym:Pendulum-v1", "sac", quick=False),
        quick_or_slow("gym:CartPole-v1", "dqn", quick=True),
    ],
)
def test_every_export_of_a_task_of_gymnasium(task: str, algorithm: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_task(task, algorithm=algorithm, steps=600, out=run, tensorboard=False)
    image = read_run_policy(str(run))
    assert bool(choices_of(image.actions)) == (algorithm == "dqn")
    require_each_export(run, tmp_path)

"""What a foreign policy may mean otherwise, seeded into one that flies a quadrotor, is found and
named by flying."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from foreign_files import FOLDER
from rltools_host.commands import cli
from rltools_host.policies.frameworks import safetensors_file
from rltools_host.policies.image import read_policy, read_run_policy
from rltools_host.policies.image_writing import sampled
from rltools_host.policies.importing.corrections import (
    Correction,
    blocks_of,
    corrected,
    corrections_of,
    known_corrections,
)
from rltools_host.policies.importing.faults import Finding, Search
from rltools_host.policies.importing.network import (
    Activate,
    Dense,
    ForeignPolicy,
    Normalize,
    Stage,
    run,
)
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.policies.importing.proof import image_of, prove
from rltools_host.policies.importing.state_dicts import standardized
from rltools_host.policies.importing.target import Target, target_of_environment

PARTS = 4  # of which each is a test


@cache
def pilot() -> tuple[ForeignPolicy, Target]:
    """A policy that was trained by PPO on the quadrotor, as if another library had trained it."""
    image = read_policy(FOLDER / "quadrotor.rltp")
    assert image.normalizer is not None
    mean, inverse_std = (values.astype(float) for values in image.normalizer)
    stages: list[Stage] = [Normalize(mean, inverse_std)]
    for layer in image.layers:
        stages.append(Dense(layer.weights.astype(float), layer.bias.astype(float)))
        stages.append(Activate(layer.activation))
    policy = ForeignPolicy("a library", tuple(stages), is_normalized=True, algorithm="ppo")
    return policy, target_of_environment("Quadrotor", policy)


def known() -> dict[str, Correction]:
    return {each.word: each for each in known_corrections(pilot()[1].contract)}


def inverse(each: Correction) -> Correction:
    """What takes it back."""
    source, scale, offset = np.empty_like(each.source), each.scale.copy(), each.offset.copy()
    source[each.source] = np.arange(source.size)
    scale[each.source] = 1 / each.scale
    offset[each.source] = -each.offset / each.scale
    return dataclasses.replace(each, source=source, scale=scale, offset=offset)


def found(stages: list[Stage], solved_return: float | None = None) -> Finding:
    """What is found in a task that states the return at which it counts as solved, or none."""
    policy, target = pilot()
    assert target.task is not None
    task = msgspec.structs.replace(target.task, solved_return=solved_return)
    stating = dataclasses.replace(target, task=task)
    return Search(image_of(stages, target, policy, "pilot", "0" * 64), stating).run()


@cache
def sound_return() -> float:
    return float(found(list(pilot()[0].stages)).returns.mean())


def test_a_sound_policy_has_no_fault() -> None:
    finding = found(list(pilot()[0].stages))
    assert finding.fault is None
    assert not finding.is_bad
    assert finding.returns.mean() > finding.idle + 20
    assert len(finding.lines("x")) == 1


class InAnotherFrame:
    """An image that is to be given a vector in another frame, by a turn of Search's."""

    def __init__(self, image: Any, block: list[int], inverse: bool) -> None:
        self._runner, self.normalizer = image.runner, image.normalizer
        self.runner, self.block, self.inverse = self, block, inverse

    def begin(self, count: int) -> Any:
        return self._runner.begin(count)

    def run(self, seen: Any, states: Any) -> Any:
        # The quaternion, w first, turns the body's vectors into the world's.
        given, block = np.array(seen, np.float32), self.block
        w, axis, vector = seen[:, 6:7], seen[:, 7:10], seen[:, block]
        axis = -axis if self.inverse else axis
        twice = 2 * np.cross(axis, vector)
        given[:, block] = vector + w * twice + np.cross(axis, twice)
        return self._runner.run(given, states)


def name_frame(name: str, frame: str) -> None:
    """The policy wants the vector as it is, and is given it so only from the other frame."""
    policy, target = pilot()
    image = image_of(list(policy.stages), target, policy, "pilot", "0" * 64)
    block = blocks_of(target.contract.observations)[name]
    turned: Any = InAnotherFrame(image, block, inverse=frame == "world's")
    finding = Search(turned, target).run()
    assert finding.fault is not None, name
    assert finding.fault.meaning == f"its {name} is in the {frame} frame"
    assert finding.restored > 0.9 * sound_return()


def name_correction(each: Correction) -> None:
    """The policy means it so; with that, or what is the same, it flies as before."""
    finding = found(corrected(pilot()[0].stages, [inverse(each)]))
    assert finding.fault is not None, each.word
    assert finding.restored > 0.9 * sound_return(), each.word
    named = finding.fault.correction
    assert named is not None, (each.word, finding.fault.meaning)
    same = [getattr(named, part) for part in ("source", "scale", "offset")]
    assert named.of_actions == each.of_actions, (each.word, named.word)
    is_same = all(
        np.allclose(ours, getattr(each, part), rtol=1e-3)
        for part, ours in zip(("source", "scale", "offset"), same, strict=True)
    )
    # The vehicle has two mirrors: an order of its rotors may be as good in one of them.
    assert is_same or finding.restored > 0.95 * sound_return(), (each.word, named.word)


def name_missing_normalizer() -> None:
    finding = found(list(pilot()[0].stages[1:]))
    assert finding.fault is None
    assert "if the policy was trained with one, that is missing" in finding.lines("x")[1]


def test_a_normalizer_that_has_seen_nothing_is_refused() -> None:
    with pytest.raises(UnreadableError, match="has seen nothing"):
        standardized(np.zeros(13), np.ones(13), 5.0)


def kind_of(word: str) -> str:
    """Of a correction: `position_error_x:negated` is as `position_error_y:negated`, and one
    permutation of something is as another."""
    of, _, how = word.partition(":")
    is_permutation = of == "order" or re.fullmatch(r"[xyz]{3}|\d(,\d)+", how)
    return f"{re.sub('_[wxyz]$', '_one', of)}:{'another order' if is_permutation else how}"


FRAMES = [
    (name, frame)
    for name in ("position_error", "velocity_error", "angular_velocity")
    for frame in ("body's", "world's")
]


def seeded_mistakes() -> Iterator[Callable[[], None]]:
    """One of each kind."""
    kinds: dict[str, list[Callable[[], None]]] = {}
    for word, each in known().items():
        kinds.setdefault(kind_of(word), []).append(partial(name_correction, each))
    kinds["a frame"] = [partial(name_frame, *each) for each in FRAMES]
    kinds["no normalizer"] = [name_missing_normalizer]
    assert len(kinds) > 22
    draw = random.Random(7)
    for kind in kinds.values():
        yield draw.choice(kind)


@pytest.mark.all
@pytest.mark.parametrize("part", range(PARTS))
def test_a_mistake_of_each_kind_is_found(part: int) -> None:
    for check in list(seeded_mistakes())[part::PARTS]:
        check()


@pytest.mark.parametrize(
    "word", ["attitude:xyzw", pytest.param("actions:3,2,1,0", marks=pytest.mark.all)]
)
def test_a_mistake_is_found_and_its_remedy_is_taken(word: str) -> None:
    policy, target = pilot()
    mistaken = corrected(policy.stages, [inverse(known()[word])])
    finding = found(mistaken)
    assert finding.fault is not None
    assert finding.fault.remedy == f"import it again with --correct {word}"
    corrections = corrections_of([word], target.contract)
    restored = corrected(mistaken, corrections)
    seen = sampled(target.contract, 200).astype(float)
    np.testing.assert_allclose(
        np.clip(run(restored, seen), -1, 1), np.clip(run(policy.stages, seen), -1, 1), atol=1e-9
    )
    prove(image_of(restored, target, policy, "pilot", "0" * 64), restored)


def test_no_fault_is_named_where_all_is_far_from_what_the_task_asks() -> None:
    """A policy of Hopper-v5 that was trained for 10,000 steps had 375 of 3,800, and 645 with its
    actions from 0 to 1, which was called its fault."""
    mistaken = corrected(pilot()[0].stages, [inverse(known()["attitude:xyzw"])])
    assert found(mistaken, solved_return=sound_return()).fault is not None
    assert found(mistaken, solved_return=3 * sound_return()).fault is None


@pytest.mark.all
def test_the_command_names_a_fault_and_its_remedy_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file whose first layer takes velocity before position, and is given position first."""
    policy, target = pilot()
    normalize, first, *rest = policy.stages
    assert isinstance(normalize, Normalize)
    assert isinstance(first, Dense)
    scaled = normalize.inverse_std[:, None] * first.weights
    swapped = known()["order:velocity_error,position_error,attitude,angular_velocity"]
    front = Dense(scaled[swapped.source], first.bias - normalize.mean @ scaled)
    values = {}
    for index, layer in enumerate((front, *(each for each in rest if isinstance(each, Dense)))):
        values[f"{2 * index}.weight"] = np.ascontiguousarray(layer.weights.T, "<f4")
        values[f"{2 * index}.bias"] = layer.bias.astype("<f4")
    file = tmp_path / "pilot.safetensors"
    file.write_bytes(safetensors_file(values, {}))
    hidden, last = (stage.name for stage in (rest[0], rest[-1]) if isinstance(stage, Activate))
    words = ["import", str(file), "--environment", "Quadrotor", "--activation", hidden]
    words += ["--output-activation", last, "--actions", "scaled"]
    assert cli.run([*words, "--out", str(tmp_path / "bad")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"likely fault, of \d+ that were tried: its observations come in", printed)
    remedy = re.search(r"return is (\S+): import it again with (--correct) (\S+)", printed)
    assert remedy is not None
    restored, *correct = remedy.groups()
    assert correct[1] == swapped.word
    assert cli.run([*words, *correct, "--out", str(tmp_path / "good"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fault"] is None
    assert document["return_mean"] == pytest.approx(float(restored), abs=0.06)
    assert document["return_mean"] > 0.9 * sound_return()
    seen = sampled(target.contract, 100)
    given = read_run_policy(tmp_path / "good").output(seen)
    expected = np.clip(run(policy.stages, seen.astype(float)), -1, 1)
    np.testing.assert_allclose(np.clip(given, -1, 1), expected, atol=2e-6)

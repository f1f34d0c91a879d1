"""Each mistake that an environment in C++ can make is found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from foreign_runs import pendulum_task
from programs import output_of
from rltools_host.build.boards import load_board
from rltools_host.build.description import Channel
from rltools_host.checks import compiled
from rltools_host.checks.findings import FAULT, CompiledRequest, Examination, Finding, Learning
from rltools_host.checks.memory import (
    SCRATCH,
    SLOT,
    fits,
    parts_of,
    policy_fits,
    policy_sizes,
    with_code,
)
from rltools_host.checks.process import examine
from rltools_host.environments.environment_server import LIMIT_VARIABLE, PlayState
from rltools_host.environments.library import Library, experiment_library, library_at
from rltools_host.tree import TREE

VARIABLE = "RLT_TEST_FAULT"
HEADER = Path(__file__).parent / "faulty.h"
# The mistake, the check that finds it, words of the sentence, words of the remedy.
FAULTS = (
    ("unwritten", "unwritten-observation", "observe() does not write speed", "every element"),
    ("nan", "finite", "place was nan after step 6, from place_m=", "bound the state"),
    ("nan-reward", "finite", "the reward was nan after step 8, from place_m=", "divide"),
    ("range", "range", "place left its range -3 to 3 m in ", "widen the range"),
    ("deterministic", "deterministic", "led to other episodes, from reset() on", "RandomStream"),
    ("hidden-state", "hidden-state", "resumed from its State differs", "list in State"),
    ("hidden-state", "influence", "influence each other", "keep in State"),
    ("incomplete-reset", "incomplete-reset", "reset() leaves speed_m_s as", "set every field"),
    ("idle-action", "idle-action", "brake changes neither", "leave it out"),
    ("terminal-reset", "reset", "100 % of the episodes terminated in their first", "not terminal"),
    ("time-limit", "time-limit", "episodes terminated after 25 steps", "set kEpisodeSteps = 25"),
    ("constant-reward", "constant-reward", "the reward was 0 in each of 2,560 steps", "progress"),
)
ADVICE = (
    ("same-beginning", "same-beginning", "begins with the same observation", "draw the first"),
    ("short", "short-episodes", "last 2.0 steps", "begin nearer"),
    ("large-reward", "reward-scale", "critics must learn values of about", "multiply the reward"),
    ("small-reward", "reward-scale", "critics must learn values of about", "multiply the reward"),
    ("constant-observation", "constant-observation", "speed never changed (first: 1)", "leave out"),
    ("large-observation", "observation-scale", "place is too large", "multiply place by 0.00"),
    ("small-observation", "observation-scale", "speed is too small", "multiply speed by 1"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled as for this machine, but for its optimization."""
    library = tmp_path_factory.mktemp("faulty") / "libfaulty.so"
    output_of(
        *("g++", "-shared", "-fPIC", "-std=c++17", "-O1", "-pthread", "-march=native"),
        *load_board("host").flags,
        f"-I{TREE.include}",
        f"-I{HEADER.parent}",
        '-DRLT_EXPERIMENT_HEADER="faulty.h"',
        "-DRLT_EXPERIMENT=FaultyTd3",
        TREE.root / "host" / "native" / "environment_library.cpp",
        "-o",
        library,
    )
    return library


@pytest.fixture(scope="module")
def library(path: Path) -> Library:
    return library_at(path)


def examined(library: Library, fault: str, monkeypatch: pytest.MonkeyPatch) -> Examination:
    monkeypatch.setenv(VARIABLE, fault)
    return compiled.examine(library, {}, PlayState())


def named(found: Examination, check: str) -> Finding:
    (finding,) = [each for each in found.findings if each.check == check]
    return finding


def test_a_good_environment_has_nothing_to_mend(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = examined(library, "", monkeypatch)
    assert found.findings == []
    assert len(found.passed) == 10
    assert found.figures.steps == 2560
    assert found.figures.episode_steps_mean == 40
    assert found.figures.steps_per_s > 1000
    assert found.figures.hidden == [16, 16]


def test_an_action_that_is_alike_at_both_ends_counts(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = examined(library, "even-action", monkeypatch)
    assert "idle-action" not in [each.check for each in found.findings]
    assert "every action counts" in found.passed


@pytest.mark.parametrize(("fault", "check", "what", "remedy"), [*FAULTS, *ADVICE])
def test_a_mistake_is_found(
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    check: str,
    what: str,
    remedy: str,
) -> None:
    found = examined(library, fault, monkeypatch)
    of_fault = {(each[0], each[1]) for each in (*FAULTS, *ADVICE)}
    finding = named(found, check)
    assert what in finding.what
    assert remedy in finding.remedy
    assert (finding.level == FAULT) == ((fault, check, what, remedy) in FAULTS)
    others = {each.check for each in found.findings if (fault, each.check) not in of_fault}
    # What follows from the mistake itself: a point that never moves far, or ends at once.
    assert others <= CONSEQUENCES.get(fault, set())


CONSEQUENCES = {
    "terminal-reset": {"short-episodes", "idle-action", "same-beginning", "observation-scale"},
    "short": {"time-limit"},
    "range": {"observation-scale"},
    "large-observation": {"range"},
}


def test_gamma_and_steps_are_held_against_the_episodes(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "")
    learning = Learning(gamma=0.1, steps=300)
    found = compiled.Examiner(library, learning, PlayState()).run()
    assert {each.check for each in found.findings} >= {"few-episodes"}
    assert "a run of 300 steps has 7.5 episodes" in named(found, "few-episodes").what
    assert "--steps 4000" in named(found, "few-episodes").remedy
    assert "horizon" not in {each.check for each in found.findings}
    monkeypatch.setattr(library, "episode_steps", 400)
    further = compiled.Examiner(library, Learning(gamma=0.9, steps=8000), PlayState()).run()
    assert "horizon" not in {each.check for each in further.findings}, "it looks 10 steps ahead"
    found = compiled.Examiner(library, learning, PlayState()).run()
    finding = named(found, "horizon")
    assert finding.what == (
        "gamma=0.1 looks 1.11 steps ahead, 0.0222 s, and episodes last 400 steps, 8 s"
    )
    assert "--set gamma=0.975" in finding.remedy


@pytest.mark.parametrize(
    ("fault", "check", "what"),
    [
        ("crash", "crashes", "was lost in step: it was ended by SIGSEGV"),
        ("hang", "hangs", "faulty has not returned from step for 1 s"),
    ],
)
def test_what_does_not_return_is_a_finding(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, check: str, what: str
) -> None:
    monkeypatch.setenv(VARIABLE, fault)
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    found = examine("faulty", CompiledRequest("faulty", path))
    assert what in named(found, check).what
    assert found.faults == 1


# -- memory ----------------------------------------------------------------------------------------


def test_memory_is_that_of_a_board() -> None:
    """Linked, pendulum-td3 on a Cortex-M7 has 431,568 and 229,556 bytes."""
    compiled_sizes = {"learner": 218112, "replay": 211080, "scratch": 74944, "policy": 18476}
    (sizes,) = with_code("TD3", [{"width": 0, **compiled_sizes}])
    parts = parts_of(load_board("qemu-cortex-m7"), sizes)
    assert 431_824 <= parts["RAM1"] * 524_288 <= 431_824 + 12 * 1024
    assert parts["RAM2"] * 524_288 == 229_556
    assert parts_of(load_board("teensy41"), sizes) == parts
    # Both give code whole banks of 32 KiB.
    more = parts_of(load_board("teensy41"), {**sizes, "code": sizes["code"] + 1})
    assert round((more["RAM1"] - parts["RAM1"]) * 524_288) == 32 * 1024

    wide = {**sizes, "width": 96, "learner": 474_112, "scratch": 133_184, "policy": 39_724}
    narrow = {**sizes, "width": 64}
    found = {each.board: each for each in fits("pendulum-td3", [wide, narrow, wide])}
    assert not found["teensy41"].fits
    assert found["teensy41"].widest == 64
    assert "host" not in found
    assert "qemu-stm32f405" not in found
    assert fits("quadrotor-sac", [wide, narrow]) == []


def test_memory_of_a_tasks_policy() -> None:
    """The image of pendulum-td3 has 18,476 bytes with two layers of 64, and 39,724 with 96."""
    sizes = policy_sizes(pendulum_task("gym:Pendulum-v1"))
    assert sizes[0] == {"width": 0, "policy": 18_476, "scratch_floats": 130}
    assert [each["policy"] for each in sizes if each["width"] in (64, 96)] == [18_476, 39_724]
    found = {each.board: each for each in policy_fits(sizes)}
    assert {"teensy41", "esp32c3", "qemu-stm32f405"} <= set(found)
    assert not {"host", "host-threads"} & set(found)
    assert found["teensy41"].parts == {SLOT: 18_476 / 61_440, SCRATCH: 130 / 1024}
    assert [found[name].widest for name in ("teensy41", "qemu-cortex-m7")] == [96, 80]
    # XQC's has a normalizer: three means and three inverse deviations.
    xqc = policy_sizes(structs.replace(pendulum_task("gym:Pendulum-v1"), algorithm="xqc"))
    assert xqc[0]["policy"] == 18_476 + 2 * 3 * 4
    wide = structs.replace(pendulum_task("gym:Pendulum-v1"), hidden=(600, 16))
    (teensy,) = [each for each in policy_fits(policy_sizes(wide)) if each.board == "teensy41"]
    assert teensy.parts[SLOT] < 1 < teensy.parts[SCRATCH]
    assert not teensy.fits


@pytest.mark.all
@pytest.mark.parametrize("experiment", ["cartpole-ppo", "cartpole-dqn"])
def test_a_tasks_image_is_as_large_as_the_cores(experiment: str) -> None:
    """With PPO's normalizer, and with the choices' names."""
    library = experiment_library(experiment)
    described = library_at(library).experiment
    task = structs.replace(
        pendulum_task("gym:CartPole-v1"),
        algorithm=experiment.rpartition("-")[2],
        hidden=tuple(described["hidden"]),
        observation_shape=(4,),
        observations=tuple(Channel(f"o{i}", "m", -1.0, 1.0) for i in range(4)),
        actions=(Channel("push", "left|right", 0.0, 1.0),),
    )
    ours = {each["width"]: each["policy"] for each in policy_sizes(task)}
    # DQN of a task has no normalizer: four means and four inverse deviations.
    less = 2 * 4 * 4 if experiment == "cartpole-dqn" else 0
    assert ours == {each["width"]: each["policy"] - less for each in described["bytes"]}

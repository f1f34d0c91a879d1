"""The core in WebAssembly: the bits of this machine, by fused multiply-add and exactly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from programs import in_node, output_of, require_node
from rltools_host.build import tools
from rltools_host.build.experiments import build_description, describe
from rltools_host.build.native import COMPILER_GROUP, KINDS, build_modules, module_path
from rltools_host.tree import TREE
from rltools_host.web.site import known_states

HERE = TREE.root / "tests" / "host" / "web"
CORE = TREE.root / "host" / "rltools_host" / "web" / "page" / "core.js"
TRAIN_IN_WASM = TREE.root / "benchmarks" / "programs" / "train_in_wasm.mjs"
# One with a replay buffer that is full in the end, and one with many rollouts, episodes and
# evaluations; the others begin here, for 300 steps or one rollout.
WHOLE_RUNS = ("pendulum-td3", "cartpole-ppo")
RELAXED = "--experimental-wasm-relaxed-simd"  # of node 20; later ones need no flag


@pytest.fixture(autouse=True)
def node(request: pytest.FixtureRequest) -> None:
    """What is needed; Zig's compiler is fetched for `rlt test --all`."""
    require_node()
    if request.node.get_closest_marker("all"):
        tools.ensure_group(COMPILER_GROUP)
    if not tools.group_is_installed(COMPILER_GROUP):
        pytest.skip(f"not installed (rlt doctor): Python: {COMPILER_GROUP}")


def train(experiment: str, steps: int, *flags: str) -> dict[str, Any]:
    build_modules([experiment])
    modules = [module_path(experiment, kind) for kind in ("lanes", "exact")]
    line = in_node(*flags, TRAIN_IN_WASM, CORE, *modules, steps)
    document: dict[str, Any] = json.loads(line)
    return document


def trained_here(experiment: str, steps: int, tmp_path: Path) -> str:
    """The hash of the state that this machine's own program reaches."""
    words = ("train", experiment, "--board", "host", "--steps", str(steps))
    output = output_of(TREE.root / "rlt", *words, "--out", tmp_path / experiment)
    found = re.search(r"state ([0-9a-f]{64}) verified", output)
    assert found, output
    return found[1]


def fuses() -> bool:
    """Whether node fuses here, so that there is a second way."""
    script = f"import({str(CORE)!r}).then(async c => console.log(await c.fusesMultiplyAdd()))"
    return in_node(RELAXED, "-e", script).strip() == "true"


@pytest.mark.parametrize("kind", KINDS)
def test_three_hundred_steps_of_td3_end_in_the_bits_of_every_board(kind: str) -> None:
    """The exact module is what node takes where it does not know relaxed SIMD."""
    if kind == "lanes" and not fuses():
        pytest.skip("node does not fuse relaxed SIMD's multiply-add on this processor")
    found = train("pendulum-td3", 300, *([RELAXED] if kind == "lanes" else ["--no-" + RELAXED[2:]]))
    assert found["kind"] == kind
    assert found["finished"]
    assert found["hash"] == "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
    assert found["returns"] == [pytest.approx(-1578.6, abs=0.05)]


# Spoils a number of a run's state: node SPOIL CORE.JS EXACT.WASM OFFSET VALUE
SPOILED = """
const [core, wasm, offset, value] = process.argv.slice(1);
const { Core, NOT_FINITE } = await import(core);
const run = new Core(new WebAssembly.Module((await import("node:fs")).readFileSync(wasm)));
run.exports.begin_training();
run.exports.train(20);
const before = run.stopped();
run.floats(run.exports.transfer_buffer(), 1)[0] = Number(value);
run.exports.write_state(Number(offset), 4);
const isStopped = run.exports.train(2000) === NOT_FINITE, why = run.stopped();
run.exports.begin_training();
console.log(JSON.stringify({ before, isStopped, why, after: run.stopped() }));
"""


@pytest.mark.parametrize(
    ("tensor", "value", "sentence"),
    [
        (
            "environment_state/angle_rad",
            "-1e38",
            r"a reward is not finite; state angle_rad -1e38, velocity_rad_s -?\d[0-9.]*; "
            r"action torque -?0\.\d+; fix the environment, or end its episodes "
            r"before",
        ),
        ("critic_1/0/weights", "NaN", "a loss is not finite; try a smaller learning_rate"),
    ],
)
def test_a_page_says_why_training_stopped(tensor: str, value: str, sentence: str) -> None:
    """In the words of a board."""
    build_modules(["pendulum-td3"])
    (at,) = (t.offset for t in describe("pendulum-td3").tensors if t.name == tensor)
    words = ("--input-type=module", "-e", SPOILED, CORE, module_path("pendulum-td3", "exact"))
    found = json.loads(in_node(*words, at, value))
    assert found["isStopped"]
    assert (found["before"], found["after"]) == ("", "")
    assert re.fullmatch(sentence, found["why"]), found["why"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_vectors_multiply_add_is_fused(kind: str, tmp_path: Path) -> None:
    """Also where binary64 does not settle it: in the middle between two floats, below the normal
    numbers."""
    if kind == "lanes" and not fuses():
        pytest.skip("node does not fuse relaxed SIMD's multiply-add on this processor")
    module = tmp_path / "multiply_add.wasm"
    output_of(
        *(TREE.toolchains / "zig-c++", "-target", "wasm32-freestanding", *KINDS[kind]),
        *build_description()["flags"],
        *("-nostdlib", "-isystem", TREE.root / "lib" / "freestanding", f"-I{TREE.include}"),
        *("-Wl,--no-entry", HERE / "multiply_add.cpp", "-o", module),
    )
    script = f"""
        const bytes = require("fs").readFileSync({str(module)!r});
        WebAssembly.instantiate(bytes).then(({{ instance }}) =>
          console.log(instance.exports.differences()));"""
    assert in_node(RELAXED, "-e", script).strip() == "0"


@pytest.mark.all
@pytest.mark.parametrize(
    ("experiment", "steps"),
    [
        ("pendulum-sac", 300),
        pytest.param("pendulum-ppo", 2048, marks=pytest.mark.exhaustive),  # cartpole-ppo is below
        pytest.param("cartpole-dqn", 300, marks=pytest.mark.slow),  # 12 s of the compiler
        pytest.param("pendulum-xqc", 600, marks=pytest.mark.slow),  # likewise
    ],
)
def test_other_algorithms_end_in_this_machines_bits(
    experiment: str, steps: int, tmp_path: Path
) -> None:
    expected = trained_here(experiment, steps, tmp_path)
    for flags in ([RELAXED], ["--no-" + RELAXED[2:]]):
        found = train(experiment, steps, *flags)
        assert (found["finished"], found["hash"]) == (True, expected), found["kind"]


@pytest.mark.all
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(
            state,
            id=f"{state['experiment']}-{state['steps']}",
            marks=[] if state["experiment"] in WHOLE_RUNS else pytest.mark.exhaustive,
        )
        for state in known_states()
        if state["steps"] > 300  # which runs every day
    ],
)
def test_whole_runs_end_in_the_known_states_of_devices(state: dict[str, Any]) -> None:
    found = train(state["experiment"], state["steps"], RELAXED)
    assert (found["finished"], found["hash"]) == (True, state["hash"])


@pytest.mark.all
@pytest.mark.parametrize(
    "state",
    [state for state in known_states() if state["experiment"] not in WHOLE_RUNS],
    ids=lambda state: f"{state['experiment']}-{state['steps']}",
)
def test_the_known_states_are_those_of_this_machine(state: dict[str, Any], tmp_path: Path) -> None:
    """Also of those that WebAssembly reaches in --exhaustive only."""
    assert trained_here(state["experiment"], state["steps"], tmp_path) == state["hash"]

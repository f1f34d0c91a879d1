"""An activation is a line of one list and an algorithm one header: in a copy of the tree with one
of each, the tools train, describe and export them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host.tree import TREE
from tree_copies import copy_of_tree

pytestmark = pytest.mark.all  # compiles a tree of its own

COPIED = (
    *("cmake", "boards", "toolchains", "firmware", "experiments", "lib", "host"),
    *("CMakeLists.txt", "CMakePresets.json", "LICENSE", "rlt", "rlt.toml", "integrations"),
)
INCLUDE = "lib/rltools/include/rltools"
LAST_LINE = "y <= T(-1) || y >= T(1) ? T(0) : T(1))\n"
SWISH = """ \\
  X(swish, true, x * math::sigmoid(x), \\
    math::fma(y, T(1) - math::sigmoid(x), math::sigmoid(x)))
"""
EAGER = r"""// TD3 whose actor follows each update of its critics, with lists of its own.
#pragma once

#include "rltools/rl/algorithms/td3.h"

namespace rlt {

#define RLT_EAGER_HYPERPARAMETERS(X) \
  RLT_TD3_HYPERPARAMETERS(X)         \
  X(float, eagerness, 0.25, 0, 1, "", "What is counted for each update.")

RLT_DEFINE_HYPERPARAMETERS(EagerHyperparameters, RLT_EAGER_HYPERPARAMETERS)

#define RLT_EAGER_METRICS(X) \
  RLT_TD3_METRICS(X)         \
  X(eager_sum, "Updates so far times eagerness.")

RLT_DEFINE_METRICS(EagerMetrics, RLT_EAGER_METRICS)

struct Eager : Td3 {
  static constexpr const char* kName = "Eager";
  using Metrics = EagerMetrics;
  struct TaskHyperparameters : EagerHyperparameters {
    TaskHyperparameters() { policy_delay = 1; }
  };
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      bool kept = TwinCriticsContract<E>::template check<Asserts>();
      RLT_REQUIRE((std::is_base_of_v<EagerHyperparameters, typename E::Hyperparameters>),
                  "the experiment's Hyperparameters are not EagerHyperparameters");
      return kept;
    }
  };

  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    StepReport<E> report = Td3::train_step(device, training);
    report.metrics.eager_sum = static_cast<float>(training.learner.progress.updates) *
                               training.hyperparameters.eagerness;
    return report;
  }
};

}  // namespace rlt
"""
EXPERIMENT = """#pragma once

#include "pendulum_td3.h"
#include "rltools/rl/algorithms/eager.h"

namespace rlt {

struct PendulumEager : PendulumTd3 {
  static constexpr const char* kName = "pendulum-eager";
  using Algorithm = Eager;
  using Hyperparameters = Eager::TaskHyperparameters;
  using Actor = Mlp<float, Dimensions<3, 16, 1>, Activation::swish, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<4, 16, 1>, Activation::swish, Activation::identity>;
};

}  // namespace rlt
"""
SETTINGS = ("--steps", "300", "--set", "eagerness=0.5", "--set", "report_every=100")
COMMAND = """import sys
sys.path.insert(0, sys.argv.pop(1))
from rltools_host.commands.cli import main
main()
"""
ASKED = """import json, sys
sys.path.insert(0, sys.argv[1])
from rltools_host.build.catalog import algorithms
from rltools_host.build.experiments import describe
from rltools_host.environments.task import TaskRequest
experiment = describe("pendulum-eager")
networks = experiment.document["networks"]
sizes = TaskRequest("gym:X", algorithm="eager").checked_sizes()
print(json.dumps([
    algorithms()["eager"].struct, sizes.environments, experiment.algorithm,
    networks["actor"]["activations"], networks["critic"]["activations"],
    experiment.hyperparameter("policy_delay").default]))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = copy_of_tree(tmp_path / "tree", *COPIED)
    (tree / ".venv").symlink_to(TREE.virtual_environment)
    listed = tree / INCLUDE / "nn/activation.h"
    text = listed.read_text()
    assert text.count(LAST_LINE) == 1
    listed.write_text(text.replace(LAST_LINE, LAST_LINE.rstrip("\n") + SWISH))
    (tree / INCLUDE / "rl/algorithms/eager.h").write_text(EAGER)
    (tree / "experiments/pendulum_eager.h").write_text(EXPERIMENT)
    return tree


def output_of(tree: Path, program: str, *words: str) -> str:
    command = [sys.executable, "-c", program, str(tree / "host"), *words]
    result = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr + result.stdout
    return result.stdout


def test_a_new_activation_and_a_new_algorithm_are_known_everywhere(tree: Path) -> None:
    output_of(tree, COMMAND, "train", "pendulum-eager", "--board", "host", *SETTINGS)
    stated: list[Any] = json.loads(output_of(tree, ASKED))
    assert stated == ["Eager", 1, "Eager", ["swish", "tanh"], ["swish", "identity"], 1]
    (run,) = (tree / "runs").iterdir()
    document = json.loads((run / "run.json").read_text())
    assert document["algorithm"] == "Eager"
    assert document["hyperparameters"]["eagerness"] == 0.5
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    sums = [row["eager_sum"] for row in rows if row["kind"] == "progress"]
    assert sums == [0.0, 25.25, 75.25], "the updates' mean number in 100 steps, times eagerness"
    output_of(tree, COMMAND, "export", str(run), "--to", "arduino", "--output", str(tree / "p"))
    (core,) = (tree / "p").rglob("nn/activation.h")
    assert "swish" in core.read_text()
    command = [sys.executable, "-c", COMMAND, str(tree / "host"), "export", str(run), "--to", "c"]
    refused = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert "rlt_policy.h does not compute swish: add its lines there" in refused.stderr

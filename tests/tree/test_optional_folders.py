"""Distillation, symmetry, the racing car and the foundation policy may be absent: what is left is
found, and compiles."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from include_rules import OPTIONAL_FOLDERS, includes
from rltools_host.build import tools
from rltools_host.build.experiments import struct_of
from rltools_host.tree import TREE

INCLUDE = "lib/rltools/include"
COPIED = ("lib", "experiments", "firmware", "host", "boards", "toolchains", "cmake", "rlt.toml")
CONTRACTS = ("policy/contracts/racing_car.h",)  # where boards look for theirs
LEFT = {
    *("pendulum-td3", "pendulum-sac", "pendulum-xqc", "pendulum-ppo"),
    *("cartpole-ppo", "cartpole-dqn"),
}
OF_QUADROTORS = {"quadrotor-ppo", "quadrotor-wind-ppo"}
MIRRORED = {"quadrotor-sac", "quadrotor-td3", "crazyflie-ppo"}
LISTS = """
import json
from rltools_host.build import catalog, experiments
names = [found.name for found in catalog.list_environments()]
print(json.dumps([experiments.list_experiments(), [*catalog.algorithms()], names]))
"""
LEARNS = (
    "void learn(Training<{0}>& t) {{ initialize(Generic{{}}, t); train_step(Generic{{}}, t); }}\n"
)


def without(removed: Sequence[str], folder: Path) -> Path:
    """Return a copy of the tree without these folders, and without the experiments of them."""
    listed = ["git", "-C", str(TREE.root), "ls-files", "-z", *COPIED]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (TREE.root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE.root / name, folder / name)
    for name in removed:
        shutil.rmtree(folder / INCLUDE / name)
    for contract in CONTRACTS:
        if f"rltools/rl/environments/{Path(contract).stem}/" in removed:
            (folder / INCLUDE / "rltools" / contract).unlink()
    while lacking := [
        header for header in experiments_of(folder) if lacks_a_header(header, folder)
    ]:
        for header in lacking:
            header.unlink()
    return folder


def experiments_of(tree: Path) -> list[Path]:
    return sorted((tree / "experiments").glob("*.h"))


def lacks_a_header(header: Path, tree: Path) -> bool:
    roots = (tree / INCLUDE, header.parent)
    quoted = [include.quoted for include in includes(header.read_text()) if include.quoted]
    return not all(any((root / name).is_file() for root in roots) for name in quoted)


def test_no_other_experiment_is_lost(tmp_path: Path) -> None:
    tree = without(OPTIONAL_FOLDERS, tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tree / "host"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", LISTS]
    found = subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    experiments, algorithms, environments = json.loads(found.stdout)
    assert {*LEFT, *OF_QUADROTORS} <= set(experiments)
    assert not {*MIRRORED, "pendulum-distillation", "racing-car-ppo"} & set(experiments)
    assert algorithms == ["dqn", "ppo", "sac", "td3", "xqc"]
    assert {"Pendulum-v1", "CartPole-v1", "Quadrotor", "WindyQuadrotor"} <= set(environments)
    assert not {"RacingCar", "AnyQuadrotor"} & set(environments)


@pytest.mark.parametrize(
    ("folders", "compiled"),
    [
        (OPTIONAL_FOLDERS, LEFT | OF_QUADROTORS),
        ([name for name in OPTIONAL_FOLDERS if "symmetry" not in name], MIRRORED),
    ],
    ids=["all", "all_but_symmetry"],
)
@pytest.mark.all
def test_what_is_left_compiles(folders: Sequence[str], compiled: set[str], tmp_path: Path) -> None:
    tree = without(folders, tmp_path)
    headers = [h for h in experiments_of(tree) if h.stem.replace("_", "-") in compiled]
    assert len(headers) == len(compiled)
    program = tmp_path / "learn.cpp"
    program.write_text(
        '#include "rltools/devices/generic.h"\n'
        + "".join(f'#include "{header.name}"\n' for header in headers)
        + "namespace rlt {\n"
        + "".join(LEARNS.format(struct_of(header)) for header in headers)
        + "}  // namespace rlt\n"
    )
    folders = [f"-I{tree / folder}" for folder in (INCLUDE, "experiments")]
    command = [tools.system_tools()["g++"].path(), "-std=c++17", "-fsyntax-only", *folders]
    result = subprocess.run([*command, str(program)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    library = tree / "host/native/policy_library.cpp"
    result = subprocess.run([*command, str(library)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr

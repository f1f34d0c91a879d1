"""A project of one's own: everything is done there, from a tree that nothing writes into."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.errors import UsageError
from rltools_host.tree import MARKER, TREE, VARIABLE
from tree_copies import copy_of_tree

OWN = Path(__file__).parent / "own_project"
INSTALLED = (
    *("CMakeLists.txt", "LICENSE", "boards", "cmake", "experiments", "firmware", "lib"),
    *("toolchains", "host/native", "host/requirements", "host/rltools_host", "host/rlt"),
    "integrations/c",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a package would install: no checkout, in a user's repository, and whoever is not root
    cannot write to it."""
    repository = tmp_path_factory.mktemp("repository")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
    root = copy_of_tree(repository / "installed", *INSTALLED)
    tools.ensure_group("zig")  # for `rlt web`, which would install it from there
    (root / ".venv").symlink_to(TREE.virtual_environment)  # Optuna and ONNX are there
    subprocess.run(["chmod", "-R", "a-w", root], check=True)
    return root


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder, with when it was written and its size."""
    found = {}
    for path in (root, *root.rglob("*")):
        status = path.lstat()  # .venv is elsewhere
        found[str(path.relative_to(root))] = (status.st_mtime_ns, status.st_size)
    return found


class Project:
    """A project elsewhere, whose commands are those of a tree that is installed."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder = folder
        shutil.copytree(OWN, folder)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != VARIABLE},
            "PYTHONPATH": str(installed / "host"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TERM": "dumb",
        }

    def rlt(self, *words: str | Path, folder: Path | None = None, code: int = 0) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "rltools_host", *map(str, words)],
            env=self.environment,
            cwd=folder or self.folder,
            capture_output=True,
            text=True,
        )
        assert result.returncode == code, (words, result.stdout, result.stderr)
        return result.stderr if code else result.stdout


@pytest.mark.all
def test_a_project_elsewhere_needs_no_write_to_the_tree(installed: Path, tmp_path: Path) -> None:
    """Its experiment, on a board of its own: trained, evaluated, shown, and pushed."""
    its = Project(tmp_path / "my project", installed)
    project, rlt, environment = its.folder, its.rlt, its.environment
    before = listing(installed)

    trained = rlt("train", "mover-td3", "--board", "bench", "--steps", "1500", "--json")
    assert json.loads(trained.splitlines()[-1])["steps"] == 1500
    (run,) = (project / "runs").iterdir()
    assert list(run.glob("sources-*.tar.gz"))
    metadata = json.loads((run / "run.json").read_text())
    assert metadata["git_revision"] is None, "not that of the repository around the tree"
    evaluated = rlt("evaluate", "latest", "--episodes", "3", folder=project / "experiments")
    assert "of mover-td3 in Mover-v0" in evaluated
    rlt("report", "latest")
    assert "Mover-v0" in (run / "report.html").read_text()
    pushed = rlt("push", f"runs/{run.name}", "--board", "bench")
    assert "confirmed: active" in pushed
    assert list((project / "build" / "policies" / "bench").glob("*.bin"))
    assert sorted(path.name for path in project.iterdir()) == sorted(
        [*(path.name for path in OWN.iterdir()), "build", "runs"]
    )
    assert listing(installed) == before

    (project / MARKER).unlink()
    command = [sys.executable, "-m", "rltools_host", "report", "latest"]
    result = subprocess.run(command, env=environment, cwd=project, capture_output=True, text=True)
    assert result.returncode == UsageError.exit_code
    assert result.stderr.startswith(f"error: {project} is in no project: ")


# Of pendulum-td3 after 300 steps, on every board.
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
FOREIGN = TREE.root / "tests" / "goldens" / "foreign" / "sb3_ppo_vec_normalize"
TRAINED = ("--board", "bench", "--steps", "600")
STUDY = {
    "title": "Twin",
    "about": "Two rates.",
    "experiment": "mover-td3",
    "board": "bench",
    "steps": 600,
    "seeds": "0-1",
    "settings": {},
    "variants": [
        {"name": "usual", "label": "the usual rate", "settings": {}},
        {"name": "fast", "label": "a larger rate", "settings": {"learning_rate": 0.01}},
    ],
    "x_axis": "environment steps",
    "y_axis": "mean return",
}


@pytest.mark.all
def test_the_other_commands_work_in_a_project_elsewhere(installed: Path, tmp_path: Path) -> None:
    its = Project(tmp_path / "my project", installed)
    rlt = its.rlt
    before = listing(installed)
    rlt("train", "mover-td3", *TRAINED, "--seeds", "0-1", "--out", "runs/two")
    rlt("tune", "mover-td3", *TRAINED, "--trials", "2", "--name", "tuned")
    compared = rlt("runs", "compare", "two", "tuned", "--any", "--output", "page.html")
    assert "wrote page.html" in compared
    studies = its.folder / "experiments" / "studies"
    studies.mkdir()
    (studies / "twin.json").write_text(json.dumps(STUDY))
    assert "twin" in rlt("study")
    assert "a larger rate" in rlt("study", "twin", "--out", "runs/twin")
    assert "nothing is wrong" in rlt("check", "mover-td3")
    rlt("import", f"{FOREIGN}.zip", "--normalizer", f"{FOREIGN}.pkl", "--contract", "quadrotor")
    (imported,) = (its.folder / "runs").glob("imported-*")
    hil = rlt("hil", "--run", "two/s0", "--board", "bench", "--samples", "100", "--json")
    assert json.loads(hil.splitlines()[-1])["max_abs_diff"] == 0
    listed = rlt("runs")
    assert all(name in listed for name in ("two", "tuned", "twin", imported.name))
    rlt("runs", "rename", "two", "pair")
    rlt("runs", "delete", "pair", "--yes")
    for what in ("c", "onnx", "arduino"):
        rlt("export", "tuned/t0/s0", "--to", what, "--output", its.folder / "build" / what)
    flown = rlt("fly", imported, "--board", "host", "--seconds", "1", code=6)
    assert "the flight failed: the limit of" in flown, "it has learned nothing"
    assert listing(installed) == before


@pytest.mark.all
def test_commands_without_a_run_work_there_too(installed: Path, tmp_path: Path) -> None:
    its = Project(tmp_path / "my project", installed)
    rlt = its.rlt
    before = listing(installed)
    assert re.search(r"^bench .*\(this project's\)", rlt("doctor"), re.MULTILINE)
    rlt("new", "my-cart", "--contract")
    assert "wrote experiments/my_task.py" in rlt("new", "my-task", "--gymnasium")
    assert (its.folder / "contracts" / "my_cart.h").is_file()
    assert "bench is not flashed: train there directly" in rlt("flash", "bench", "my-cart", code=2)
    log = shutil.copy(TREE.root / "examples" / "fit" / "flight.csv", its.folder)
    drone = ("--mass", "0.0306", "--rotors", "0.028", "0.028")
    assert "wrote drone.json" in rlt("fit", log, *drone, "--out", "drone.json")
    assert json.loads((its.folder / "drone.json").read_text())
    half = its.folder / "half.csv"
    half.write_text("time_s,motor_1\n0,0.5\n0.01,0.5\n")
    assert "half.csv" in rlt("adapt", half, "--board", "host", code=5)
    assert "wrote build/web" in rlt("web", "mover-td3")
    assert "mover-td3" in (its.folder / "build" / "web" / "site.json").read_text()
    assert listing(installed) == before


@pytest.mark.all
@pytest.mark.slow
@pytest.mark.timeout(900)  # Zig compiles its C++ library first
def test_zig_in_place_of_this_machines_compiler_gives_the_same_bits(
    tmp_path: Path,
) -> None:
    """Where there is no g++: all that an experiment's run needs is compiled by Zig, anew."""
    tools.ensure_group("zig")
    its = Project(tmp_path / "my project", TREE.root)
    its.environment["RLT_CXX"] = "zig"
    words = ("--board", "host", "--steps", "300", "--json")
    document = json.loads(its.rlt("train", "pendulum-td3", *words).splitlines()[-1])
    assert document["state_sha256"] == HASH_300
    program = (its.folder / "build" / "host" / "train" / "pendulum-td3").read_bytes()
    assert b"clang version" in program, "g++ leaves its own name"

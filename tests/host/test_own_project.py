"""A project of one's own: everything is done there, from a tree that nothing writes into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.errors import UsageError
from rltools_host.project import MARKER, VARIABLE
from tree_copies import copy_of_tree

OWN = Path(__file__).parent / "own_project"
INSTALLED = (
    *("CMakeLists.txt", "LICENSE", "boards", "cmake", "experiments", "firmware", "lib"),
    *("toolchains", "host/native", "host/requirements", "host/rltools_host", "host/rlt"),
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
    subprocess.run(["chmod", "-R", "a-w", root], check=True)
    return root


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder, with when it was written and its size."""
    found = {}
    for path in (root, *root.rglob("*")):
        status = path.stat()
        found[str(path.relative_to(root))] = (status.st_mtime_ns, status.st_size)
    return found


@pytest.mark.all
def test_a_project_elsewhere_needs_no_write_to_the_tree(installed: Path, tmp_path: Path) -> None:
    """Its experiment, on a board of its own: trained, evaluated, shown, and pushed."""
    project = tmp_path / "my project"
    shutil.copytree(OWN, project)
    before = listing(installed)
    environment = {
        **{name: value for name, value in os.environ.items() if name != VARIABLE},
        "PYTHONPATH": str(installed / "host"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "dumb",
    }

    def rlt(*words: str, folder: Path = project) -> str:
        command = [sys.executable, "-m", "rltools_host", *words]
        result = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=280
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

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
    assert result.stderr == (
        f"error: {project} is in no project: rlt new --project DIR writes one, a file rlt.toml "
        "in a folder, which may be empty, makes one of it, and RLT_PROJECT names one elsewhere\n"
    )

"""Set-up that is interrupted or damaged is repeated."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.build.toolchains import GROUPS, group_note
from rltools_host.tree import TREE
from tree_copies import copy_of_tree
from waiting import wait_for

pytestmark = pytest.mark.all  # packages are installed anew

SYSTEM_PYTHON = "/usr/bin/python3"
MAIN = TREE.root / "host/rltools_host/__main__.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return new_tree(tmp_path)


def new_tree(folder: Path) -> Path:
    """A copy of the launcher and the host tools, without packages to install; prints "started"."""
    tree = copy_of_tree(folder / "tree", "rlt", "host")
    (tree / "host/requirements/lock.txt").write_text("# nothing\n")
    (tree / "host/rltools_host/__main__.py").write_text(
        "import pip, rltools_host; print('started')\n"
    )
    return tree


def start(
    tree: Path, *words: str, python: str = sys.executable, **variables: str
) -> subprocess.Popen[str]:
    """The launcher, in a process group of its own, as a terminal starts it."""
    return subprocess.Popen(
        [tree / "rlt", *words],
        env={**os.environ, "RLT_PYTHON": python, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


# -- .venv -----------------------------------------------------------------------------------------


def test_interrupted_set_up_is_repeated(tree: Path) -> None:
    """The signals come when Python is in .venv, and pip is not yet, which then installs uv."""
    uv = {"uv-1.0.data/scripts/uv": "#!/bin/sh\n"}  # nothing else is in this lock
    (tree / "host/requirements/lock.txt").write_text(add_wheel(tree.parent, "uv", **uv))
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if not shutil.which("uv", path=folder))
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tree.parent), "PATH": path}
    for number in (signal.SIGINT, signal.SIGKILL):
        interrupted = start(tree, **offline)
        wait_for(lambda: (tree / ".venv/bin/python").exists(), 60)
        os.killpg(interrupted.pid, number)
        _, stderr = interrupted.communicate(timeout=60)
        assert interrupted.returncode != 0
        assert "Traceback" not in stderr
        if number == signal.SIGINT:
            assert stderr.endswith("interrupted; the next start continues the set-up\n")
            (tree / ".venv/bin/python").unlink(missing_ok=True)  # to see it come again
        assert not (tree / ".venv/rlt-environment.txt").exists()

    again = start(tree, **offline)
    stdout, stderr = again.communicate(timeout=120)
    assert (again.returncode, stdout) == (0, "started\n"), stderr
    assert "Setting up .venv" in stderr


def test_installer_that_outlives_its_parent_keeps_the_lock(tmp_path: Path) -> None:
    """Otherwise the next start would clear .venv beneath it."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    program = (
        "import os, pathlib; from rltools_host.tree import TREE\n"
        "from rltools_host.build import tools\n"
        f"TREE.root = pathlib.Path({str(tmp_path)!r})\n"
        "with tools.environment_lock() as lock:\n"
        f"    command = ['sh', '-c', 'touch {begun}; sleep 1; touch {ended}']\n"
        "    tools.run_quietly(command, dict(os.environ), lock)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(TREE.root / "host")}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    wait_for(begun.exists, 60)
    process.kill()
    process.wait()
    assert not ended.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TREE, "root", tmp_path)
        with tools.environment_lock():
            assert ended.exists()


@pytest.fixture
def tree_of_root() -> Iterator[Path]:
    """One that other users may enter, with a .venv that was set up."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    if not os.path.exists(SYSTEM_PYTHON):
        pytest.skip(f"needs {SYSTEM_PYTHON}, which each user may start")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        tree = new_tree(Path(folder))
        shutil.copy(MAIN, tree / "host/rltools_host/__main__.py")
        (tree / ".venv/bin").mkdir(parents=True)
        for name in ("rlt-environment.txt", "rlt-lock.txt"):
            shutil.copy(tree / "host/requirements/lock.txt", tree / ".venv" / name)
        yield tree


@pytest.mark.parametrize("closed", [".venv", "home", "nothing"])
def test_another_users_venv_is_named(closed: str, tree_of_root: Path) -> None:
    """Which may not be read, whose Python lies in a home, or which is damaged."""
    venv, home = tree_of_root / ".venv", tree_of_root.parent / "home"
    home.mkdir()
    python = home / "python3" if closed == "home" else venv.parent / "python3"
    python.symlink_to(SYSTEM_PYTHON)
    (venv / "bin/python").symlink_to(python)
    if closed != "nothing":
        (home if closed == "home" else venv).chmod(0o700)
    called = subprocess.run(
        [tree_of_root / "rlt", "doctor"],
        env={"PATH": os.environ["PATH"], "RLT_PYTHON": SYSTEM_PYTHON},
        capture_output=True,
        text=True,
        user=65534,
        group=65534,
        extra_groups=[],
    )
    error = called.stderr.strip()
    assert called.returncode in (1, 3)
    assert error.startswith(f"error: {venv}"), error
    assert "\n" not in error
    assert "clone the tree for yourself" in error


def test_a_python_of_the_users_own_is_not_called_damaged(tree: Path) -> None:
    """Of which `delete it` would be wrong."""
    shutil.copy(MAIN, tree / "host/rltools_host/__main__.py")
    (tree / "host/rltools_host/commands/cli.py").write_text("import nothing_of_this_name")
    command = [sys.executable, str(tree / "host/rltools_host/__main__.py"), "doctor"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "host")}
    environment.pop("RLT_COMMAND", None)
    called = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert called.stderr == (
        f"error: {sys.executable}: No module named 'nothing_of_this_name'; start {tree / 'rlt'}\n"
    )


# -- packages --------------------------------------------------------------------------------------


def add_wheel(folder: Path, name: str, **others: str) -> str:
    """A package of one module, and of other files by their names; returns its line of a lock."""
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    information = f"{name}-1.0.dist-info"
    contents = {
        f"{name}.py": "complete = True\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        **others,
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{information}/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16  # scripts are programs
            archive.writestr(entry, text)
        archive.writestr(record, "".join(f"{path},,\n" for path in [*contents, record]))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name}==1.0 --hash=sha256:{digest}\n    # groups: default uv\n"


# A command line that needs a package, and then does what its first word says.
NEEDY_CLI = """
import sys
import tiny
def main():
    print("started", *sys.argv[1:])
    if sys.argv[1:2] == ["import"]:
        import nothing_of_this_name
    sys.exit(int(sys.argv[1]))
"""


def use_wheels_alone(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have uv of .venv found, where a tree locks none, and no index asked."""
    path = os.pathsep.join([os.path.dirname(tools.find_uv() or ""), os.environ["PATH"]])
    for name, value in (("PATH", path), ("UV_NO_INDEX", "1"), ("UV_FIND_LINKS", str(folder))):
        patch.setenv(name, value)


@pytest.fixture(scope="module")
def tree_set_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the true entry point, and set up; the package lies beside it."""
    folder = tmp_path_factory.mktemp("needy")
    tree = new_tree(folder)
    (tree / "host/requirements/lock.txt").write_text(add_wheel(folder, "tiny"))
    shutil.copy(MAIN, tree / "host/rltools_host/__main__.py")
    (tree / "host/rltools_host/commands/cli.py").write_text(NEEDY_CLI)
    with pytest.MonkeyPatch.context() as patch:
        use_wheels_alone(patch, folder)
        assert ended(tree, "0") == (0, "started 0\n", "Setting up .venv\n" + INSTALLING)
    return tree


@pytest.fixture
def needy_tree(tree_set_up: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    use_wheels_alone(monkeypatch, tree_set_up.parent)
    return Path(shutil.copytree(tree_set_up, tmp_path / "tree", symlinks=True))


INSTALLING = f"Installing Python packages: {GROUPS['default'].needed_for}{group_note('default')}\n"


def ended(tree: Path, *words: str) -> tuple[int, str, str]:
    """The launcher with these words: its exit code, output and error stream."""
    process = start(tree, *words)
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr


def test_package_that_was_installed_half_way_is_installed_again(needy_tree: Path) -> None:
    environment = needy_tree / ".venv"
    (module,) = environment.glob("lib/*/site-packages/tiny.py")
    (record,) = environment.glob("lib/*/site-packages/tiny-1.0.dist-info/RECORD")
    module.unlink()  # as an installer leaves it that was killed here
    record.unlink()
    (environment / "rlt-default.txt").rename(environment / "rlt-default.begun")
    code, stdout, stderr = ended(needy_tree, "0")
    assert (code, stdout) == (0, "started 0\n"), stderr
    assert module.read_text() == "complete = True\n"
    assert not (environment / "rlt-default.begun").exists()

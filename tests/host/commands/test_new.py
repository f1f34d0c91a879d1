"""What `rlt new` writes: its names, its size, and that it compiles and learns as it is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import rltools_host
from programs import in_project
from rltools_host.commands import new
from rltools_host.errors import DiskError, UsageError
from rltools_host.tree import MARKER, TREE, quoted


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../cart", r'^"\.\./cart" names no experiment: '),
        ("", "names no experiment"),
        ("sac", r"^sac would define Sac, which rltools/rl/algorithms/sac\.h has: .* as my-sac$"),
    ],
)
def test_names_that_lead_elsewhere_or_are_taken_are_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        new.checked_name(name)


def test_what_is_there_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    new.run("cart")
    header = project / "experiments" / "cart.h"
    lines = len(header.read_text().splitlines())
    assert f"wrote experiments/cart.h, {lines} lines\n" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"^there is an experiment cart already"):
        new.run("cart")
    with pytest.raises(UsageError, match=r"^there is an experiment pendulum-td3 already"):
        new.run("pendulum-td3")
    (project / "tests" / "test_slide.py").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"test_slide\.py is there already: nothing was written"):
        new.run("slide")
    assert not (project / "experiments" / "slide.h").exists()
    for gymnasium in (False, True):
        with pytest.raises(UsageError, match=r'^unknown start "pendulm": did you mean pendu'):
            new.run("swing", "pendulm", gymnasium=gymnasium)


def test_a_project_is_a_folder_in_which_commands_work(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    new.run(None, project=Path("My Robots"))
    said = capsys.readouterr().out
    assert "  next  cd 'My Robots'\n" in said
    assert f"        pip wheel --no-deps -w wheels {quoted(TREE.root)}\n" in said
    root = project / "My Robots"
    assert (root / MARKER).is_file()
    written = [path for path in root.rglob("*") if path.is_file() and "build" not in path.parts]
    assert {str(path.relative_to(root)) for path in written} == {
        *new.OF_A_PROJECT,
        "experiments/balance.h",
        "tests/test_balance.py",
    }
    assert "rlt train balance\n" in (root / "README.md").read_text()
    platformio = (root / "platformio.ini").read_text()
    assert "custom_experiment = balance\n" in platformio
    assert "custom_contract = pendulum\n" in platformio, "it has none of its own"
    pinned = next(
        line for line in (root / "requirements.txt").read_text().splitlines() if "==" in line
    )
    assert pinned == f"rltools-host[compiler] == {rltools_host.__version__}"
    with pytest.raises(UsageError, match=r"My Robots is a project already: .*rlt'? new cart"):
        new.run("cart", project=root)
    assert not (root / "experiments" / "cart.h").exists()
    with pytest.raises(UsageError, match=r"^there is an experiment pendulum-td3 already"):
        new.run("pendulum-td3", project=project / "other")
    new.run(None, "pendulum", project=project / "swing-up", gymnasium=True)
    assert "py:SwingUp --steps 10000\n" in capsys.readouterr().out
    new.run(None, project=project / "my-cart", gymnasium=True)
    assert "train gym:experiments/my_cart.py:MyCart --steps 5000\n" in capsys.readouterr().out
    trains = "rlt train gym:experiments/my_cart.py:MyCart --steps 5000\n"
    assert trains in (project / "my-cart" / "README.md").read_text()
    assert "= pendulum-td3\n" in (project / "my-cart" / "platformio.ini").read_text()


def test_a_repository_becomes_a_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its README and what else it has stay."""
    root = project / "mine"
    root.mkdir()
    for name in ("README.md", ".gitignore"):
        (root / name).write_text("of mine\n")
    monkeypatch.chdir(project)
    new.run("cart", project=root)
    said = capsys.readouterr().out
    for name in ("README.md", ".gitignore"):
        assert (root / name).read_text() == "of mine\n"
        assert f"kept mine/{name}, which was there\n" in said
    assert {MARKER, "requirements.txt", "platformio.ini"} <= set(os.listdir(root))
    with pytest.raises(UsageError, match=r'semi;colon.* has the character ";" in its path'):
        new.run("cart", project=project / "semi;colon")
    assert not (project / "semi;colon").exists()


def test_all_files_or_none(project: Path) -> None:
    (project / "tests").write_text("no folder")
    with pytest.raises(DiskError, match="cannot"):
        new.run("cart", contract=True)
    assert not list(project.rglob("*.h"))


@pytest.mark.all
def test_the_tests_of_a_project_are_its_own(tmp_path: Path) -> None:
    """Those of tests/ and of a task's own file; nothing of the checkout is run."""
    for folder in ("tests", "experiments"):
        (tmp_path / folder).mkdir()
    (tmp_path / MARKER).touch()

    def rlt_test(*words: str, code: int = 0) -> str:
        called = ("-m", "rltools_host", "test", *words)
        return in_project(tmp_path / "tests", *called, code=code).stdout

    assert "no tests ran" in rlt_test(code=1)
    (tmp_path / "tests" / "test_one.py").write_text("def test_one(): pass\n")
    (tmp_path / "experiments" / "task.py").write_text("def test_two(): pass\n")
    (tmp_path / "experiments" / "other.py").write_text("import nothing_of_this_name\n")
    assert "2 passed" in rlt_test()
    assert "1 passed, 1 deselected" in rlt_test("-k", "one")
    (tmp_path / "tests" / "test_one.py").write_text("def test_one(): assert 1 == 2\n")
    rlt_test(code=1)


@pytest.mark.all
@pytest.mark.parametrize(
    "options",
    [
        ("--like", "pendulum", "--contract"),
        ("--gymnasium",),
        pytest.param(("--gymnasium", "--like", "pendulum"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_it_compiles_and_learns(project: Path, options: tuple[str, ...]) -> None:
    """Its own test passes, its environment can be made, and a mistake is the last line.

    The usual start in C++ does so in tests/host/test_wheel.py."""
    in_project(project, "-m", "rltools_host", "new", "my-balance", *options)
    own_test = "experiments/my_balance.py" if "--gymnasium" in options else "tests"
    in_project(project, "-m", "pytest", "-q", "-c", MARKER, own_test)
    if "--gymnasium" in options:
        return
    made = "import rlt; print(rlt.make('MyBalance-v0', num_envs=2).reset(seed=0)[0].shape)"
    assert in_project(project, "-c", made).stdout.startswith("(2, ")
    file = project / "experiments" / "my_balance.h"
    file.write_text(file.read_text().replace("const T cost", "const T cots"))
    words = ("-m", "rltools_host", "train", "my-balance", "--board", "host")
    last = in_project(project, *words, code=3).stderr.splitlines()[-1]
    line = next(
        number for number, text in enumerate(file.read_text().splitlines(), 1) if "-cost" in text
    )
    said = (
        rf"error: building for host failed: experiments/my_balance\.h:{line}: .*cost.* was not decl"
    )
    assert re.match(said, last)

"""The wheel, where nothing of the checkout is to be found: installed, a project, the same bits."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.build.toolchains import ALL_GROUPS
from rltools_host.tree import TREE, VARIABLE

HASH_OF_300_STEPS = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
MANYLINUX = (
    *("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux2010"),
    "manylinux_2_5",
)
FOREIGN = ("PYTHONPATH", VARIABLE, "RLT_COMMAND", "VIRTUAL_ENV", "RLT_CXX")


def run(*words: str | Path) -> str:
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, (words, result.stdout, result.stderr)
    return result.stdout


# Where nothing may be installed: as on a machine without apt-get.
MISSING = """
from rltools_host.errors import MissingToolError
from rltools_host.build import tools
for name, said in (("g++", "pip install 'rltools-host[compiler]'"), ("git", "git not found")):
    try:
        tools.require(name)
        raise SystemExit(name + " was found")
    except MissingToolError as error:
        assert said in str(error), error
"""


class Machine:
    """A virtual environment of the user's, with the wheel in it. It lies in the project, as many
    users have it."""

    def __init__(self, folder: Path, project: str) -> None:
        self.folder, self.packages = folder, folder / project / ".venv"
        self.environment = {k: v for k, v in os.environ.items() if k not in FOREIGN}
        self.environment |= {"TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}

    def call(self, *words: str | Path, folder: Path | None = None, code: int = 0) -> str:
        result = subprocess.run(
            [str(word) for word in words],
            cwd=folder or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert result.returncode == code, (words, result.stdout, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def program(self, name: str) -> Path:
        return self.packages / "bin" / name

    def install(self, what: str) -> None:
        interpreter = os.path.realpath(sys.executable)
        self.call(interpreter, "-I", "-m", "venv", self.packages)
        self.call(self.program("python"), "-m", "pip", "install", "--quiet", what)

    def tree(self) -> Path:
        (found,) = self.packages.glob("lib/python3*/site-packages/rltools_host/tree")
        return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        folder,
        TREE.root,
    ]
    subprocess.run(list(map(str, command)), check=True, timeout=280)
    (file,) = folder.glob("*.whl")
    return file


def listing(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_mtime_ns
        for path in root.rglob("*")
        if "__pycache__" not in path.parts
    }


@pytest.mark.all
@pytest.mark.timeout(1200)
def test_the_wheel_trains_in_a_project_to_the_bits_of_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, "my-robot")
    machine.install(str(wheel))
    rlt, tree = machine.program("rlt"), machine.tree()
    before = listing(tree)
    assert not (tree / "rlt.toml").exists()
    outside = machine.call(rlt, "train", "pendulum-td3", "--board", "host", code=2)
    assert outside.startswith(f"error: {tmp_path} is in no project: ")
    assert "next  cd my-robot\n" in machine.call(rlt, "new", "--project", "my-robot")
    project = tmp_path / "my-robot"
    words = ["train", "pendulum-td3", "--board", "host", "--steps", "300", "--json"]
    trained = json.loads(machine.call(rlt, *words, folder=project).splitlines()[-1])
    assert trained["state_sha256"] == HASH_OF_300_STEPS
    # What a stranger does with it: three seeds of the project's own, a report, and its tests.
    of_three = ("--seeds", "0-2", "--steps", "600")  # the project's test learns
    machine.call(rlt, "train", "my-robot", "--board", "host", *of_three, folder=project)
    machine.call(rlt, "report", "latest", folder=project)
    assert "nothing is wrong" in machine.call(rlt, "check", "my-robot", folder=project)
    os.symlink("/nowhere", tmp_path / "empty")
    machine.environment["PATH"], path = str(tmp_path / "empty"), machine.environment["PATH"]
    machine.call(machine.program("python"), "-c", MISSING, folder=project)
    machine.environment["PATH"] = path
    exported = ["export", trained["run"], "--to", "arduino"]
    assert "wrote" in machine.call(rlt, *exported, folder=project)
    refused = machine.call(rlt, "train", "ant-ppo", "--board", "host", folder=project, code=3)
    line = ".venv/bin/python -m pip install 'rltools-host[mujoco]'"
    assert refused.endswith(f"mujoco is not installed in {machine.packages}: {line}\n")
    made = "import rlt; print(rlt.make('MyRobot-v0', num_envs=2).reset(seed=0)[0].shape)"
    assert machine.call(machine.program("python"), "-c", made, folder=project) == "(2, 2)\n"
    # As in CI: what the project's workflow runs, with the wheel in wheels/.
    shutil.copytree(wheel.parent, project / "wheels")
    workflow = (project / ".github" / "workflows" / "test.yml").read_text()
    install, test = re.findall(r"- run: (.*)", workflow)
    requirements = project / "requirements.txt"
    requirements.write_text(requirements.read_text().replace("[compiler]", ""))  # 100 MB
    machine.environment["PATH"] = f"{machine.program('rlt').parent}:{machine.environment['PATH']}"
    machine.call("sh", "-c", install, folder=project)
    assert "1 passed" in machine.call("sh", "-c", test, folder=project)
    # A task of theirs imports a package of their environment, in the isolated processes, too.
    (tree.parents[1] / "dynamics_of_mine.py").write_text("FORCE = 2.0\n")
    machine.call(rlt, "new", "glider", "--gymnasium", folder=project)
    file = project / "experiments" / "glider.py"
    file.write_text(f"from dynamics_of_mine import FORCE\n{file.read_text()}")
    glider = ("train", "gym:experiments/glider.py:Glider", "--set", "hidden=8,8", "--steps", "200")
    machine.call(rlt, *glider, "--seeds", "0-1", folder=project)
    assert listing(tree) == before


MAX_S = 180  # from `pip install` to a trained policy, where nothing else runs
STRANGER = """\
set -e
export HOME=/home/u PATH=/usr/bin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1
cd /home/u
! command -v g++ gcc cc clang git
begun=$(date +%s)
python3 -m venv v
v/bin/pip install --quiet --no-index --find-links wheels 'rltools-host[compiler,tune]'
. v/bin/activate
rlt new --project my-robot
cd my-robot
rlt train my-robot --board host --out runs/first
echo "seconds: $(($(date +%s) - begun))"
sed -i 's/T(0.1) \\* velocity/T(0.2) * velocity/' experiments/my_robot.h
grep -q 'T(0.2)' experiments/my_robot.h
rlt train my-robot --board host --seeds 0-2 --out runs/edited
rlt runs compare runs/first runs/edited --any
rlt tune my-robot --board host --trials 1000 --timeout 60 --steps 2000
rlt export runs/first --to arduino --output .
rlt train pendulum-td3 --board host --steps 300
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("release", "python"), [("bookworm", "3.11"), ("trixie", "3.13")])
def test_a_stranger_in_a_bare_debian(
    wheel: Path, tmp_path: Path, release: str, python: str
) -> None:
    """No compiler, no git, no root and no network: from the wheel to a sketch that compiles, behind
    the macros that an AVR's and other cores have."""
    if os.geteuid() != 0 or not (shutil.which("debootstrap") and shutil.which("unshare")):
        pytest.skip("needs root, debootstrap and unshare")
    root = tmp_path / "root"
    run(*("debootstrap", "--variant=minbase", "--include=python3-venv", release, root))
    platforms = [f"--platform={name}_x86_64" for name in MANYLINUX]
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", f"{wheel}[compiler,tune]"),
        *("--python-version", python, "--implementation", "cp", "--only-binary=:all:"),
        *(*platforms, "--platform=any", "-d", root / "home/u/wheels"),
    )
    (root / "home/u/go.sh").write_text(STRANGER)
    run("chown", "-R", "1000:1000", root / "home/u")
    # The mounts are gone with the process.
    mounts = f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev"
    enter = f"exec chroot --userspec=1000:1000 {root} /bin/bash /home/u/go.sh"
    inside = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")
    load = os.getloadavg()[0]
    said = run(*inside, "sh", "-c", f"ip link set lo up 2>&1 || true; {mounts} && {enter}")
    (seconds,) = map(int, re.findall("seconds: (.*)", said))
    print(f"{release}: {seconds} s to a trained policy; {load:.1f} ran before it began")
    assert seconds <= MAX_S or load > 1.0
    assert re.search(r"\d+ of 1000 trials", said), "tuned for a minute"
    assert f"state {HASH_OF_300_STEPS} verified" in said
    (library,) = (root / "home/u/my-robot").glob("*Policy")
    if tools.missing_names(["arm-none-eabi-g++"]):
        pytest.skip("no compiler for Arm is installed")
    (sketch,) = library.glob("examples/*/*.ino")
    source = tmp_path / "sketch.cpp"  # behind Arduino.h, as its builder compiles it
    source.write_text(f"#include <Arduino.h>\n{sketch.read_text()}")
    tests = TREE.root / "tests"
    macros, interface = tests / "lib" / "core", tests / "host" / "policies" / "arduino_interface"
    for number, file in enumerate((source, *library.glob("src/*.cpp"))):
        run(
            *("arm-none-eabi-g++", "-mcpu=cortex-m7", "-mthumb", "-std=gnu++17", "-fno-exceptions"),
            *("-include", macros / "arduino_macros.h", f"-I{library / 'src'}", f"-I{macros}"),
            *(f"-I{interface}", "-Wall", "-Wextra", "-Werror"),
            *("-c", file, "-o", tmp_path / f"{number}.o"),
        )


BARE = ("sh", "env", "nice", "cat", "mkdir", "ls", "uname", "dirname", "sed", "rm")
STATE_OF_THE_DEMO = "cb477b641fdc5db74abfdc2ec59bfb24e667cdc3f7451f199255d22773aea9dc"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_wheel_with_programs_needs_no_compiler(tmp_path: Path) -> None:
    """The demo, and a policy on boards, in a folder with a space where PATH has a few programs."""
    build, made = TREE.root / "host/wheel/build.py", tmp_path / "dist"
    system = f"linux-{platform.machine()}"
    names = ("pendulum-td3", "pendulum")
    environment = {**os.environ, "PYTHONPATH": str(TREE.root / "host")}
    command = [sys.executable, str(build), system, str(made), *names]
    subprocess.run(command, check=True, timeout=3000, env=environment)
    (wheel,) = made.glob("*manylinux*.whl")
    machine = Machine(tmp_path, "a folder")
    (tmp_path / "a folder").mkdir()
    machine.install(f"{wheel}[unicorn]")
    (tmp_path / "bin").mkdir()
    for name in BARE:
        os.symlink(str(shutil.which(name)), tmp_path / "bin" / name)
    machine.environment["PATH"] = str(tmp_path / "bin")
    rlt, folder = machine.program("rlt"), tmp_path / "a folder"
    document = json.loads(machine.call(rlt, "demo", "--json", folder=folder).splitlines()[-1])
    assert document["state_sha256"] == document["host_state_sha256"] == STATE_OF_THE_DEMO
    assert document["board"] == "unicorn-cortex-m7"
    project = folder / "rlt-demo"
    assert "confirmed" in machine.call(rlt, "push", "latest", "--board", "host", folder=project)
    checked = machine.call(rlt, "hil", "--board", "unicorn-cortex-m7", folder=project)
    assert "1,009 of 1,009 inputs" in checked
    refused = machine.call(rlt, "train", "cartpole-ppo", folder=project, code=3)
    assert "pip install 'rltools-host[compiler]'" in refused


def test_extras_are_the_groups_of_the_checkout() -> None:
    """Written twice in pyproject.toml, as no standard lets one name the other."""
    document = tomllib.loads((TREE.root / "pyproject.toml").read_text())
    extras, groups = document["project"]["optional-dependencies"], document["dependency-groups"]
    extra_of = {name: group.extra for name, group in ALL_GROUPS.items() if group.extra}
    assert {name: groups[name] for name in extra_of} == {
        name: extras[extra] for name, extra in extra_of.items()
    }
    assert set(extras) == set(extra_of.values())
    # For its tests, and what it packs for others.
    of_the_checkout = {"test", "browser", "docs", "lint", "esp-idf", "ptxas", tools.INSTALLER}
    assert set(groups) == {*extra_of, *of_the_checkout}


def test_the_wheel_has_what_is_compiled() -> None:
    """Every file of the tree's folders that git has; what lies beside them may be left out."""
    if not (TREE.root / ".git").exists():
        pytest.skip("no checkout, so that git does not know the files")
    document = tomllib.loads((TREE.root / "pyproject.toml").read_text())
    included = document["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert all(target == f"rltools_host/tree/{source}" for source, target in included.items())
    listed = subprocess.run(
        ["git", "-C", str(TREE.root), "ls-files"], check=True, capture_output=True, text=True
    ).stdout.split()
    left_out = {
        name.split("/")[0]
        for name in listed
        if "/" in name and not any(name == own or name.startswith(f"{own}/") for own in included)
    }
    assert left_out == {".ci", "benchmarks", "examples", "host", "tests"}

"""What READMEs of integrations say is run as it stands: the shell blocks of their first section, in
a copy of the folder, as far as no foreign tree is needed. Foreign programs are stubs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from policy_samples import sample_images
from programs import output_of
from rltools_host.build.tools import missing_tools
from rltools_host.tree import PROJECT, TREE
from tree_copies import copy_of_tree

INTEGRATIONS = TREE.root / "integrations"
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# `./rlt train` leaves a run with an untrained policy; all else is the command itself.
# Its first line is for the shell alone: `#!` takes no path that has a space.
RLT = """#!/bin/sh
''''exec "{python}" "$0" "$@" # '''
import sys
from pathlib import Path
sys.path[:0] = [{host!r}, {fakes!r}]
from rltools_host.tree import PROJECT
PROJECT.root = Path(__file__).resolve().parent
if sys.argv[1] == "train":
    from policy_run import make_policy_run
    from rltools_host.build.experiments import require_experiment
    require_experiment(sys.argv[2])
    make_policy_run(PROJECT.runs / sys.argv[2], Path({image!r}).read_bytes())
else:
    from rltools_host.commands.cli import main
    main()
"""

# `git clone … FOLDER` makes a firmware whose build compiles the controller, as kbuild does: an
# object beside its source.
GIT = """#!/bin/sh
for folder; do :; done
mkdir -p "$folder/tools/make"
cp "$OOT_MK" "$folder/tools/make/oot.mk"
"""
OOT_MK = """
.PHONY: all cload
include $(OOT)/src/policy/Kbuild
CALL := arm-none-eabi-g++ -std=gnu++17 -Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard
CALL += -mfpu=fpv4-sp-d16 -fno-exceptions -Wall -Werror -I$(OOT)/src
all: $(OOT_CONFIG)
\tmkdir -p $(OOT)/build && cp $(OOT_CONFIG) $(OOT)/build/.config
\tcd $(OOT)/src/policy && $(CALL) $(ccflags-y) -c policy_controller.cpp -o policy_controller.o
cload:
\ttest -f $(OOT)/build/.config
"""
# A project of ESP-IDF's is where it is called.
IDF_PY = """#!/bin/sh
grep -q 'tools/cmake/project.cmake' CMakeLists.txt && ls main/policy.rltp
"""


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as far as the commands need it, beside which there is nothing; for all of
    them, since what an export needs takes longer to compile than all else."""
    folder = tmp_path_factory.mktemp("readmes")
    clone = copy_of_tree(folder / "beside" / "clone", "integrations")
    (clone / "lib").symlink_to(TREE.root / "lib")
    (clone / "build").mkdir()
    (clone / "build" / "protocol").symlink_to(PROJECT.build / "protocol")  # it takes seconds
    image = folder / "untrained.rltp"  # from the build that is there: the clone has none
    image.write_bytes(sample_images()["pendulum"])
    paths = {"host": TREE.root / "host", "fakes": TREE.root / "tests/fakes", "image": image}
    texts = {name: str(path) for name, path in paths.items()}
    write_program(clone / "rlt", RLT.format(python=sys.executable, **texts))
    return clone


def run_blocks(readme: Path, clone: Path, folder: Path) -> None:
    """All blocks in one shell, from the clone on."""
    blocks = SHELL_BLOCK.findall(readme.read_text(encoding="utf-8").partition("\n## What")[0])
    assert any("./rlt export" in block for block in blocks)
    programs = folder / "programs"
    write_program(programs / "git", GIT)
    write_program(programs / "idf.py", IDF_PY)
    (folder / "oot.mk").write_text(OOT_MK)
    (folder / "home").mkdir()
    environment = {
        **os.environ,
        "HOME": str(folder / "home"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "OOT_MK": str(folder / "oot.mk"),
    }
    result = subprocess.run(
        ["bash", "-e", "-c", "\n".join(blocks)],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def content_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_readme(name: str, clone: Path, folder: Path) -> Path:
    """The home of who has followed it; only build/ and runs/ of the clone have changed."""
    shutil.rmtree(clone / "runs", ignore_errors=True)
    before = content_of(clone / "integrations")
    run_blocks(INTEGRATIONS / name / "README.md", clone, folder)
    assert content_of(clone / "integrations") == before
    assert {path.name for path in clone.iterdir()} <= {
        *("build", "integrations", "lib", "rlt", "runs")
    }
    return folder / "home"


def test_zephyrs_readme(clone: Path, tmp_path: Path) -> None:
    home = check_readme("zephyr", clone, tmp_path)
    module = home / "zephyrproject/modules/pendulum_td3_policy"
    assert (module / "include/pendulum_td3_policy.h").is_file()


@pytest.mark.all
def test_the_crazyflies_readme(clone: Path, tmp_path: Path) -> None:
    if missing_tools(["arm-none-eabi-g++"]):
        pytest.skip("arm-none-eabi-g++ is not installed")
    check_readme("crazyflie", clone, tmp_path)
    controller = clone / "build/crazyflie/src/policy/policy_controller.o"
    # the last block's build has the policy
    assert "hover_image" in output_of("arm-none-eabi-nm", controller)


def test_the_readme_of_esp_idf(clone: Path, tmp_path: Path) -> None:
    home = check_readme("esp_idf", clone, tmp_path)
    component = home / "my_project/components/rlt_policy"
    assert (component / "examples/policy_task/main/policy.rltp").is_file()


def test_arduinos_readme(clone: Path, tmp_path: Path) -> None:
    home = check_readme("arduino", clone, tmp_path)
    assert list((home / "Arduino/libraries").glob("*Policy/library.properties"))

"""A test lies where what it tests lies (CONTRIBUTING.md, "Where a test lies")."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

from rltools_host.mutants.areas import MIRRORS
from rltools_host.tree import TREE

LEAST = {"tests/lib": 80, "tests/firmware": 15, "tests/host": 80, "tests/integrations": 9}
SOURCES = (".h", ".cpp", ".py")
# Named like something else: settings of any environment, not a quadrotor's.
OTHERWISE_NAMED = {"tests/lib/rl/test_settings.cpp"}


def misplaced(names: Sequence[str]) -> list[str]:
    """Each test_<name> of these files that lies in a folder of tests only, or above the folder of
    the one file <name> that it is about."""
    files = [PurePosixPath(name) for name in names]
    folders = {folder for file in files for folder in file.parents}
    found = []
    for file in files:
        roots = [root for root in MIRRORS if file.is_relative_to(root)]
        if not roots or not file.name.startswith("test_") or file.suffix not in SOURCES:
            continue
        mirrored = [
            root / file.parent.relative_to(roots[0])
            for root in map(PurePosixPath, MIRRORS[roots[0]])
        ]
        if not folders & set(mirrored):
            found.append(f"{file}: there is no {mirrored[0]}")
            continue
        subjects = {
            source.parent
            for source in files
            if source.stem == file.stem.removeprefix("test_") and source.suffix in SOURCES
            for folder in mirrored
            if source.is_relative_to(folder)
        }
        if subjects and not subjects & set(mirrored) and str(file) not in OTHERWISE_NAMED:
            found.append(f"{file}: what has its name is in {min(subjects)}")
    return found


def test_tests_lie_where_what_they_test_lies() -> None:
    listed = subprocess.run(
        [
            "git",
            "-C",
            str(TREE.root),
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    files = [name for name in listed if (TREE.root / name).is_file()]
    for root, count in LEAST.items():
        assert sum(name.startswith(f"{root}/") for name in files) > count
    assert misplaced(files) == []
    assert {name for name in OTHERWISE_NAMED if name not in files} == set()


SMALL_TREE = (
    "firmware/app/link/frame_receiver.h",
    "firmware/app/services/file_server.h",
    "host/rlt/training.py",
    "host/rltools_host/files.py",
    "host/rltools_host/clients/files.py",
    "lib/rltools/include/rltools/rl/algorithms/td3.h",
    "lib/rltools/include/rltools/rl/training.h",
)


@pytest.mark.parametrize(
    "name",
    [
        "tests/firmware/app/link/test_frame_receiver.cpp",
        "tests/firmware/app/link/test_noise.cpp",
        "tests/firmware/test_everything.cpp",
        "tests/firmware/app/interface/Arduino.h",  # no test
        "tests/host/test_files.py",
        "tests/host/rlt/test_training.py",
        "tests/lib/rl/test_training.cpp",
        "tests/lib/rl/algorithms/test_td3.cpp",
        "tests/lib/rl/test_learning.py",
        "tests/device/somewhere/test_training.py",  # what runs on emulated boards mirrors nothing
    ],
)
def test_right_place_is_accepted(name: str) -> None:
    assert misplaced([*SMALL_TREE, name]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tests/firmware/link/test_noise.cpp", "there is no firmware/link"),
        ("tests/firmware/scripted/test_board.cpp", "there is no firmware/scripted"),
        ("tests/firmware/test_frame_receiver.cpp", "is in firmware/app/link"),
        ("tests/firmware/app/test_file_server.cpp", "is in firmware/app/services"),
        ("tests/host/attic/test_files.py", "there is no host/rltools_host/attic"),
        ("tests/integrations/elsewhere/test_mode.py", "there is no integrations/elsewhere"),
        ("tests/lib/rl/test_td3.cpp", "is in lib/rltools/include/rltools/rl/algorithms"),
        ("tests/lib/rl/sac/test_rules.py", "there is no lib/rltools/include/rltools/rl/sac"),
    ],
)
def test_wrong_place_is_named(name: str, expected: str) -> None:
    (found,) = misplaced([*SMALL_TREE, name])
    assert found.startswith(f"{name}: ")
    assert expected in found

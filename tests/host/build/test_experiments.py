"""Names of experiments and contracts, what their headers require, and which boards they fit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rltools_host.build import experiments
from rltools_host.build.boards import load_board
from rltools_host.build.experiments import CONTRACT, EXPERIMENT
from rltools_host.errors import BuildError, UsageError
from rltools_host.tree import PROJECT, TREE

HOST, M7 = load_board("host"), load_board("qemu-cortex-m7")
DIGESTS = ("0123456789abcdef", "fedcba9876543210")


def write(header: Path, text: str = "") -> Path:
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(text)
    return header


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of generated headers that is empty."""
    folder = tmp_path / "generated"
    project = SimpleNamespace(generated=folder, root=tmp_path, files=PROJECT.files)
    monkeypatch.setattr(experiments, "PROJECT", project)
    return folder


@pytest.mark.parametrize("subject", [EXPERIMENT, CONTRACT])
def test_the_whole_name_of_a_task_has_its_digest(subject: str, generated: Path) -> None:
    assert experiments.whole_name("gym-hopper", subject) == "gym-hopper"  # nothing is there
    whole = [f"gym-hopper-{digest}" for digest in DIGESTS]
    header = experiments.generated_header(whole[0], subject)
    assert header == generated / f"{subject}s" / f"gym_hopper_{DIGESTS[0]}.h"
    write(header)
    write(header.with_name("gym_hopper_5_0123456789abcdef.h"))  # of another task
    write(header.with_name("gym_hopper_0123456789abcde.h"))  # a digit less
    assert experiments.whole_name("gym-hopper", subject) == whole[0]
    assert experiments.whole_name(whole[1], subject) == whole[1]
    assert experiments.whole_name("hopper", subject) == "hopper"
    assert experiments.is_of_task(whole[0], subject)
    assert not experiments.is_of_task(whole[1], subject)
    write(experiments.generated_header(whole[1], subject))
    sentence = f"^2 tasks have a {subject} gym-hopper: name one of them, {whole[0]} or {whole[1]}$"
    with pytest.raises(UsageError, match=sentence):
        experiments.whole_name("gym-hopper", subject)


def test_the_project_s_header_comes_before_the_installed_one(generated: Path) -> None:
    installed = TREE.experiments / "pendulum_td3.h"
    assert experiments.written_header("pendulum-td3") == installed
    assert experiments.header_of("pendulum-td3") == installed
    own = write(generated.parent / "experiments" / "pendulum_td3.h", "struct PendulumTd3 {};\n")
    assert experiments.written_header("pendulum-td3") == own
    contracts = TREE.root / experiments.build_description()["subjects"][CONTRACT]["folder"]
    assert experiments.written_header("quadrotor", CONTRACT) == contracts / "quadrotor.h"
    assert experiments.struct_of(Path("a/pendulum_td3_fast.h")) == "PendulumTd3Fast"


def test_what_a_header_requires(tmp_path: Path) -> None:
    text = "// It requires: all\n// Requires: hosted, mujoco\n\n //requires : hosted\n"
    header = write(tmp_path / "x.h", text)
    known = ["hosted", "mujoco", "hosted"]
    found = experiments.requirements_of(header)
    assert list(found) == known
    place = f"{tmp_path.name}/x.h"
    write(header, "// A text.\n// Requires: hostd\n")
    unknown = f'^{place}:2: requires "hostd", which no board provides: did you mean hosted'
    with pytest.raises(BuildError, match=unknown):
        experiments.requirements_of(header)


def test_which_boards_fit(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = generated.parent / "experiments"
    write(folder / "own_ppo.h", "// Requires: hosted\n// Gate: hover-far\nstruct OwnPpo {};\n")
    write(folder / "nameless.h", "struct Other {};\n")
    installed: list[str] = []
    monkeypatch.setattr(experiments.tools, "ensure_group", installed.append)
    assert experiments.lacking("own-ppo", HOST) == []
    assert experiments.lacking("own-ppo", M7) == ["hosted"]
    experiments.require_subject(EXPERIMENT, "pendulum-td3", M7)
    with pytest.raises(UsageError, match=r"ant-ppo is not for qemu-.*: boards that fit: .*host"):
        experiments.require_subject(EXPERIMENT, "ant-ppo", M7)
    with pytest.raises(UsageError, match='unknown experiment "pendulum-td4"'):
        experiments.require_subject(EXPERIMENT, "pendulum-td4")
    write(folder / "valve_ppo.py", "import gymnasium\n\n\nclass Valve(gymnasium.Env):\n")
    with pytest.raises(UsageError, match=r"valve_ppo\.py is a file of Python: name gym:.*:Valve$"):
        experiments.require_subject(EXPERIMENT, "valve-ppo")
    experiments.install_requirements("own-ppo")
    assert installed == []  # `hosted` is no group of packages
    experiments.install_requirements("ant-ppo")
    assert installed == ["mujoco"]
    assert experiments.gate("own-ppo") == "hover-far"
    assert experiments.gate("pendulum-td3") is None
    assert experiments.gate("of-another-tree") is None
    assert experiments.evaluation_options("own-ppo", "Own") == ("--gate", "hover-far")

"""`rlt push --board crazyflie` and its like: cflib, over UDP, with the firmware's app as it is."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from crazyflie_radio import LOG, MEM, PARAM, Change, FakeCrazyflie
from firmware_vehicles import APP, TESTS, build_crazyflie
from policy_run import make_policy_run
from programs import output_of
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, PushResult
from rltools_host.commands import cli
from rltools_host.commands.policies import list_policies
from rltools_host.drones.vehicles import crazyflie_link as client
from rltools_host.drones.vehicles.crazyflie import confirm, push, roll_back
from rltools_host.errors import (
    BoardMismatchError,
    LinkLostError,
    PortError,
    RefusedError,
)
from rltools_host.policies.contract import ENTRY_AT_REST
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE
from waiting import wait_for

IS_ARMED, IS_AUTO_ARMED, IS_FLYING = 2, 4, 16


def quadrotor_image(folder: Path, seed: int) -> bytes:
    program = folder / "image"
    if not program.exists():
        include = [f"-I{APP / 'policy'}", f"-I{TREE.include}"]
        flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-march=native", *include]
        source = str(TESTS / "crazyflie_image.cpp")
        output_of("g++", *flags, source, "-o", program)
    return subprocess.run([program, str(seed)], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_crazyflie(tmp_path_factory.mktemp("app"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        make_policy_run(folder / f"run{seed}", quadrotor_image(folder, seed)) for seed in (1, 2)
    ]


@pytest.fixture
def crazyflie(library: Path, tmp_path: Path) -> Iterator[FakeCrazyflie]:
    """One that has just been switched on; nobody ever sends it a setpoint."""
    vehicle = FakeCrazyflie(shutil.copy(library, tmp_path / "app.so"))
    vehicle.start()
    yield vehicle
    vehicle.stop()
    assert vehicle.setpoints == []


def target_of(vehicle: FakeCrazyflie) -> PolicyTarget:
    return PolicyTarget("crazyflie", vehicle.uri)


def push_to(vehicle: FakeCrazyflie, run: Path, trial_s: float | None = None) -> PushResult:
    return push(PushRequest(str(run), target_of(vehicle), trial_s), lambda _line: None)


def fly(vehicle: FakeCrazyflie) -> None:
    vehicle.parameter("enable").content = b"\1"
    wait_for(lambda: vehicle.logged("pilot") == 1, 60)


def land(vehicle: FakeCrazyflie) -> None:
    vehicle.parameter("enable").content = b"\0"
    wait_for(lambda: vehicle.logged("pilot") == 0, 60)


def test_pushed_flown_confirmed(
    crazyflie: FakeCrazyflie, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    target = target_of(crazyflie)
    words = ["push", str(runs[0]), "--board", "crazyflie", "--port", crazyflie.uri]
    assert cli.run([*words, "--trial", "30", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1]) == {
        "board": "crazyflie",
        "activated": False,
        "active_sha256": None,
        "slot": 0,
        "reason": "staged",
        "entry": None,
        "assumed": {"entry": asdict(ENTRY_AT_REST)},
    }
    assert "staged, checked by the Crazyflie and read back" in lines
    assert crazyflie.parameter("trial").number == 30
    document = list_policies(target)
    sha256 = parse_policy((runs[0] / "policy.rltp").read_bytes()).sha256
    assert document["slots"][0]["use"] == "staged"
    assert document["slots"][0]["sha256"] == sha256
    assert (document["built_in"], document["armed"]) == (False, False)
    with pytest.raises(RefusedError, match="has not flown"):
        confirm(target)

    fly(crazyflie)
    for command in (confirm, roll_back):
        with pytest.raises(RefusedError, match="flies: land it first"):
            command(target)
    assert list_policies(target)["armed"]
    assert list_policies(target)["slots"][0]["use"] == "trial"
    land(crazyflie)
    with pytest.raises(RefusedError, match="tries another policy"):
        push_to(crazyflie, runs[1])
    outcome = confirm(target)
    assert (outcome.activated, outcome.active_sha256) == (True, sha256)
    document = list_policies(target)
    assert document["slots"][0]["use"] == "active"
    assert (document["entry"], list(document["assumed"])) == (None, ["entry"])
    with pytest.raises(RefusedError, match="no compiled-in policy to return to"):
        roll_back(target)
    with pytest.raises(RefusedError, match="tries no policy"):
        confirm(target)
    fly(crazyflie)
    land(crazyflie)


@pytest.mark.parametrize("has_flown", [pytest.param(False, marks=pytest.mark.all), True])
def test_given_up(crazyflie: FakeCrazyflie, runs: list[Path], has_flown: bool) -> None:
    push_to(crazyflie, runs[0])
    if has_flown:
        fly(crazyflie)
        land(crazyflie)
    outcome = roll_back(target_of(crazyflie))
    assert (outcome.activated, outcome.active_sha256) == (False, None)
    document = list_policies(target_of(crazyflie))
    assert document["slots"][0]["use"] == "empty"
    assert document["last_drop"] == "rolled_back"
    with pytest.raises(RefusedError, match="no pushed policy"):
        roll_back(target_of(crazyflie))
    assert push_to(crazyflie, runs[1]).reason == "staged"


def test_a_trial_that_is_over_cannot_be_confirmed(
    crazyflie: FakeCrazyflie, runs: list[Path]
) -> None:
    push_to(crazyflie, runs[0], trial_s=0.2)
    assert crazyflie.parameter("trial").number == 1
    fly(crazyflie)
    wait_for(lambda: crazyflie.logged("pilot") == 0, 60)
    with pytest.raises(RefusedError, match=r"tries no policy: push one again \(.*in time\)"):
        confirm(target_of(crazyflie))
    assert list_policies(target_of(crazyflie))["last_drop"] == "deadline"


def test_another_contract_is_refused_with_the_channel(
    crazyflie: FakeCrazyflie, tmp_path: Path
) -> None:
    run = make_policy_run(tmp_path / "pendulum")
    with pytest.raises(RefusedError, match="other_contract: made for other observations"):
        push_to(crazyflie, run)
    assert list_policies(target_of(crazyflie))["slots"][0]["use"] == "empty"


@pytest.mark.parametrize(
    ("bits", "why"),
    [(IS_ARMED, "is armed"), (IS_FLYING, "flies"), (IS_AUTO_ARMED | IS_ARMED, None)],
)
def test_only_on_the_ground(
    crazyflie: FakeCrazyflie, runs: list[Path], bits: int, why: str | None
) -> None:
    crazyflie.supervisor.content = bytes([bits, 0])
    if why is None:
        assert push_to(crazyflie, runs[0]).reason == "staged"
        return
    with pytest.raises(RefusedError, match=why):
        push_to(crazyflie, runs[0])
    assert crazyflie.logged("upload") == 0


def at_byte_2400(operation: int, change: Callable[[bytes], bytes]) -> Change:
    """Changes the packet of the memory that begins there, in reading (1) or writing (2)."""

    def changed(port: int, channel: int, data: bytes) -> bytes:
        is_there = data[1:5] == (2400).to_bytes(4, "little")
        return change(data) if (port, channel) == (MEM, operation) and is_there else data

    return changed


def flip_a_bit(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def test_a_damaged_byte_is_refused(crazyflie: FakeCrazyflie, runs: list[Path]) -> None:
    crazyflie.hears = at_byte_2400(2, flip_a_bit)
    with pytest.raises(RefusedError, match=r"refuses the policy: wrong_crc: damaged"):
        push_to(crazyflie, runs[0])


@pytest.mark.all
def test_what_reads_back_otherwise_is_given_up(crazyflie: FakeCrazyflie, runs: list[Path]) -> None:
    crazyflie.says = at_byte_2400(1, flip_a_bit)
    with pytest.raises(RefusedError, match="stored other bytes"):
        push_to(crazyflie, runs[0])
    assert crazyflie.logged("candidate") == 0


@pytest.mark.parametrize(
    "where",
    [
        pytest.param((LOG, 1), id="log", marks=pytest.mark.all),
        pytest.param((MEM, 2), id="write"),
        pytest.param((MEM, 1), id="read", marks=pytest.mark.all),
        pytest.param((PARAM, 2), id="set", marks=pytest.mark.all),
    ],
)
def test_out_of_reach_in_the_middle(
    crazyflie: FakeCrazyflie,
    runs: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    where: tuple[int, int],
) -> None:
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 0.5)
    heard = 0

    def go_away(port: int, channel: int, data: bytes) -> bytes:
        nonlocal heard
        heard += (port, channel) == where
        if heard == {LOG: 2, MEM: 100, PARAM: 1}[where[0]]:
            crazyflie.runs = False
        return data

    crazyflie.hears = go_away
    with pytest.raises(LinkLostError, match="is lost: no answer"):
        push_to(crazyflie, runs[0], trial_s=5)
    crazyflie.hears = lambda _port, _channel, data: data
    crazyflie.runs = True
    # An upload that broke off is begun again.
    assert crazyflie.logged("upload") == {(LOG, 1): 0, (MEM, 2): 1}.get(where, 3)
    assert push_to(crazyflie, runs[1]).reason == "staged"


@pytest.mark.all
def test_a_byte_that_is_not_taken(crazyflie: FakeCrazyflie, runs: list[Path]) -> None:
    crazyflie.says = at_byte_2400(2, lambda data: data[:5] + b"\5")
    with pytest.raises(RefusedError, match=r"did not take byte 2,4\d\d of the policy"):
        push_to(crazyflie, runs[0])


def test_nobody_answers(
    crazyflie: FakeCrazyflie, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CONNECTION_TIMEOUT_S", 0.5)
    crazyflie.runs = False
    with pytest.raises(PortError, match="cannot be reached: no answer; is it switched on"):
        push_to(crazyflie, runs[0])
    target = PolicyTarget("crazyflie", "nonsense")
    with pytest.raises(PortError, match="malformed URI"):
        push(PushRequest(str(runs[0]), target), lambda _line: None)


def test_other_firmware(crazyflie: FakeCrazyflie, runs: list[Path]) -> None:
    crazyflie.log = [crazyflie.supervisor]
    with pytest.raises(BoardMismatchError, match=r"no logged value rlt\.pilot: flash the firmware"):
        push_to(crazyflie, runs[0])

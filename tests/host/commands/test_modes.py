"""No option is ignored: in each way of calling a command, each option is refused or has an effect.

A way is a command line and the functions that the command calls, which only record their
arguments here. An option has an effect if what is recorded or printed differs from that without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import COMMANDS, cli
from rltools_host.errors import UsageError
from rltools_host.tree import PROJECT

PACKAGE = "rltools_host.commands"
IN_A_PROJECT = " "  # behind `test`


@dataclass(frozen=True)
class Way:
    """A command line, and the functions whose calls are recorded."""

    words: str
    recorded: tuple[str, ...]

    @property
    def command(self) -> str:
        return self.words.split()[0]


def of(words: str, *recorded: str) -> Way:
    return Way(words, tuple(f"{PACKAGE}.{name}" for name in recorded))


WAYS = (
    of("adapt log --board host", "adapt.run"),
    of("check pendulum-td3", "check.run_experiment"),
    of("check gym:Pendulum-v1", "check.run_task"),
    of("confirm --board host", "policies.confirm"),
    of("demo", "demo.run"),
    of("doctor", "doctor.run", "doctor.run_self_test"),
    of("emulate qemu-cortex-m7", "firmware.emulate"),
    of("emulate b --program infer", "firmware.emulate"),
    of("evaluate r", "evaluate.run", "evaluate.evaluate_group"),
    of("evaluate r --gate hover", "evaluate.evaluate_gate"),
    of("export r", "export.run"),
    of("fit log", "fit.run"),
    of("flash teensy41 pendulum-td3", "firmware.flash"),
    of("fly r --board host", "fly.request_of", "fly.fly_board"),
    of("fly r --px4 udp:h:1", "fly.fly_px4"),
    of("hil --board host", "policies.target_of_run", "policies.run_hil"),
    of("import f --contract pendulum", "import_policy.run"),
    of("import f --environment E", "import_policy.run"),
    of("new a", "new.run"),
    of("new a --gymnasium", "new.run"),
    of("policies --board host", "policies.list_policies"),
    of("push r --board host", "policies.target_of_run", "policies.push"),
    of("report r", "export.report"),
    of("rollback --board host", "policies.roll_back"),
    of("runs", "runs.list_runs"),
    of("runs compare a b", "runs.compare_runs"),
    of("runs rename a b", "runs.rename_run"),
    of("runs delete a", "runs.delete_runs"),
    of("study", "study.list_studies"),
    of("study pendulum-ppo-ablation", "study.run_group"),
    of("test", "test.run"),
    of(f"test{IN_A_PROJECT}", "test.run_own"),
    of("tune pendulum-td3", "study.run_tune"),
    of("train pendulum-td3", "train.run"),
    of("train gym:Pendulum-v1", "train.run"),
    of("train --resume r", "train.run"),
    of("docs", "docs.build"),
    of("web", "web.write"),
    of("web --serve", "web.write"),
    of("bench train --quick --chart x", "bench.start"),
)
# Values that are read before anything is called.
VALUES = {
    "--activation": "silu",
    "--channels": "{folder}/object.json",
    "--fault": "nan@1",
    "--output-activation": "tanh",
    "--seeds": "0-3",
    "--rotors": "0.1 0.2",
    "--set-file": "{folder}/object.json",
}
BY_TYPE = {"integer": "9", "int": "9", "float": "0.5"}


def options_of(command: str) -> list[Any]:
    loaded = cli.load(command, COMMANDS[command])
    return [each for each in loaded.params if each.opts[0].startswith("-") and each.name != "help"]


def words_of(option: Any, folder: Path) -> list[str]:
    """With another value than the usual one."""
    if option.is_flag:
        return [option.secondary_opts[0] if option.default else option.opts[0]]
    name = max(option.opts, key=len)
    value = VALUES.get(name) or BY_TYPE.get(option.type.name, "word")
    return [name, *value.format(folder=folder).split()]


def words_of_ways(command: str) -> set[str]:
    """Among them the options that choose the way."""
    return {word for way in WAYS if way.command == command for word in way.words.split()}


CASES = [
    pytest.param(way, option, id=f"{way.words} {option.name}".replace(" ", "_"))
    for way in WAYS
    for option in options_of(way.command)
    if not set(option.opts) & words_of_ways(way.command) or option.name == "program"
]


@dataclass
class Outcome:
    """What a command line did."""

    code: int
    done: str
    error: str


@pytest.fixture
def outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Any:
    (tmp_path / "object.json").write_text(json.dumps({"gamma": 0.9}))
    monkeypatch.chdir(tmp_path)

    def outcome(way: Way, words: list[str]) -> Outcome:
        calls: list[str] = []
        if way.words.endswith(IN_A_PROJECT):
            monkeypatch.setattr(PROJECT, "root", tmp_path)
        for name in way.recorded:

            def called(*arguments: Any, name: str = name, **named: Any) -> Any:
                calls.append(f"{name}{arguments}{sorted(named.items())}")
                return "a result"

            monkeypatch.setattr(name, called)
        for name in ("evaluate", "export"):
            monkeypatch.setattr(f"{PACKAGE}.{name}.find_group", lambda _: None)
        monkeypatch.setattr("rltools_host.training.group_plan.find_group", lambda _: None)
        monkeypatch.setattr("rltools_host.build.tools.ensure_group", lambda _: None)
        code = cli.run([*way.words.split(), *words])
        captured = capsys.readouterr()
        return Outcome(code, f"{calls}{captured.out}", captured.err)

    return outcome


@pytest.mark.parametrize(("way", "option"), CASES)
def test_an_option_is_refused_or_has_an_effect(
    way: Way, option: Any, outcome: Any, tmp_path: Path
) -> None:
    without = outcome(way, [])
    assert (without.code, without.error) == (0, "")
    words = words_of(option, tmp_path)
    given = outcome(way, words)
    assert "invalid value" not in given.error
    if given.code == UsageError.exit_code:
        assert given.done == "[]" or json.loads(given.done.removeprefix("[]"))["error"]
        assert any(name in given.error for name in (*option.opts, *option.secondary_opts))
    else:
        assert given.code == 0
        assert given.done != without.done, f"{words} is ignored"


def test_every_command_is_tried() -> None:
    assert {way.command for way in WAYS} == set(COMMANDS)

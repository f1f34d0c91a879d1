"""No option is ignored: in each way of calling a command, each option is refused or has an effect.

A way is a line of words and what is called behind the command, which is noted here in place of
being done. An option has an effect where what is noted, or printed, is not as without it. What is
called is stored in calls.json: RLT_CALLS=write makes that again; look at the difference.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.commands import COMMANDS, cli
from rltools_host.errors import UsageError
from rltools_host.tree import PROJECT

PACKAGE = "rltools_host.commands"
STORED = Path(__file__).with_name("calls.json")
IN_A_PROJECT = "in a project of your own"
ALL_WORDS = [[name] for name in COMMANDS]


@dataclass(frozen=True)
class Way:
    """Words, the functions that are noted, and those of the words' own options."""

    words: str
    noted: tuple[str, ...]
    when: str = ""  # of the command's MODES

    @property
    def command(self) -> str:
        return self.words.split()[0]


def of(words: str, *noted: str, when: str = "") -> Way:
    return Way(words, tuple(f"{PACKAGE}.{name}" for name in noted), when)


WAYS = (
    of("adapt log --board host", "adapt.run"),
    of("boards", "doctor.run_boards"),
    of("check pendulum-td3", "check.run_experiment", when="of an experiment"),
    of("check gym:Pendulum-v1", "check.run_task", when="with gym:ID"),
    of("compare a b", "export.compare_runs"),
    of("completion bash"),
    of("confirm --board host", "policies.confirm"),
    of("demo", "demo.run"),
    of("doctor", "doctor.run"),
    of("emulate qemu-cortex-m7", "firmware.emulate", when="with --program train"),
    of("emulate b --program infer", "firmware.emulate", when="with --program infer"),
    of("evaluate r", "evaluate.run", "evaluate.evaluate_group", when="without --gate"),
    of("evaluate r --gate hover", "evaluate.evaluate_gate", when="with --gate"),
    of("export r", "export.run"),
    of("fit log", "fit.run"),
    of("flash teensy41 pendulum-td3", "firmware.flash"),
    of("fly r --board host", "fly.request_of", "fly.fly_board", when="with --board"),
    of("fly r --px4 udp:h:1", "fly.fly_px4", when="with --px4"),
    of("hil --board host", "policies.target_of_run", "policies.run_hil"),
    of("import f --contract pendulum", "import_policy.run", when="without --environment"),
    of("import f --environment E", "import_policy.run", when="with --environment"),
    of("new a", "new.run", when="without --gymnasium"),
    of("new a --gymnasium", "new.run", when="with --gymnasium"),
    of("policies --board host", "policies.list_policies"),
    of("push r --board host", "policies.target_of_run", "policies.push"),
    of("report r", "export.report"),
    of("rollback --board host", "policies.roll_back"),
    of("runs", "runs.list_runs", when="in the list of runs"),
    of("runs rename a b", "runs.rename_run", when="with rename"),
    of("runs delete a", "runs.delete_runs", when="with delete"),
    of("study", "study.list_studies", when="without a study's NAME"),
    of("study pendulum-ppo-ablation", "study.run_group", when="with a study's NAME"),
    of("test", "test.run", when="in the checkout"),
    of("test", "test.run_own", when=IN_A_PROJECT),
    of("tune pendulum-td3", "study.run_tune"),
    of("train pendulum-td3", "train.run"),
    of("train gym:Pendulum-v1", "train.run"),
    of("train --resume r", "train.run"),
    of("docs", "docs.build"),
    of("web", "web.write", when="without --serve"),
    of("web --serve", "web.write", when="with --serve"),
    of("bench train --quick --chart x", "bench.start"),
)
# Values that are read before anything is called.
VALUES = {
    "--activation": "silu",
    "--channels": "{folder}/object.json",
    "--fault": "nan@1",
    "--hidden": "8,8",
    "--output-activation": "tanh",
    "--seeds": "0-3",
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
    return [name, value.format(folder=folder)]


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
class Noted:
    """What a line came to."""

    code: int
    done: str
    error: str
    calls: list[str]


@pytest.fixture
def note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Any:
    (tmp_path / "object.json").write_text(json.dumps({"gamma": 0.9}))
    monkeypatch.chdir(tmp_path)

    def note(way: Way, words: list[str]) -> Noted:
        calls: list[str] = []
        if way.when == IN_A_PROJECT:
            monkeypatch.setattr(PROJECT, "root", tmp_path)
        for name in way.noted:

            def called(*arguments: Any, name: str = name, **named: Any) -> Any:
                calls.append(f"{name}{arguments}{sorted(named.items())}")
                return "what it came to"

            monkeypatch.setattr(name, called)
        for name in ("evaluate", "export"):
            monkeypatch.setattr(f"{PACKAGE}.{name}.find_group", lambda _: None)
        monkeypatch.setattr("rltools_host.training.group_plan.find_group", lambda _: None)
        monkeypatch.setattr("rltools_host.build.tools.ensure_group", lambda _: None)
        code = cli.run([*way.words.split(), *words])
        captured = capsys.readouterr()
        return Noted(code, f"{calls}{captured.out}", captured.err, calls)

    return note


def parts_of(noted: Noted, folder: Path) -> list[str]:
    """What was called, argument by argument, without what another machine has otherwise."""
    text = "; ".join(call.removesuffix("[]") for call in noted.calls)
    for place, name in ((folder, "FOLDER"), (PROJECT.root, "PROJECT")):
        text = text.replace(str(place), name)
    return re.sub(r" at 0x[0-9a-f]+", "", text.replace(f"{PACKAGE}.", "")).split(", ")


def check_stored(found: str, *key: str) -> None:
    calls: dict[str, str] = json.loads(STORED.read_text())
    name = ", ".join(filter(None, key))
    if os.environ.get("RLT_CALLS") == "write":
        new = dict(sorted({**calls, name: found}.items()))
        STORED.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n")
    else:
        assert found == calls[name]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.words} {way.when}".replace(" ", "_"))
def test_what_is_called_unless_an_option_says_otherwise(
    way: Way, note: Any, tmp_path: Path
) -> None:
    check_stored(", ".join(parts_of(note(way, []), tmp_path)), way.words, way.when)


@pytest.mark.parametrize(("way", "option"), CASES)
def test_an_option_is_refused_or_has_an_effect(
    way: Way, option: Any, note: Any, tmp_path: Path
) -> None:
    without = note(way, [])
    assert (without.code, without.error) == (0, "")
    words = words_of(option, tmp_path)
    given = note(way, words)
    assert "invalid value" not in given.error
    modes = {mode.when: mode for mode in COMMANDS[way.command].part("MODES", ())}
    if modes and option.name not in modes[way.when].takes:
        assert given.code == UsageError.exit_code
        assert given.done == "[]" or json.loads(given.done.removeprefix("[]"))["error"]
        name = max(option.opts, key=len)
        assert given.error.startswith(f"error: {name} has no effect {way.when}: leave it out, ")
    elif given.code == UsageError.exit_code:
        assert any(name in given.error for name in (*option.opts, *option.secondary_opts))
    else:
        assert given.code == 0
        assert given.done != without.done, f"{words} is ignored"
        both = zip_longest(*(parts_of(each, tmp_path) for each in (without, given)))
        changed = [f"{place}: {then}" for place, (now, then) in enumerate(both) if now != then]
        check_stored(", ".join(changed), way.words, way.when, words[0])


def test_what_is_stored_is_of_a_way() -> None:
    ways = {", ".join(filter(None, (way.words, way.when))) for way in WAYS}
    stored = json.loads(STORED.read_text())
    assert [key for key in stored if not {key, key.rpartition(", ")[0]} & ways] == []


def test_every_way_is_tried() -> None:
    tried = [(way.command, way.when) for way in WAYS]
    there = []
    for words in ALL_WORDS:
        command = " ".join(words)
        modes = COMMANDS[command].part("MODES", (SimpleNamespace(when=""),))
        there += [(command, mode.when) for mode in modes]
    assert set(tried) == set(there)


def test_every_option_goes_with_something() -> None:
    """And MODES name parameters that there are."""
    for words in ALL_WORDS:
        command = " ".join(words)
        if modes := COMMANDS[command].part("MODES", ()):
            names = {each.name for each in cli.load(words[-1], COMMANDS[command]).params}
            assert set().union(*(mode.takes for mode in modes)) == names - {"help"}

"""Names and units that are code, markup or a terminal's commands go nowhere, whoever wrote them."""

from __future__ import annotations

import copy
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from foreign_runs import make_foreign_run
from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.build.description import (
    comment_text,
    string_literal,
)
from rltools_host.commands import cli
from rltools_host.environments.headers import contract_of_run
from rltools_host.errors import DamagedFileError
from rltools_host.policies.contract import CHANNEL, parse_contract
from rltools_host.policies.core import LAYER
from rltools_host.policies.image import parse_policy, read_policy, read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import HEADER
from rltools_host.tree import Project

INJECTED = '1",0,1}}; inline int e=system("id'
HOSTILE = (
    'x"};',
    "a\\",
    "??/",
    "a\nb",
    "\x1b[2J",
    "\u202etxt",
    "x" * 40,
    3,
)


@pytest.mark.parametrize("text", [text for text in HOSTILE if isinstance(text, str)])
def test_cpp_that_is_written_has_them_as_text(text: str) -> None:
    """Also where nobody had checked them."""
    literal = string_literal(text)
    inner = literal[1:-1]
    assert (literal[0], literal[-1]) == ('"', '"')
    assert not set(inner) & set('"?\n\x1b')
    assert inner.replace("\\", "").isprintable()
    comment = comment_text(text)
    assert comment.isprintable()
    assert not set(comment) & set("\\?")


def places(document: Any, key: str) -> list[Any]:
    """The objects of a task's document that have a text of this name."""
    if key in ("name", "unit"):
        return [document["gymnasium"]["observations"][1], document["gymnasium"]["actions"][0]]
    return [document, document["gymnasium"]]


@pytest.mark.parametrize("key", ["name", "unit", "environment", "experiment"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_run_with_such_a_name_is_refused_before_anything_is_written(
    tmp_path: Path, key: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Project, "generated", tmp_path / "generated")
    run = make_foreign_run(tmp_path / "run", "gym:Pendulum-v1")
    good = json.loads((run / "run.json").read_text())
    good["environment"] = "Pendulum-v1"
    for index in range(2):
        document = copy.deepcopy(good)
        places(document, key)[index][key] = value
        (run / "run.json").write_text(json.dumps(document))
        with pytest.raises(DamagedFileError, match=r"run\.json is damaged"):
            contract_of_run(RunFolder.open(run).content)
    assert not (tmp_path / "generated").exists()


@pytest.mark.parametrize("words", ["hil --board host --run {run}", "push {run} --board host"])
def test_commands_that_build_for_a_run_refuse_it(
    tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Project, "generated", tmp_path / "generated")
    run = make_foreign_run(tmp_path / "run", "gym:Pendulum-v1")
    document = json.loads((run / "run.json").read_text())
    document["gymnasium"]["actions"][0]["unit"] = INJECTED
    (run / "run.json").write_text(json.dumps(document))
    assert cli.run(words.format(run=run).split()) == DamagedFileError.exit_code
    error = capsys.readouterr().err
    assert "is damaged (gymnasium: actions[0].unit is" in error
    assert "plain text of 1 to 15 bytes" in error
    assert not (tmp_path / "generated").exists()


def image_with(place: str, text: bytes) -> bytes:
    image = sample_images()["choosing" if place == "choice" else "pendulum"]
    parsed = parse_policy(image)
    tables = HEADER.size + len(parsed.layers) * LAYER.size
    channel = tables + CHANNEL.size  # the second one
    channels = len(parsed.observations) + len(parsed.actions)
    offset, size = {
        "experiment": (HEADER.size - 64, 32),
        "environment": (HEADER.size - 32, 32),
        "name": (channel, 24),
        "unit": (channel + 24, 16),
        "choice": (tables + channels * CHANNEL.size, 24),
    }[place]
    return patched(image, offset, f"{size}s", text)


@pytest.mark.parametrize("place", ["experiment", "environment", "name", "unit", "choice"])
@pytest.mark.parametrize("text", [b'x"};', b"\x1b[2J", "\u202e".encode()])
def test_an_image_with_such_a_name_is_refused(tmp_path: Path, place: str, text: bytes) -> None:
    """A board, which shows no names, takes it."""
    image = image_with(place, text)
    parse_policy(image)
    (tmp_path / "policy.rltp").write_bytes(image)
    with pytest.raises(DamagedFileError, match=r"policy\.rltp has a name or unit that is not pl"):
        read_policy(tmp_path / "policy.rltp")
    with pytest.raises(DamagedFileError, match="has a name or unit"):
        read_run_policy(make_policy_run(tmp_path / "run", image))


def test_a_board_with_such_a_contract_is_refused() -> None:
    def contract(name: bytes, unit: bytes) -> bytes:
        channels = CHANNEL.pack(b"x", b"m", -1.0, 1.0) + CHANNEL.pack(name, unit, -1.0, 1.0)
        return channels + struct.pack("<IHH", 1000, 1, 1)

    assert parse_contract(contract(b"u", b"N"), "the board").actions[0].unit == "N"
    for name, unit in ((b"\x1b]0;x\x07", b"N"), (b"u", b'"')):
        with pytest.raises(DamagedFileError, match="the contract of the board has a name or un"):
            parse_contract(contract(name, unit), "the board")

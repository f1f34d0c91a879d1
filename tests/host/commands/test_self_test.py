"""`rlt doctor --self-test`: passes here, and a fault of each kind is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rltools_host.commands import cli, self_test
from rltools_host.errors import RefusedError


def test_a_machine_with_other_bits_or_storage_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands are real ones where the next test runs; here they answer wrongly."""
    answers: dict[str, dict[str, Any]] = {
        "train": {"state_sha256": "0" * 64, "train_s": 1.0},
        "push": {},
        "policies": {"slots": [{"use": "active", "state_sha256": "f" * 64}]},
    }

    class Killed:
        """A push that was killed."""

        def __enter__(self) -> Killed:
            return self

        def __exit__(self, *_: object) -> None: ...
        def kill(self) -> None: ...
        def communicate(self) -> None: ...

    def call(_: self_test.Workbench, command: str, *__: str) -> dict[str, Any]:
        if command == "hil":
            raise RefusedError("1 of 1,000 | differs")
        return answers[command]

    monkeypatch.setattr(self_test.Workbench, "call", call)
    monkeypatch.setattr(self_test.Workbench, "start", lambda *_: Killed())
    monkeypatch.setattr(self_test, "KILLED_AFTER_S", (0.0,))
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--self-test", "--json"])
    assert ended.value.code == RefusedError.exit_code
    *lines, document = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("| ")][2:]
    assert [row.split(" | ")[1] for row in rows] == ["FAILED"] * 5
    assert {row.count(" | ") for row in rows} == {3}
    assert "cb477b641fdc" in rows[1]
    assert json.loads(document)["ok"] is False


@pytest.mark.all
def test_this_machine_passes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--self-test"])
    output = capsys.readouterr().out
    assert ended.value.code == 0, output
    assert output.count("| passed |") == 5

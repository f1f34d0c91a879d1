"""What is stated of a policy's contract, and what is assumed: the safe action and the time of a
step, in images, in exports and on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from foreign_runs import make_foreign_run
from policy_run import make_policy_run
from policy_samples import patched, sample_images
from rltools_host.commands.export import run as export
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.policies.core import DamagedPolicyError
from rltools_host.policies.image import parse_policy, read_run_policy
from rltools_host.policies.image_writing import restated
from rltools_host.policies.statements import assumptions

FLAGS_AT, STEP_ASSUMED, SAFE_ASSUMED = 24, 8, 16
HOLDS = {  # where an export holds its safe action
    "c": r"_safe_action\[\w+\] = \{(.*)\};",
    "arduino": r"kSafeAction\[\] = \{(.*)\};",
    "esp-idf": r"_safe_action\[\] = \{(.*)\};",
    "zephyr": r"_safe_action\[\w+\] = \{(.*)\};",
}


def assumed(image: bytes, flags: int) -> bytes:
    present = int.from_bytes(image[FLAGS_AT : FLAGS_AT + 4], "little")
    return patched(image, FLAGS_AT, "I", present | flags)


@pytest.fixture
def valves(tmp_path: Path) -> Path:
    """A run whose actions are 0 to 1 and -0.25 to 0.75, of which nobody states what is safe."""
    return make_policy_run(tmp_path / "valves", sample_images()["relu"])


def safe_actions_in(path: Path, to: str) -> list[str]:
    files = [path] if path.is_file() else sorted(path.rglob("*.h"))
    texts = [file.read_text() for file in files]
    return [found for text in texts for found in re.findall(HOLDS[to], text)]


@pytest.mark.parametrize("to", HOLDS)
def test_an_export_holds_the_stated_safe_action(
    to: str, valves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [channel.name for channel in read_run_policy(valves).actions]
    output = tmp_path / ("policy.h" if to == "c" else "out")
    written = export(str(valves), to, output)
    assert "0.5f, 0.25f" in safe_actions_in(written, to)
    said = capsys.readouterr().err
    assert f"the action is {names[0]} 0.5, {names[1]} 0.25, the middle" in " ".join(said.split())
    written = export(str(valves), to, output, safe_action="0,-0.25")
    assert "0.0f, -0.25f" in safe_actions_in(written, to)
    if to == "c":  # and states it to its reader
        assert "0 to 1; safe: 0\n" in written.read_text()
    assert "assumed" not in capsys.readouterr().err
    export(str(valves), to, output, safe_action=f"{names[1]}=0.75")
    assert "0.5f, 0.75f" in safe_actions_in(written, to)
    said = " ".join(capsys.readouterr().err.split())
    assert f"the action is {names[0]} 0.5, the middle" in said


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("1.01,0", "the safe action of .*: 1.01 lies outside of its range, 0 to 1"),
        ("0", "give a value for each of"),
        ("valves=0", 'unknown action "valves": did you mean valve'),
    ],
)
def test_what_is_no_safe_action_is_refused(given: str, sentence: str, valves: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        export(str(valves), "c", valves / "policy.h", safe_action=given)
    assert not (valves / "policy.h").exists()


def test_a_run_states_it_for_whatever_acts_here(valves: Path) -> None:
    document = json.loads((valves / "run.json").read_text())
    (valves / "run.json").write_text(json.dumps({**document, "safe_action": [0.0, None]}))
    image = read_run_policy(valves)
    assert image.evaluate([np.nan] * len(image.observations)).tolist() == [0.0, 0.25]
    action, normalized = image.runner.safe_action()
    assert (action.tolist(), normalized.tolist()) == ([0.0, 0.25], [-1.0, 0.0])
    for wrong in ([0.0], [2.0, 0.0]):
        (valves / "run.json").write_text(json.dumps({**document, "safe_action": wrong}))
        with pytest.raises(DamagedFileError, match=r"safe_action in its run\.json is none"):
            read_run_policy(valves)


# -- images ----------------------------------------------------------------------------------------


def test_readers_know_what_is_assumed_and_refuse_what_they_do_not_know() -> None:
    image = sample_images()["pendulum"]
    for flags in (STEP_ASSUMED, SAFE_ASSUMED, STEP_ASSUMED | SAFE_ASSUMED):
        found = parse_policy(assumed(image, flags))
        assert found.stated.assumed == flags
        found.verify()
    for flags in (32, 1 << 31):
        with pytest.raises(DamagedPolicyError, match="malformed"):
            parse_policy(assumed(image, flags))


@pytest.mark.parametrize("name", ["pendulum", "recurrent_pendulum"])
def test_the_time_of_a_step_that_was_assumed_can_be_stated(name: str) -> None:
    plain = sample_images()[name]
    before = parse_policy(assumed(plain, STEP_ASSUMED | SAFE_ASSUMED))
    (line, *_) = assumptions(before, None, "--step-interval-us")
    assert line.startswith(f"assumed: a step takes {before.step_interval_us:,} us, which nobody")
    after = restated(before, (0.0,) * len(before.actions), 3 * before.step_interval_us)
    after.verify()
    assert after.step_interval_us == 3 * before.step_interval_us
    assert (after.stated.assumed, parse_policy(after.data).stated.assumed) == (0, 0)
    assert assumptions(after, "x", "y") == []
    if before.recurrence is not None:
        assert after.recurrence is not None
        trained = [each.recurrence.trained_interval_us for each in (before, after)]  # type: ignore[union-attr]
        assert trained[1] == 3 * trained[0]
    same = restated(parse_policy(plain), (), parse_policy(plain).step_interval_us)
    assert same.data == plain
    with pytest.raises(UsageError, match=r"--step-interval-us 1: its contract states [\d,]+ us"):
        restated(parse_policy(plain), (), 1)
    for wrong in (0, 600_000_001, 86_400_000_000):
        with pytest.raises(UsageError, match="a step of a policy takes 1 to 600,000,000 us"):
            restated(before, (), wrong)


# -- Gymnasium tasks --------------------------------------------------------------------------


def test_a_run_of_earlier_tools_is_read_and_what_it_assumed_is_said(tmp_path: Path) -> None:
    """Its run.json says neither; its image has no flags."""
    image = read_run_policy(make_foreign_run(tmp_path / "run", "gym:Pendulum-v1"))
    first, *others = assumptions(image, "--safe-action", "--step-interval-us")
    assert first.startswith("assumed: a step takes 50,000 us, which nobody is known to have stated")
    assert others == []  # the contract that its pendulum has here states that

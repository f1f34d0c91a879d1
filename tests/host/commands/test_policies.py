"""What `rlt policies` reports of a board: its slots, and what the acting policy states."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from policy_samples import patched, sample_images
from rltools_host.boards.messages import PolicySlot
from rltools_host.boards.policies import Slots
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import BoardPolicies
from rltools_host.commands import policies
from rltools_host.policies.contract import (
    ENTRY_AT_REST,
    HAS_NORMALIZER,
    SAFE_ACTION_ASSUMED,
    STEP_INTERVAL_ASSUMED,
    EntryEnvelope,
)
from rltools_host.policies.image import parse_policy
from rltools_host.policies.image_writing import with_entry

SHA, STATE = 32 * "ab", 32 * "cd"
PLACE = PolicyTarget("host")


def slot(number: int, use: int = 1, **changes: Any) -> PolicySlot:
    fields: dict[str, Any] = {
        "slot": number,
        "slots": 2,
        "use": use,
        "slot_bytes": 65536,
        "image_bytes": 12345,
        "sha256": SHA,
        "state_sha256": STATE,
        "experiment": "pendulum-td3",
        "environment": "Pendulum-v1",
        "seed": 0,
        "step": 10_000,
        "trial_left_ms": 0,
        "last_drop": 0,
        "refused_error": 0,
        "refused_reason": 0,
        "refused_at": 0,
    }
    return PolicySlot(**{**fields, **changes})


EMPTY = {"image_bytes": 0, "sha256": "", "state_sha256": "", "seed": 3, "step": 4}


def board(*slots: PolicySlot, **fields: Any) -> BoardPolicies:
    usual = {"armed": False, "contract": "pendulum", "device": "Host"}
    return BoardPolicies(Slots(slots), **{**usual, **fields})


def test_what_the_acting_policy_states(monkeypatch: pytest.MonkeyPatch) -> None:
    image = parse_policy(sample_images()["lstm_quadrotor"])
    text = policies.slot_lines(board(slot(0), acting=image))
    assert text[2:] == [f"assumed: entry at rest only ({ENTRY_AT_REST})"]
    entry = EntryEnvelope(2.0, 0.5, 0.5, 1.5, 1.25)
    stating = with_entry(image, entry)
    assert policies.slot_lines(board(slot(0), acting=stating))[2:] == [f"entry: {entry}"]
    flags = STEP_INTERVAL_ASSUMED | SAFE_ACTION_ASSUMED | HAS_NORMALIZER
    assuming = parse_policy(patched(sample_images()["relu"], 24, "I", flags))
    found = board(slot(0), acting=assuming, assumes_safe=True)
    interval, safe = policies.slot_lines(found)[2:]
    assert interval.startswith("assumed: a step takes 2,500 us")
    assert "the action is" in safe
    made = SimpleNamespace(policies_on=lambda *_, **__: found)
    monkeypatch.setattr(policies, "policies_of", lambda _: made)
    document = policies.list_policies(PLACE)
    assert document["entry"] is None
    assert document["assumed"] == {"step_interval_us": 2_500, "safe_action": [0.5, 0.25]}
    damaged = board(slot(0), unread="malformed")
    assert policies.slot_lines(damaged)[2:] == ["the acting policy cannot be read here: malformed"]


def test_slots_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    slots = (slot(0, 4, trial_left_ms=1250, last_drop=3), slot(1, 0, **EMPTY), slot(2, 5))
    found = board(*slots, has_built_in=True)
    made = SimpleNamespace(policies_on=lambda place, **_: found if place is PLACE else None)
    monkeypatch.setattr(policies, "policies_of", lambda _: made)
    document = policies.list_policies(PLACE, json_output=True)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == document
    first, second, third = document.pop("slots")
    assert document == {
        "board": "host",
        "contract": "pendulum",
        "device": "Host",
        "armed": False,
        "slot_bytes": 65536,
        "last_drop": "fault",
        "built_in": True,
        "entry": None,
        "assumed": None,
    }
    assert first == {
        "slot": 0,
        "use": "previous",
        "experiment": "pendulum-td3",
        "environment": "Pendulum-v1",
        "seed": 0,
        "step": 10_000,
        "bytes": 12345,
        "sha256": SHA,
        "state_sha256": STATE,
        "trial_left_s": 1.25,
    }
    assert list(second.values()) == [1, "empty", *[None] * 4, 0, *[None] * 3]
    assert (third["use"], third["trial_left_s"]) == ("use 5", None)
    policies.list_policies(PLACE)
    assert "{" not in capsys.readouterr().out

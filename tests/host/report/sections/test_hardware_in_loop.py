"""The report's section with what `rlt hil` found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policy_run import make_policy_run, section_html
from policy_samples import sample_images
from rltools_host.policies.image import parse_policy
from rltools_host.report.sections.board import hardware_in_loop

IMAGE = parse_policy(sample_images()["pendulum"])
COST = {
    "min": 4411,
    "mean": 4892.99,
    "median": 5023,
    "p99": 5244,
    "p999": 5244,
    "max": 5244,
    "histogram": {"edges": [4411, 5245], "counts": [2000]},
}


def result(**changes: Any) -> dict[str, Any]:
    return {
        "board": "qemu-<m7>",
        "experiment": "pendulum",
        "implementation": "CortexM7",
        "contract": "pendulum",
        "network": "3-64-64-1",
        "max_abs_diff": 0.0,
        "overhead": 12,
        "policy_sha256": IMAGE.sha256,
        "samples": 2000,
        "instructions": COST,
        "tick": {"instructions": {**COST, "max": 7777}},
        "flash_bytes": 58544,
        "ram_bytes": 185464,
        "stack_bytes": None,
        "outputs_sha256": "0123456789abcdef" * 4,
        "parity": {
            "inputs": 1000,
            "not_finite_inputs": 9,
            "mismatches": 2,
            "executor_calls": 65,
            "executor_mismatches": 0,
        },
        **changes,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run")


def html_of(folder: Path, *contents: str) -> str:
    for number, content in enumerate(contents):
        (folder / f"hil-{number}.json").write_text(content)
    return section_html(hardware_in_loop, folder, IMAGE)


def test_what_does_not_belong_is_left_out(folder: Path) -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"policy_sha256": "00" * 32},
        {"outputs_sha256": None},
        {"instructions": {"min": 1}},
    )
    results = [json.dumps(result(**changes)) for changes in wrong]
    assert not html_of(folder, "{", "[]", "{}", *results)
    assert "qemu-&lt;m7&gt;" in html_of(folder, json.dumps(result()))

"""A run's folder with a policy and no more, what a section of the report shows of it, and what a
group of runs states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from policy_samples import sample_images
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report.markup import Section

GROUP: dict[str, Any] = {  # in its group.json
    "kind": "seeds",
    "title": "A title",
    "experiment": "pendulum-td3",
    "board": "host",
    "state": "paused",
    "seeds": [0, 1],
    "settings": [],
    "variants": [{"name": "", "label": "", "settings": []}],
    "x_axis": "steps",
    "y_axis": "return",
    "tensorboard": False,
}


def make_policy_run(path: Path, image: bytes | None = None) -> Path:
    """Its policy is an untrained one for the pendulum where no other one is given."""
    image = image or sample_images()["pendulum"]
    path.mkdir(parents=True)
    state = parse_policy(image).state_sha256
    (path / "run.json").write_text(json.dumps({"state_sha256": state, "contract": "pendulum"}))
    (path / "policy.rltp").write_bytes(image)
    return path


def section_html(
    section: Callable[[Any], Section | None], folder: Path, image: PolicyImage | None
) -> str:
    """Of a run with this policy; empty where the page has no such section."""
    found = section(SimpleNamespace(folder=SimpleNamespace(path=folder), image=image))
    return "" if found is None else found.html()

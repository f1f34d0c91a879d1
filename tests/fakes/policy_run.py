"""A run's folder with a policy and no more."""

from __future__ import annotations

import json
from pathlib import Path

from policy_samples import sample_images
from rltools_host.policies.image import parse_policy


def make_policy_run(path: Path, image: bytes | None = None) -> Path:
    """Its policy is an untrained one for the pendulum where no other one is given."""
    image = image or sample_images()["pendulum"]
    path.mkdir(parents=True)
    state = parse_policy(image).state_sha256
    (path / "run.json").write_text(json.dumps({"state_sha256": state, "contract": "pendulum"}))
    (path / "policy.rltp").write_bytes(image)
    return path

"""Actions that are choices, of which observations forbid some."""

from __future__ import annotations

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.errors import UsageError
from rltools_host.policies import frameworks, onnx_model
from rltools_host.policies.contract import masks_of
from rltools_host.policies.image import parse_policy


def test_what_is_forbidden_is_not_chosen() -> None:
    image = parse_policy(sample_images()["masked"])
    image.verify()
    # of gear:low, middle, high, torque, horn:off, on
    assert masks_of(image.observations, image.actions) == [3, None, 0, None, 4, 2]
    seen = np.random.default_rng(3).uniform(0, 1, (300, 5)).astype(np.float32)
    seen[:, 1] = np.random.default_rng(4).uniform(-50, 50, 300)  # a speed, so that outputs vary
    outputs = image.output(seen)
    free = np.stack([outputs[:, :3].argmax(axis=1), outputs[:, 4:].argmax(axis=1)], axis=1)
    for index, mask in enumerate(masks_of(image.observations, image.actions)):
        if mask is not None:
            outputs[seen[:, mask] < 0.5, index] = -1e30
    open_horn = (seen[:, 2] >= 0.5) | (seen[:, 4] >= 0.5)  # else both are forbidden, and so neither
    gear, _, horn = image.evaluate(seen).T
    np.testing.assert_array_equal(gear, outputs[:, :3].argmax(axis=1))
    np.testing.assert_array_equal(
        horn, np.where(open_horn, outputs[:, 4:].argmax(axis=1), free[:, 1])
    )
    assert (gear != free[:, 0]).any()
    assert (horn != free[:, 1]).any()
    for framework in (onnx_model.encode_onnx, frameworks.pytorch_module):
        with pytest.raises(UsageError, match="whose observations forbid choices is written yet"):
            framework(image)

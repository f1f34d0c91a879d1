"""Files that other libraries wrote (tests/goldens/foreign): the image gives their actions."""

from __future__ import annotations

import numpy as np
import pytest

from foreign_files import GOLDENS, Golden
from rltools_host.foreign.proof import LARGEST_DIFFERENCE, SAMPLES, ranges_of
from rltools_host.foreign.run import read_policy
from rltools_host.policies.image import parse_policy
from rltools_host.policies.image_writing import sampled


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.file)
def test_the_image_gives_the_librarys_actions(golden: Golden) -> None:
    imported = read_policy(golden.request())
    assert imported.policy.library == golden.library
    assert imported.image.shape == golden.shape
    contract = imported.place.contract
    actions = np.load(golden.recorded).astype(float)
    assert actions.shape == (SAMPLES, len(contract.actions))
    low, high = ranges_of(contract.actions)
    given = imported.image.evaluate(sampled(contract, SAMPLES)).astype(float)
    difference = np.abs(given - actions) / ((high - low) / 2)
    assert difference.max() <= LARGEST_DIFFERENCE
    # Of every action there are some within the range: a saturated one would prove little.
    assert ((actions > low) & (actions < high)).mean(axis=0).min() > 0.2
    parse_policy(imported.image.data).verify()

"""rlt_policy.h beside the core: the same bits and the same reasons, and nothing out of bounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from beside_core import FLAGS, require_the_cores_bits
from policy_samples import patched, sample_images
from rltools_host.policies import export, folders
from rltools_host.policies.contract import RESET_AT_ACTIVATION, EntryEnvelope
from rltools_host.policies.core import activations
from rltools_host.policies.image import parse_policy
from rltools_host.policies.image_writing import with_entry


def images() -> dict[str, bytes]:
    """Each network of the samples, one that a fault does not reset, and one with an envelope."""
    found = dict(sample_images())
    quadrotor = found["recurrent_quadrotor"]
    found["keeping"] = patched(quadrotor, 144 + 10, "H", RESET_AT_ACTIVATION)
    entry = EntryEnvelope(0, 0.3, 0.35, 1.0, 0.5)
    found["entered"] = with_entry(parse_policy(found["small_pendulum"]), entry).data
    return found


@pytest.mark.parametrize(
    "kind", ["plain", *(pytest.param(kind, marks=pytest.mark.all) for kind in list(FLAGS)[1:])]
)
def test_it_is_the_core_for_whole_and_damaged_images(kind: str, tmp_path: Path) -> None:
    require_the_cores_bits(images(), tmp_path, 100 if kind == "plain" else 500, kind)


def test_it_has_the_cores_activations_and_is_carried_unchanged() -> None:
    text = export.RUNTIME.read_text(encoding="utf-8")
    bits = {name.lower(): int(bit, 16) for name, bit in re.findall(r"WITH_(\w+) = (0x\w+)", text)}
    assert [bits[name] for name in activations()] == [1 << i for i in range(len(activations()))]
    image = parse_policy(sample_images()["pendulum"])
    assert text in export.c_header(image)
    assert text.encode() in folders.zephyr_module(image)[1]["include/pendulum_td3_policy.h"]

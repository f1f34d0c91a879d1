"""A quadrotor's flights in WebAssembly: those of the gate on this machine, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policy_samples import sample_images
from programs import in_node, require_node
from quadrotor_policies import controller
from rltools_host.build import tools
from rltools_host.build.native import COMPILER_GROUP, FLIGHT, KINDS, build_modules, module_path
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.simulator import Cause
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE
from rltools_host.web.site import flight_document, gate_document

HERE = TREE.root / "tests" / "host" / "web"
PAGE = TREE.root / "host" / "rltools_host" / "web" / "page"
RELAXED = "--experimental-wasm-relaxed-simd"
FLIGHTS = 6
GATES = ("hover", "push", "steady-wind", "figure-eight")


def flown_in_node(image: bytes, folder: Path, *flags: str) -> list[dict[str, Any]]:
    gates = [{**gate_document(name), "count": FLIGHTS} for name in GATES]
    (folder / "policy.rltp").write_bytes(image)
    (folder / "gates.json").write_text(json.dumps(gates))
    (folder / "flight.json").write_text(json.dumps(flight_document()))
    modules = [module_path(FLIGHT, kind) for kind in ("lanes", "exact")]
    lines = in_node(
        *(*flags, HERE / "fly_in_node.mjs", PAGE, folder / "flight.json", *modules),
        *(folder / "policy.rltp", folder / "gates.json"),
    )
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.all
@pytest.mark.parametrize("kind", KINDS)
def test_flights_have_the_bits_of_the_gate_here(kind: str, tmp_path: Path) -> None:
    """Also of policies that see sums of what they observed, that crash, or have a hidden state."""
    require_node()
    tools.ensure_group(COMPILER_GROUP)
    build_modules([FLIGHT])
    flags = [RELAXED] if kind == "lanes" else ["--no-" + RELAXED[2:]]
    recurrent = sample_images()["recurrent_quadrotor"]
    policies = [controller(), controller(sum_gain=0.05), controller(roll_sign=-1.0), recurrent]
    ends: set[int] = set()
    for image in policies:
        policy = parse_policy(image)
        for name, found in zip(GATES, flown_in_node(image, tmp_path, *flags), strict=True):
            if found["kind"] != kind:
                pytest.skip("node does not fuse relaxed SIMD's multiply-add on this processor")
            gate = load_gate(name).with_starts(FLIGHTS, None)
            outcomes = gate.fly(policy)
            assert found["flown"] == FLIGHTS
            assert found["hovered"] == np.count_nonzero(outcomes["cause"] == Cause.SUCCESS)
            outcome, samples = gate.trace(policy, 0)
            ends.add(int(outcome["cause"]))
            if len(samples) == gate_document(name)["ticks"]:
                assert found["cause"] == 0
                assert found["moment"] == samples["reading"][-1].tobytes().hex()
            else:
                assert found["cause"] == outcome["cause"]
    assert len(ends) > 1

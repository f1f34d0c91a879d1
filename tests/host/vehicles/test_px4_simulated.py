"""Which vehicles are believed to be simulated."""

from __future__ import annotations

import pytest

from rltools_host.errors import RefusedError
from rltools_host.vehicles.px4_simulated import OUTPUT_PARAMETERS, Evidence, judge

SITL = 5283920058631409231  # what PX4's program for a PC has said for years
REAL = 0x0000003532385117


@pytest.mark.parametrize("system", [1, 2, 9, 254])
def test_the_program_for_a_pc_is_believed_by_its_identity(system: int) -> None:
    evidence = Evidence(SITL + system - 1, system, has_flag=False)
    assert judge(evidence, "it").is_sitl
    for wrong in (-2, -1, 1, 2):
        with pytest.raises(RefusedError, match="does not say that it is simulated"):
            judge(Evidence(SITL + system - 1 + wrong, system, has_flag=False), "it")


@pytest.mark.parametrize("uid", [0, REAL, SITL + 1])
@pytest.mark.parametrize("mode", [None, 0, 1, 2, 3, -1, 2.0])
@pytest.mark.parametrize("has_flag", [False, True])
def test_a_flight_controller_needs_flag_and_parameter(
    uid: int, mode: float | None, has_flag: bool
) -> None:
    evidence = Evidence(uid, 1, has_flag, {} if mode is None else {"SYS_HITL": mode})
    if has_flag and mode in (1, 2):
        simulation = judge(evidence, "it")
        assert not simulation.is_sitl
        assert "SYS_HITL" in simulation.by
        return
    with pytest.raises(RefusedError) as caught:
        judge(evidence, "the vehicle")
    sentence = str(caught.value)
    assert sentence.startswith("the vehicle does not say that it is simulated: ")
    assert ("heartbeat has" if has_flag else "heartbeat lacks") in sentence
    assert ("does not tell" if mode is None else f"has {mode:g} for") in sentence


@pytest.mark.parametrize("name", OUTPUT_PARAMETERS)
def test_a_motor_on_a_real_output_is_refused(name: str) -> None:
    for function, is_motor in ((0, False), (100, False), (101, True), (112, True), (113, False)):
        evidence = Evidence(REAL, 1, True, {"SYS_HITL": 2, name: function})
        if not is_motor:
            judge(evidence, "it")
            continue
        with pytest.raises(RefusedError, match=name):
            judge(evidence, "it")


def test_every_driver_of_outputs_is_looked_at() -> None:
    assert len(set(OUTPUT_PARAMETERS)) == 80
    for name in ("PWM_MAIN_FUNC1", "PWM_AUX_FUNC8", "UAVCAN_EC_FUNC8", "PCA9685_FUNC16"):
        assert name in OUTPUT_PARAMETERS
    assert all(len(name) <= 16 for name in OUTPUT_PARAMETERS)

"""Whether a PX4 is simulated: refused unless it says so itself, in a way that a real one cannot.

docs/flight.md has the reasons. There are two ways to be believed:

* It is PX4's program for a PC ("SITL"), which drives no hardware: the board's identity that is
  compiled into it, AUTOPILOT_VERSION.uid, is that of its simulation.
* It is a flight controller that was started with a simulator (SYS_HITL 1 or 2): its heartbeat has
  the flag for that, the parameter agrees, and none of its real outputs is for a motor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rltools_host.errors import FlightError, RefusedError
from rltools_host.vehicles.px4 import Parameter, Px4Vehicle

# BOARD_OVERRIDE_UUID of boards/px4/sitl is "SIMULATIONID0000"; the uid is its second word of four
# bytes above its third, and mavlink_main.cpp adds the system id less 1.
SITL_UID = int.from_bytes(b"ONIDLATI", "little")
MODE_PARAMETER = "SYS_HITL"
SIMULATED_MODES = {1: "an external simulator", 2: "PX4's simulator in hardware"}
# Parameters of the drivers of real outputs, by what they have in common, and how many each has.
OUTPUTS = {
    **dict.fromkeys(("PWM_MAIN", "PWM_AUX", "TAP_ESC", "UAVCAN_EC", "UCAN1_ESC"), 8),
    **dict.fromkeys(("VOXL_ESC", "VOXL2_IO"), 4),
    **dict.fromkeys(("PCA9685", "VTQ_IO"), 16),
}
OUTPUT_PARAMETERS = tuple(
    f"{kind}_FUNC{number}" for kind, count in OUTPUTS.items() for number in range(1, count + 1)
)
MOTORS = range(101, 113)  # of what an output is for: motors 1 to 12


@dataclass(frozen=True)
class Evidence:
    """What was looked at."""

    uid: int  # of AUTOPILOT_VERSION; 0: not told
    system: int  # the vehicle's system id
    has_flag: bool  # MAV_MODE_FLAG_HIL_ENABLED in the heartbeat
    parameters: dict[str, Parameter] = field(default_factory=dict)

    @property
    def is_sitl(self) -> bool:
        return self.uid == SITL_UID + self.system - 1

    @property
    def motors(self) -> list[str]:
        """Its real outputs that are for motors."""
        return [name for name in OUTPUT_PARAMETERS if self.parameters.get(name) in MOTORS]


@dataclass(frozen=True)
class Simulation:
    """How a vehicle is known to be simulated."""

    by: str  # in words
    is_sitl: bool


def collect(vehicle: Px4Vehicle) -> Evidence:
    version = vehicle.request("AUTOPILOT_VERSION")
    uid = int(version.uid) if version is not None else 0
    system = vehicle.target.system
    evidence = Evidence(uid, system, vehicle.says_simulated)
    if evidence.is_sitl:
        return evidence
    parameters = vehicle.parameters((MODE_PARAMETER, *OUTPUT_PARAMETERS))
    return Evidence(uid, system, vehicle.says_simulated, parameters)


def judge(evidence: Evidence, name: str) -> Simulation:
    """RefusedError unless the evidence says that the vehicle is simulated."""
    if evidence.is_sitl:
        return Simulation("PX4's program for a PC, by its board's identity", is_sitl=True)
    value = evidence.parameters.get(MODE_PARAMETER)
    simulator = SIMULATED_MODES.get(int(value)) if value is not None else None
    if not evidence.has_flag or simulator is None:
        flag = "has" if evidence.has_flag else "lacks"
        stated = "does not tell" if value is None else f"has {value:g} for"
        raise RefusedError(
            f"{name} does not say that it is simulated: its board's identity is not that of PX4's "
            f"program for a PC, its heartbeat {flag} the flag of a simulation, and it {stated} "
            f"{MODE_PARAMETER}"
        )
    if motors := evidence.motors:
        raise RefusedError(
            f"{name} runs {simulator}, and real outputs of it are for motors ({', '.join(motors)}):"
            " choose a simulated airframe (SYS_AUTOSTART 1100), or set these parameters to 0"
        )
    return Simulation(f"{simulator}, by {MODE_PARAMETER} and its heartbeat", is_sitl=False)


def require_still(vehicle: Px4Vehicle, simulation: Simulation) -> None:
    """The flag of a simulation in hardware, in each heartbeat of the flight."""
    if not simulation.is_sitl and not vehicle.says_simulated:
        raise FlightError(f"{vehicle.name} does not say any more that it is simulated")

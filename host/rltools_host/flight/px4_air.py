"""A flight in the air: where it is to be, what is expected of PX4, what must not happen."""

from __future__ import annotations

import math

import numpy as np

from rltools_host.errors import FlightError
from rltools_host.flight import px4_simulated, series
from rltools_host.flight.px4_modes import Mode
from rltools_host.flight.px4_policy import MODE_NAME
from rltools_host.flight.px4_simulated import Simulation
from rltools_host.flight.px4_vehicle import GlobalPosition, Px4Vehicle
from rltools_host.flight.series import FloatArray, Sample

HEIGHT_M = 5.0  # of the target above the ground
POLICY_SILENCE_S, PX4_SILENCE_S = 1.0, 5.0  # without a position: while the policy flies, or PX4
EARTH_RADIUS_M = 6371000.0  # as in PX4's projection


class Air:
    """What one flight knows from its beginning on the ground."""

    def __init__(
        self,
        vehicle: Px4Vehicle,
        simulation: Simulation,
        turns_to_heading: bool,
        ground: Sample,
        place: GlobalPosition,
    ) -> None:
        self.vehicle = vehicle
        self.allowed: set[Mode] = set()  # PX4's modes, as the flight stands
        self.target_ned: FloatArray = np.subtract(ground.position_ned, (0.0, 0.0, HEIGHT_M))
        self._simulation = simulation
        self._turns_to_heading = turns_to_heading
        self._ground = ground
        self._place = place

    def watch(self, silence_s: float = PX4_SILENCE_S) -> None:
        """FlightError where something happens that this flight did not ask for."""
        vehicle = self.vehicle
        silent = vehicle.clock() - vehicle.sample_at
        if silent > silence_s:
            raise FlightError(f"{vehicle.name} has told no position for {silent:.1f} s")
        px4_simulated.require_still(vehicle, self._simulation)
        if not vehicle.is_armed:
            raise FlightError(f"{vehicle.name} was disarmed in the air{vehicle.reason()}")
        if vehicle.mode not in self.allowed:
            vehicle.wait(lambda: False, 0.3)  # why, may come behind
            if vehicle.has_said(MODE_NAME, within_s=3.0):
                raise FlightError(f"{vehicle.name} fell back to {vehicle.mode}{vehicle.reason()}")
            raise FlightError(
                f"somebody or PX4 itself changed the mode of {vehicle.name} to {vehicle.mode}"
                f"{vehicle.reason()}"
            )

    @property
    def sample(self) -> Sample:
        assert self.vehicle.sample is not None, "there was one on the ground"
        return self.vehicle.sample

    @property
    def height_m(self) -> float:
        return self._ground.position_ned[2] - self.sample.position_ned[2]

    @property
    def yaw(self) -> float:
        """Which way the policy's frame points: as the vehicle does, or east."""
        return series.yaw_of(self.sample.attitude) if self._turns_to_heading else 0.0

    def place_of(self, ned: FloatArray) -> GlobalPosition:
        """A place near the ground's, as the globe has it."""
        north, east, down = ned - np.array(self._ground.position_ned)
        degrees_1e7 = 1e7 * math.degrees(1.0 / EARTH_RADIUS_M)
        parallel = math.cos(math.radians(self._place.latitude_1e7 * 1e-7))
        return GlobalPosition(
            self._place.latitude_1e7 + round(north * degrees_1e7),
            self._place.longitude_1e7 + round(east * degrees_1e7 / parallel),
            self._place.altitude_m - float(down),
        )

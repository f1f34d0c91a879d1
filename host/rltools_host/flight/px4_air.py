"""A flight in the air: where it is to be, what is expected of PX4, what must not happen."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rltools_host.errors import FlightError
from rltools_host.flight import px4_simulated, series
from rltools_host.flight.px4_crash import CrashWatch
from rltools_host.flight.px4_landing import termination_of
from rltools_host.flight.px4_modes import Mode
from rltools_host.flight.px4_policy import MODE_NAME
from rltools_host.flight.px4_simulated import Simulation
from rltools_host.flight.px4_vehicle import GlobalPosition, Px4Vehicle
from rltools_host.flight.series import FloatArray, Sample

HEIGHT_M = 5.0  # of the target above the ground
LOWEST_M = 1.0  # of a vehicle that has climbed and is not to land
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
        self.crash = CrashWatch(ground)
        self.has_climbed = False
        self.on_sample: Callable[[Sample], None] = lambda _: None  # told of each one
        vehicle.on_sample = self._take

    def _take(self, sample: Sample) -> None:
        self.crash.take(sample)
        self.on_sample(sample)

    def watch(self, silence_s: float = PX4_SILENCE_S) -> None:
        """FlightError where something happens that this flight did not ask for."""
        vehicle = self.vehicle
        silent = vehicle.clock() - vehicle.sample_at
        if silent > silence_s:
            raise FlightError(f"{vehicle.name} has told no position for {silent:.1f} s")
        px4_simulated.require_still(vehicle, self._simulation)
        self._watch_for_crash()
        if not vehicle.is_armed:
            raise FlightError(f"{vehicle.name} was disarmed in the air{vehicle.reason()}")
        if vehicle.mode not in self.allowed:
            vehicle.wait(lambda: False, 0.3)  # why, may come behind
            if (said := vehicle.said(MODE_NAME, within_s=3.0)) is not None:
                raise FlightError(f'{vehicle.name} fell back to {vehicle.mode} (it says "{said}")')
            raise FlightError(
                f"somebody or PX4 itself changed the mode of {vehicle.name} to {vehicle.mode}"
                f"{vehicle.reason()}"
            )

    def _watch_for_crash(self) -> None:
        vehicle, crash = self.vehicle, self.crash
        if vehicle.is_terminated:
            crash.note(termination_of(vehicle))
        elif self.has_climbed and self.height_m < LOWEST_M:
            crash.note(f"it came down to the ground in PX4's mode {vehicle.mode}")
        if crash.found:
            raise FlightError(f"{vehicle.name} crashed: {crash.found}")

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

"""The Crazyflie's app and PX4's module as libraries of this machine, in the sources that ship, in a
vehicle that a test flies: an estimate comes in, the motors' thrusts go out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from firmware_frames import (
    AT_TARGET,
    CRAZYFLIE_MOTORS,
    PX4_ROTORS,
    Floats,
    Motor,
    State,
    Target,
    crazyflie_measured,
    px4_measured,
    px4_motors,
)
from programs import output_of
from px4_build import MODULE, interface, module_flags
from px4_build import TESTS as PX4_TESTS
from rltools_host.tree import TREE

APP = TREE.root / "integrations/crazyflie/src"
TESTS = TREE.root / "tests/integrations/crazyflie"
LIBRARY = TREE.include
FLAGS = ("-O0", "-fPIC", "-ffp-contract=off", "-march=native")  # no level changes a bit
Spoil = Callable[[Floats], None]


# -- builds ----------------------------------------------------------------------------------------


def build_crazyflie(
    folder: Path,
    headers: Sequence[str] = (f"-I{TESTS / 'interface'}",),
    more: Sequence[Path] = (),
) -> Path:
    """`headers`: where the firmware's are, the tests' declarations or its own, and its flags;
    `more`: sources of it."""
    include = [*headers, f"-I{APP}", f"-I{APP / 'policy'}", f"-I{LIBRARY}"]
    sources = {
        **dict.fromkeys(more, ("gcc", "-std=gnu11", "-w")),
        APP / "crazyflie_os.c": ("gcc", "-std=gnu11"),
        TESTS / "crazyflie_flight.c": ("gcc", "-std=gnu11"),
        APP / "policy/policy_controller.cpp": ("g++", "-std=c++17"),
        TESTS / "crazyflie_observation.cpp": ("g++", "-std=c++17"),
    }
    objects = []
    for source, compiler in sources.items():
        objects.append(folder / f"{source.stem}.o")
        output_of(*compiler, *FLAGS, *include, "-c", source, "-o", objects[-1])
    library = folder / "crazyflie_flight.so"
    output_of("g++", "-shared", "-Wl,--wrap=rlt_decide", *objects, "-o", library, "-lm")
    return library


def build_px4(folder: Path) -> Path:
    # As PX4 compiles it where that concerns numbers.
    numbers = ("-fno-signed-zeros", "-fno-trapping-math", "-freciprocal-math", "-fno-math-errno")
    flags = (*FLAGS, *numbers, *module_flags())
    library = folder / "px4_flight.so"
    headers = interface(folder, "setpoint-config")
    source = PX4_TESTS / "px4_flight.cpp"
    output_of("g++", "-shared", *flags, *headers, f"-I{MODULE}", source, "-o", library)
    return library


# -- vehicles --------------------------------------------------------------------------------------


class Vehicle(Protocol):
    motors: tuple[Motor, ...]  # where each is, in the firmware's order

    def take_off(self, image: bytes) -> None:
        """The policy has the vehicle, which hovers at its target."""

    def enter_again(self) -> Floats | None:
        """The policy that has it gives it back and takes it again; the thrusts of its first tick,
        at the target."""

    def tick(self, state: State, spoil: Spoil | None = None) -> Floats | None:
        """2 ms, and the motors' thrusts; None where the policy does not fly (any more)."""

    def observation(self) -> Floats:
        """What the app or the module has made of the last tick."""


@dataclass
class Crazyflie:
    library: ctypes.CDLL
    target: Target
    motors: tuple[Motor, ...] = CRAZYFLIE_MOTORS

    @classmethod
    def boot(cls, library: Path, target: Target) -> Crazyflie:
        functions = ctypes.CDLL(str(library))
        functions.flight_push.restype = functions.flight_turn.restype = ctypes.c_bool
        functions.flight_enable.argtypes = [ctypes.c_bool]
        functions.flight_boot()
        return cls(functions, target)

    def take_off(self, image: bytes) -> None:
        self.library.flight_enable(False)
        self.tick(AT_TARGET)
        assert self.library.flight_push(image, len(image))
        self.library.flight_enable(True)
        assert self.tick(AT_TARGET) is not None  # it is handed over at rest

    def enter_again(self) -> Floats | None:
        self.library.flight_enable(False)
        self.tick(AT_TARGET)
        self.library.flight_enable(True)
        return self.tick(AT_TARGET)

    def tick(self, state: State, spoil: Spoil | None = None) -> Floats | None:
        measured = crazyflie_measured(state, self.target)
        if spoil is not None:
            spoil(measured)
        flies, motors = self.turn(measured)
        # Called 1,000 times a second; every second time it holds what it gave.
        still_flies, same = self.turn(measured)
        if not (flies and still_flies):
            return None
        assert motors.tobytes() == same.tobytes()
        return motors

    def turn(self, measured: Floats) -> tuple[bool, Floats]:
        """A millisecond: whether the policy flies, and what the motors get of it or of the stock
        controller."""
        motors = np.empty(4, np.float32)
        flies = self.library.flight_turn(
            ctypes.c_void_p(measured.ctypes.data), ctypes.c_void_p(motors.ctypes.data)
        )
        return bool(flies), motors

    def observation(self) -> Floats:
        values = np.empty(13, np.float32)
        assert self.library.flight_observation(ctypes.c_void_p(values.ctypes.data))
        return values


@dataclass
class Px4:
    library: ctypes.CDLL
    folder: Path
    target: Target
    rotors: tuple[tuple[float, ...], ...] = PX4_ROTORS  # as CA_ROTORn_* say
    heading: int = 1  # RLT_HEADING
    is_running: bool = False

    @classmethod
    def boot(cls, library: Path, folder: Path, target: Target) -> Px4:
        functions = ctypes.CDLL(str(library))
        for name in ("start", "tick", "may_be_selected", "observation"):
            getattr(functions, f"flight_{name}").restype = ctypes.c_bool
        functions.flight_start.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
        return cls(functions, folder, target)

    @property
    def motors(self) -> tuple[Motor, ...]:
        return px4_motors(self.rotors)

    def start(self, image: bytes) -> bool:
        """Whether PX4 may select the mode."""
        self.stop()
        (self.folder / "policy.rltp").write_bytes(image)
        rotors = np.array(self.rotors, np.float32)
        folder = str(self.folder).encode()
        assert self.library.flight_start(folder, rotors.ctypes.data, self.heading)
        self.is_running = True
        self.library.flight_select(0)
        self.tick(AT_TARGET)
        self.library.flight_register()
        self.tick(AT_TARGET)
        self.library.flight_ask()
        self.tick(AT_TARGET)
        return bool(self.library.flight_may_be_selected())

    def stop(self) -> None:
        if self.is_running:
            self.library.flight_stop()
        self.is_running = False

    def take_off(self, image: bytes) -> None:
        assert self.start(image)
        self.library.flight_select(1)
        assert self.tick(AT_TARGET) is not None  # its target is where the mode is entered

    def enter_again(self) -> Floats | None:
        self.library.flight_select(0)
        self.tick(AT_TARGET)
        self.library.flight_select(1)
        return self.tick(AT_TARGET)

    def tick(self, state: State, spoil: Spoil | None = None) -> Floats | None:
        measured = px4_measured(state, self.target)
        if spoil is not None:
            spoil(measured)
        return self.turn(measured)

    def turn(self, measured: Floats) -> Floats | None:
        motors = np.empty(4, np.float32)
        flies = self.library.flight_tick(
            ctypes.c_void_p(measured.ctypes.data), ctypes.c_void_p(motors.ctypes.data)
        )
        return motors if flies else None

    def observation(self) -> Floats:
        values = np.empty(13, np.float32)
        assert self.library.flight_observation(ctypes.c_void_p(values.ctypes.data))
        return values

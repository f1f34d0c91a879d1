"""Environments that have something to close, for tests: each writes to the file that
RLT_TEST_CLOSED names."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gymnasium_points import Point

VARIABLE = "RLT_TEST_CLOSED"


def note(word: str) -> None:
    with Path(os.environ[VARIABLE]).open("a") as file:
        file.write(f"{word}\n")


class Plant(Point):
    """Is switched on when it is made, and off by close()."""

    def __init__(self) -> None:
        super().__init__()
        note("on")

    def close(self) -> None:
        note("off")


class PlantThatIsStuck(Plant):
    """Does not return from its 30th step."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.steps_in_all >= 30:
            time.sleep(3600)
        return super().step(action)


class PlantThatCrashes(Plant):
    """Ends its process in its 30th step, and leaves a simulator behind."""

    def __init__(self) -> None:
        super().__init__()
        code = "import time; time.sleep(3600)"
        self.simulator = subprocess.Popen([sys.executable, "-c", code])
        note(f"simulator {self.simulator.pid}")

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.steps_in_all >= 30:
            os.abort()
        return super().step(action)


class PlantThatRaises(Plant):
    def close(self) -> None:
        super().close()
        raise RuntimeError("the switch is stuck")


class PlantThatHangs(Plant):
    def close(self) -> None:
        super().close()
        time.sleep(3600)


class RefusedPlant(Plant):
    """Its actions have no bounds, and so it cannot be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space.high[:] = float("inf")  # type: ignore[attr-defined]


class PlantThatNeverBegins(Plant):
    def reset(self, **_: Any) -> Any:
        time.sleep(3600)


class UnresettablePlant(Plant):
    def reset(self, **_: Any) -> Any:
        raise RuntimeError("no air")

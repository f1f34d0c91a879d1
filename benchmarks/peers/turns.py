"""A contender's side of turns: it waits for an order, works, and answers with what it did.

Orders are lines of words on standard input, answers lines of JSON on standard output; the first
answer, before any order, introduces the contender. What a library prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from typing import Any

STEPS_OF_RETURN = 100  # episodes whose mean return is reported


class TrainingTurns:
    """Orders of PPO's comparison: a number of environment steps, in whole iterations.

    An iteration ends where the next one begins. Answers have the steps done and, for each
    iteration, the seconds since the order, the steps since the beginning, and the mean return of
    the last 100 episodes of training, None before there are so many.
    """

    def __init__(self, environments: int) -> None:
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._running = [0.0] * environments
        self._returns: deque[float] = deque(maxlen=STEPS_OF_RETURN)
        self._steps = self._wanted = self._ordered_at = 0
        self._episodes = 0
        self._iterations: list[dict[str, Any]] = []
        self._began_s = self._cpu_began_s = 0.0

    def say(self, document: dict[str, Any]) -> None:
        self._answers.write(json.dumps(document) + "\n")
        self._answers.flush()

    def order(self) -> list[str]:
        """Return the words of the next order; end this process where there is none."""
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # without the libraries' threads having a say
        return line.split()

    def add_step(self, rewards: Any, ended: Any) -> None:
        """Add the rewards of a step of every environment, and whether episodes ended."""
        self._steps += len(self._running)
        for index, (reward, end) in enumerate(zip(rewards.tolist(), ended.tolist(), strict=True)):
            self._running[index] += reward
            if end:
                self._returns.append(self._running[index])
                self._running[index] = 0.0
                self._episodes += 1

    def begin_iteration(self) -> None:
        """Wait for the next order, before the first iteration and between two."""
        if self._steps:
            is_full = len(self._returns) == STEPS_OF_RETURN
            self._iterations.append(
                {
                    "wall_s": time.perf_counter() - self._began_s,
                    "steps": self._steps,
                    "return_mean": sum(self._returns) / STEPS_OF_RETURN if is_full else None,
                }
            )
        if self._steps < self._wanted:
            return
        if self._steps:
            self.say(
                {
                    "steps": self._steps - self._ordered_at,
                    "cpu_s": time.process_time() - self._cpu_began_s,
                    "episodes": self._episodes,
                    "iterations": self._iterations,
                }
            )
        wanted = int(self.order()[0])
        self._iterations = []
        self._ordered_at = self._steps
        self._wanted = self._steps + wanted
        self._began_s, self._cpu_began_s = time.perf_counter(), time.process_time()

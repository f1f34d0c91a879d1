"""What run.json, group.json and a checkpoint's header must look like to be read.

The rows of metrics.jsonl are in runs/rows.py.

A check takes a value and returns nothing, or raises Unfit with a clause such as `steps is "10", not
a whole number from 0 to 4294967295`. Keys that are not known are left alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from rltools_host.build.algorithms import algorithms, listed
from rltools_host.clock import LAST_US
from rltools_host.runs.policy_file import MOST_STEP_INTERVAL_US
from rltools_host.runs.policy_text import (
    LONGEST_CHANNEL_NAME,
    LONGEST_NAME,
    LONGEST_UNIT,
    described,
    is_policy_text,
    is_subject_name,
)

Check = Callable[[str, Any], None]
Keys = Mapping[str, Check]

LARGEST_U32 = 2**32 - 1
LARGEST_U64 = 2**64 - 1
LARGEST_BOUND = 1e38  # of a range's ends: their difference is a float
MOST_ELEMENTS = 4096  # of an observation or an action
MOST_LAYERS, WIDEST_LAYER = 8, 4096
MOST_ENVIRONMENTS = 1024
LONGEST_SHOWN = 40
LONGEST_TEXT = 300
LONGEST_SOURCE = 4500  # of a task: Linux's longest path, and a name


class Unfit(ValueError):
    """A value that is not what its key promises."""


def shown(value: Any) -> str:
    """A value in a sentence: short and in one line."""
    text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unfit(name: str, value: Any, expected: str) -> Unfit:
    return Unfit(f"{name} is {shown(value)}, not {expected}")


def whole(low: int = 0, high: int = LARGEST_U32) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise unfit(name, value, f"a whole number from {low} to {high}")

    return check


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number; JSON's largest whole numbers have no float."""

    def check(name: str, value: Any) -> None:
        try:
            good = not isinstance(value, bool) and low <= value <= high and math.isfinite(value)
        except (TypeError, OverflowError):
            good = False
        if not good:
            within = "" if low == -math.inf else f" from {low:g}"
            within += "" if high == math.inf else f" to {high:g}"
            raise unfit(name, value, f"a number{within}")

    return check


def text(
    pattern: str = "", expected: str = "a text in one line", longest: int = LONGEST_TEXT
) -> Check:
    def check(name: str, value: Any) -> None:
        good = isinstance(value, str) and value.isprintable() and len(value) <= longest
        if not good or (pattern and not re.fullmatch(pattern, value, re.ASCII)):
            raise unfit(name, value, expected)

    return check


def policy_text(longest: int) -> Check:
    """As policy images hold it: see runs/policy_text.py."""

    def check(name: str, value: Any) -> None:
        if not is_policy_text(value, longest):
            raise unfit(name, value, described(longest))

    return check


def subject_name(what: str) -> Check:
    """Of an experiment or a contract, which is the name of a file."""

    def check(name: str, value: Any) -> None:
        text()(name, value)
        if not is_subject_name(value):
            raise unfit(name, value, f"the name of {what}")

    return check


def string(name: str, value: Any) -> None:
    """Any text, as what a board says of itself."""
    if not isinstance(value, str):
        raise unfit(name, value, "text")


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise unfit(name, value, "true or false")


def optional(inner: Check) -> Check:
    def check(name: str, value: Any) -> None:
        if value is not None:
            inner(name, value)

    return check


def list_of(inner: Check, fewest: int = 0, most: int | None = None) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise unfit(name, value, "a list")
        if len(value) < fewest or (most is not None and len(value) > most):
            raise Unfit(f"{name} has {len(value)} entries, not {fewest} to {most}")
        for index, item in enumerate(value):
            inner(f"{name}[{index}]", item)

    return check


def values_of(inner: Check) -> Check:
    """An object whose keys are texts and whose values are alike."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise unfit(name, value, "an object")
        for key, item in value.items():
            text()(f"a key of {name}", key)
            inner(f"{name}.{key}", item)

    return check


def record(keys: Keys, required: bool = False) -> Check:
    """An object with these keys; each of them may be left out unless they are required."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise unfit(name, value, "an object")
        prefix = f"{name}." if name else ""
        for key, inner in keys.items():
            if key in value:
                inner(f"{prefix}{key}", value[key])
            elif required:
                raise Unfit(f"{prefix}{key} is missing")

    return check


def known_keys(document: Mapping[str, Any], keys: Keys, prefix: str = "") -> None:
    """Unfit where an object has a key that is none of these."""
    if unknown := [key for key in document if key not in keys]:
        raise Unfit(f"{prefix}{unknown[0]} is none of {', '.join(keys)}")


def scalar(name: str, value: Any) -> None:
    """A number, text, true, false or nothing."""
    if isinstance(value, str):
        text()(name, value)
    elif value is not None and not isinstance(value, bool):
        number()(name, value)


# -- the files ---------------------------------------------------------------------------------

SAVE_NAME = r"save-(\d{1,10})-[0-9a-f]{12}(-\d+)?"
FINGERPRINT = text(r"[0-9a-f]{8}", "eight hexadecimal digits")
DIGEST = text(r"[0-9a-f]{64}", "a SHA-256")
HYPERPARAMETERS = values_of(number())
LEARNING = values_of(lambda _name, _value: None)
VERSIONS = values_of(text())

SESSION = record(
    {
        "started": text(),
        "training_began": text(),
        "ended": text(),
        "board": text(),
        "port": string,
        "revision": string,
        "sources": optional(text(r"sources-[0-9a-f]{12}\.tar\.gz", "the name of an archive")),
        "threads": whole(1),
        "environment_faults": whole(),
        "observations_outside": whole(high=LARGEST_U64),
        "first_step": whole(),
        "last_step": whole(),
        "train_s": number(0),
        "evaluation_s": number(0),
        "host_cpu_s": number(0),
        "messages_lost": whole(high=LARGEST_U64),
        "bytes_skipped": whole(high=LARGEST_U64),
        "guest_instructions": whole(high=LARGEST_U64),
    }
)
MEMORY = record(
    {
        "name": text(),
        "use": text(),
        "used_bytes": whole(high=LARGEST_U64),
        "bytes": whole(high=LARGEST_U64),
    },
    required=True,
)
IDENTITY = record(
    {
        **dict.fromkeys(("experiment", "board", "device", "revision", "unique_id"), string),
        **dict.fromkeys(("fingerprint", "protocol_version", "state"), whole()),
        **dict.fromkeys(("learner_bytes", "replay_bytes", "scratch_bytes"), whole()),
        "counts_instructions": flag,
    }
)
CHANNEL = record(
    {
        "name": policy_text(LONGEST_CHANNEL_NAME),
        "unit": policy_text(LONGEST_UNIT),
        **dict.fromkeys(("minimum", "maximum"), number(-LARGEST_BOUND, LARGEST_BOUND)),
    },
    required=True,
)


def channel(name: str, value: Any) -> None:
    CHANNEL(name, value)
    if not value["minimum"] < value["maximum"]:
        raise Unfit(f"{name} has no range: its minimum is not below its maximum")


def algorithm(name: str, value: Any) -> None:
    if value not in list(algorithms()):
        raise unfit(name, value, listed())


CHANNELS = list_of(channel, 1, MOST_ELEMENTS)
TASK_KEYS: Keys = {
    "source": text(longest=LONGEST_SOURCE),
    "environment": policy_text(LONGEST_NAME),
    "experiment": text(r"gym(-[a-z0-9]+)+", "the name of a task's experiment"),
    "algorithm": algorithm,
    "hidden": list_of(whole(1, WIDEST_LAYER), 1, MOST_LAYERS),
    "sizes": record(
        {
            "environments": whole(1, MOST_ENVIRONMENTS),
            **dict.fromkeys(("batch_size", "replay_capacity", "rollout_steps"), whole(1, 10**7)),
        },
        required=True,
    ),
    "episode_steps": whole(1, 2**31 - 1),
    "step_interval_us": whole(1, MOST_STEP_INTERVAL_US),
    **dict.fromkeys(("observation_shape", "action_shape"), list_of(whole(1, MOST_ELEMENTS))),
    **dict.fromkeys(("observations", "actions"), CHANNELS),
    "solved_return": optional(number(-LARGEST_BOUND, LARGEST_BOUND)),
}


def task_with(source: Check) -> Check:
    """A task of Gymnasium's, whose channels are the elements of its shapes."""
    keys = record({**TASK_KEYS, "source": source}, required=True)

    def check(name: str, value: Any) -> None:
        keys(name, value)
        if not re.search("[A-Za-z0-9]", value["environment"]):
            raise unfit(f"{name}.environment", value["environment"], "a name")
        for kind in ("observation", "action"):
            elements, shape = len(value[f"{kind}s"]), value[f"{kind}_shape"]
            if math.prod(shape) != elements:
                raise Unfit(f"{name}.{kind}_shape is {shape}, not that of {elements} {kind}s")

    return check


TASK = task_with(TASK_KEYS["source"])
EXPERIMENT_NAME = subject_name("an experiment, such as pendulum-td3")
RUN = record(
    {
        "format": whole(1),
        "experiment": EXPERIMENT_NAME,
        "environment": policy_text(LONGEST_NAME),
        "contract": optional(subject_name("a contract, such as quadrotor")),
        **dict.fromkeys(("algorithm", "board", "state"), text()),
        **dict.fromkeys(("started", "ended"), text()),
        "begun_us": whole(high=LAST_US),
        "fingerprint": FINGERPRINT,
        "seed": whole(),
        "steps": whole(),
        "step": whole(),
        "hyperparameters": HYPERPARAMETERS,
        "learning": LEARNING,
        "git_revision": optional(text()),
        "git_dirty": optional(flag),
        "identity": IDENTITY,
        "host": values_of(scalar),
        "versions": VERSIONS,
        "memory": list_of(MEMORY),
        "sessions": list_of(SESSION),
        "gymnasium": TASK,
        "save": text(SAVE_NAME, "the name of a save"),
        "state_sha256": optional(DIGEST),
        "checkpoint_step": whole(),
        "checkpoint_train_s": optional(number(0)),
        "train_s": optional(number(0)),
        "evaluation_s": optional(number(0)),
        "steps_per_s": optional(number(0)),
        "messages_lost": whole(high=LARGEST_U64),
        "guest_instructions": optional(whole(high=LARGEST_U64)),
        "return_mean": optional(number()),
        "return_std": optional(number()),
    }
)

VARIANT_NAME = text(r"([a-z0-9][a-z0-9-]{0,59})?", "a name of small letters, digits and hyphens")
VARIANT = record(
    {"name": VARIANT_NAME, "label": text(), "settings": list_of(text())}, required=True
)
GROUP_ASKED = record(
    {
        "format": whole(1),
        "experiment": EXPERIMENT_NAME,
        **dict.fromkeys(("kind", "title", "board", "state"), text()),
        "seeds": list_of(whole(), 1, 1_000_000),
        "settings": list_of(text()),
        "variants": list_of(VARIANT, 1, 10_000),
        "x_axis": text(),
        "y_axis": text(),
        "tensorboard": flag,
    },
    required=True,
)
NAMED = text(r"gym:.+", "a task's name such as gym:Hopper-v5", LONGEST_SOURCE)
GROUP_KNOWN = record(
    {
        "gymnasium": task_with(NAMED),
        "study": text(),
        "port": optional(text()),
        **dict.fromkeys(("steps", "threads", "jobs"), optional(whole(1))),
        **dict.fromkeys(("started", "ended"), text()),
        "begun_us": whole(high=LAST_US),
    }
)


def check_run(document: Any) -> None:
    """Unfit unless this is the content of a run.json."""
    if not isinstance(document, dict):
        raise Unfit("it is not one object")
    RUN("", document)


def check_group(document: Any) -> None:
    """Unfit unless this is the content of a group.json. How its runs stood is for people only."""
    if not isinstance(document, dict):
        raise Unfit("it is not one object")
    GROUP_ASKED("", document)
    GROUP_KNOWN("", document)
    task, experiment = document.get("gymnasium"), document["experiment"]
    if task is not None and task["experiment"] != experiment:
        raise unfit("gymnasium.experiment", task["experiment"], f"the experiment {experiment}")

"""What run.json, group.json, metrics.jsonl and a checkpoint's header must look like to be read.

A check takes a value and returns nothing, or raises Unfit with a clause such as `steps is "10", not
a whole number from 0 to 4294967295`. Keys that are not known are left alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[str, Any], None]
Keys = Mapping[str, Check]

LARGEST_U32 = 2**32 - 1
LARGEST_U64 = 2**64 - 1
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


def number(low: float = -math.inf) -> Check:
    """A finite number; JSON's largest whole numbers have no float."""

    def check(name: str, value: Any) -> None:
        try:
            good = not isinstance(value, bool) and low <= value and math.isfinite(value)
        except (TypeError, OverflowError):
            good = False
        if not good:
            raise unfit(name, value, "a number" if low == -math.inf else f"a number from {low:g}")

    return check


def text(
    pattern: str = "", expected: str = "a text in one line", longest: int = LONGEST_TEXT
) -> Check:
    def check(name: str, value: Any) -> None:
        good = isinstance(value, str) and value.isprintable() and len(value) <= longest
        if not good or (pattern and not re.fullmatch(pattern, value, re.ASCII)):
            raise unfit(name, value, expected)

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


def list_of(inner: Check) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise unfit(name, value, "a list")
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
CHANNELS = list_of(
    record(
        {"name": text(), "unit": text(), "minimum": number(), "maximum": number()}, required=True
    )
)
TASK_KEYS: Keys = {
    "source": text(longest=LONGEST_SOURCE),
    "environment": text(),
    "experiment": text(r"gym(-[a-z0-9]+)+", "the name of a task's experiment"),
    "algorithm": text(r"sac|td3|ppo", "sac, td3 or ppo"),
    "hidden": list_of(whole(1)),
    "sizes": record(
        dict.fromkeys(("environments", "batch_size", "replay_capacity", "rollout_steps"), whole(1)),
        required=True,
    ),
    "episode_steps": whole(1),
    "step_interval_us": whole(1),
    **dict.fromkeys(("observation_shape", "action_shape"), list_of(whole(1))),
    **dict.fromkeys(("observations", "actions"), CHANNELS),
    "solved_return": optional(number()),
}
TASK = record(TASK_KEYS, required=True)  # of Gymnasium's
RUN = record(
    {
        "format": whole(1),
        **dict.fromkeys(("experiment", "algorithm", "environment", "board", "state"), text()),
        **dict.fromkeys(("started", "ended"), text()),
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
        **dict.fromkeys(("kind", "title", "experiment", "board", "state"), text()),
        "seeds": list_of(whole()),
        "settings": list_of(text()),
        "variants": list_of(VARIANT),
        "x_axis": text(),
        "y_axis": text(),
        "tensorboard": flag,
    },
    required=True,
)
NAMED = text(r"gym:.+", "a task's name such as gym:Hopper-v5", LONGEST_SOURCE)
GROUP_KNOWN = record(
    {
        "gymnasium": record({**TASK_KEYS, "source": NAMED}, required=True),
        "study": text(),
        "port": optional(text()),
        **dict.fromkeys(("steps", "threads", "jobs"), optional(whole(1))),
        **dict.fromkeys(("started", "ended"), text()),
    }
)

RETURNS = ("return_mean", "return_std", "return_min", "return_max")
AT = {"time_s": number(0), "step": whole()}
PROGRESS: Keys = {
    **AT,
    "counter": whole(high=LARGEST_U64),
    **dict.fromkeys(("steps", "updates", "episodes"), whole()),
    **dict.fromkeys(("last_return", "best_return"), optional(number())),
}
EVERY_PROGRESS = record(PROGRESS, required=True)


def metric_names(row: Mapping[str, Any]) -> list[str]:
    """What a progress row has beside the keys of every one: the algorithm's metrics."""
    return [name for name in row if name not in PROGRESS and name != "kind"]


def progress(name: str, value: Any) -> None:
    EVERY_PROGRESS(name, value)
    for metric in metric_names(value):
        text()("a metric's name", metric)
        optional(number())(metric, value[metric])


ROWS: Keys = {
    "progress": progress,
    "evaluation": record(
        {
            **AT,
            "counter": whole(high=LARGEST_U64),
            "episodes": whole(),
            **dict.fromkeys(RETURNS, optional(number())),
        },
        required=True,
    ),
    "event": record({**AT, "severity": whole(high=255), "text": string}, required=True),
}


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


def check_row(row: Any) -> None:
    """Unfit unless this is a row of metrics.jsonl."""
    if not isinstance(row, dict):
        raise Unfit("it is not one object")
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in ROWS:
        raise unfit("kind", kind, f"one of {', '.join(ROWS)}")
    ROWS[kind]("", row)

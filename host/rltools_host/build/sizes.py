"""An experiment with other sizes than its header's: the name that has them, and its header.

`pendulum-td3-h32x32-b64` is pendulum-td3 with two hidden layers of 32 and batches of 64. The name
has all sizes, so a run of it is described, resumed and evaluated wherever its experiment is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rltools_host.build.description import LONGEST_NAME
from rltools_host.errors import UsageError

# Of each size: its letter in a name, and the constant of a header that it is.
LETTERS = {
    "hidden": "h",
    "batch_size": "b",
    "buffer_size": "c",
    "n_steps": "r",
    "environments": "n",
    "episode_steps": "e",
}
CONSTANTS = {
    "batch_size": "kBatchSize",
    "buffer_size": "kReplayCapacity",
    "n_steps": "kRolloutSteps",
    "environments": "kEnvironments",
    "episode_steps": "kEpisodeSteps",
}
PART = r"-(?:h\d+(?:x\d+)*|[bcrne]\d+)"
NAME = re.compile(rf"([a-z0-9-]*?[a-z0-9])((?:{PART})+)")
TILE_ROWS = re.compile(r"\bkTileRows = (\d+)")
MAX_TILE_ROWS = 64
COPIED = re.compile(r"^// (?:Requires|Gate):.*\n", re.MULTILINE)  # lines that builds and tools read
MAX_SIZE = 10**7  # of one size
MAX_LAYERS = 8

HEADER = """// {name}: written by the host tools, {base} with other sizes.
{copied}#pragma once

#include "{include}"

namespace rlt {{

struct {struct} : {parent} {{
  static constexpr const char* kName = "{name}";
{constants}}};

}}  // namespace rlt
"""


def split(name: str) -> tuple[str, dict[str, tuple[int, ...]]] | None:
    """Return the experiment's name and the sizes in a name that has any."""
    found = NAME.fullmatch(name)
    if found is None:
        return None
    of_letter = {letter: size for size, letter in LETTERS.items()}
    parts = found[2].removeprefix("-").split("-")
    sizes = {of_letter[part[0]]: tuple(map(int, part[1:].split("x"))) for part in parts}
    return (found[1], sizes) if name == name_of(found[1], sizes) else None


def name_of(base: str, sizes: Mapping[str, tuple[int, ...]]) -> str:
    parts = [LETTERS[size] + "x".join(map(str, sizes[size])) for size in LETTERS if size in sizes]
    return "-".join([base, *parts])


def check(base: str, sizes: Mapping[str, tuple[int, ...]], headers: str) -> None:
    """Raise UsageError where the experiment with these headers cannot have these sizes."""
    for size, values in sizes.items():
        shown = f"{size}={','.join(map(str, values))}"
        if not all(1 <= value <= MAX_SIZE for value in values) or len(values) > MAX_LAYERS:
            raise UsageError(
                f"{shown}: give numbers from 1 to {MAX_SIZE:,}, and of hidden {MAX_LAYERS} at most"
            )
        constant = CONSTANTS.get(size, "")
        is_stated = constant == "kEpisodeSteps" or re.search(rf"\b{constant}\b", headers)
        if constant and not is_stated:
            raise UsageError(f"{shown}: {base} has no {size}, as its algorithm needs none")
    name = name_of(base, sizes)
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"{name} would have more than {LONGEST_NAME} characters: give fewer sizes, or write an "
            f"experiment of that shape beside {base}"
        )


def header_text(
    name: str, struct: str, base_struct: str, include: str, base_headers: Sequence[str]
) -> str:
    """Return the header of a name with sizes; the first base header is the experiment's own."""
    found = split(name)
    assert found is not None
    base, sizes = found
    parent = base_struct
    if hidden := sizes.pop("hidden", None):
        parent = f"WithHidden<{base_struct}, {', '.join(map(str, hidden))}>"
    numbers = {CONSTANTS[size]: value for size, (value,) in sizes.items()}
    if "batch_size" in sizes:
        numbers["kTileRows"] = tile_rows(sizes["batch_size"][0], base_headers)
    constants = "".join(
        f"  static constexpr int {constant} = {value};\n" for constant, value in numbers.items()
    )
    copied = "".join(COPIED.findall(base_headers[0]))
    return HEADER.format(
        name=name,
        base=base,
        copied=copied,
        include=include,
        struct=struct,
        parent=parent,
        constants=constants,
    )


def tile_rows(batch_size: int, base_headers: Sequence[str]) -> int:
    """Return the largest divisor of a batch up to the base's tile, which takes no more memory."""
    stated = TILE_ROWS.search("".join(base_headers))
    largest = int(stated[1]) if stated else MAX_TILE_ROWS
    return max(rows for rows in range(1, largest + 1) if batch_size % rows == 0)

"""The process in which the files of an import are read.

`python -m rltools_host.policies.importing.process` is that process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from rltools_host.build import tools
from rltools_host.confined import answer_calls, read_apart
from rltools_host.errors import DamagedFileError
from rltools_host.policies.importing import onnx_files, reading
from rltools_host.policies.importing.network import ForeignPolicy, Stage, check_stages
from rltools_host.policies.importing.pickles import Array, UnreadableError
from rltools_host.policies.importing.state_dicts import Given

PROGRAM = "rltools_host.policies.importing.process"
REMEDY = "if you trust it, save the network of its policy alone, as docs/import.md says"
CHANGED = "{} changed while it was read: import it again"


class Question(Struct, frozen=True, omit_defaults=True):
    """The files of an import, by the bytes of their paths."""

    file: bytes
    given: Given
    normalizer: bytes | None = None
    recorded: bytes | None = None
    # In single precision; the library's own outputs for them are asked for, where they are given.
    observations: bytes | None = None
    width: int = 1


class Found(Struct, frozen=True):
    """The content of the files of an import."""

    policy: ForeignPolicy
    sha256: str  # of the policy's file with the normalizer's behind it
    normalizer: list[Stage] | None = None
    recorded: dict[str, Array] | None = None
    has_reference: bool = False


class Outputs(Struct, frozen=True):
    """The library's own outputs, (n, out)."""

    values: Array
    sha256: str


def read_files(
    file: Path, given: Given, normalizer: Path | None = None, recorded: Path | None = None
) -> Found:
    """Return what a process of its own finds in the files of an import."""
    if file.suffix in (".onnx", *reading.ENDINGS):
        tools.ensure_group(onnx_files.GROUP)  # the process is too limited to install packages
    question = Question(
        os.fsencode(file),
        given,
        None if normalizer is None else os.fsencode(normalizer),
        None if recorded is None else os.fsencode(recorded),
    )
    found = read_apart(PROGRAM, question, Found, file, REMEDY)
    check_stages(found.policy.stages)
    if not found.has_reference:
        return found
    reference = reference_of(question, found.sha256, file)
    return structs.replace(found, policy=replace(found.policy, reference=reference))


def reference_of(
    question: Question, sha256: str, file: Path
) -> Callable[[NDArray[np.float32]], Array]:
    """Return a function that computes the library's own outputs, (n, out) for (n, in), in another
    such process."""

    def outputs(x: NDArray[np.float32]) -> Array:
        seen = {"observations": x.astype("<f4").tobytes(), "width": x.shape[1]}
        asked = structs.replace(question, recorded=None, **seen)
        found = read_apart(PROGRAM, asked, Outputs, file, REMEDY)
        if found.sha256 != sha256:
            raise DamagedFileError(CHANGED.format(file))
        return found.values

    return outputs


def answer(question: Question) -> Found | Outputs:
    """Return what is in the files. Raise RltError, whose sentence says what is wrong with one."""
    file = Path(os.fsdecode(question.file))
    content = reading.content_of(file)
    digest = hashlib.sha256(content)
    policy = reading.read_foreign(file, content, question.given)
    reference, normalizer, recorded = policy.reference, None, None
    if question.normalizer is not None:
        path = Path(os.fsdecode(question.normalizer))
        added = reading.content_of(path)
        digest.update(added)
        normalizer = reading.read_normalizer(path, added)
    if question.recorded is not None:
        recorded = reading.arrays_in_npz(Path(os.fsdecode(question.recorded)))
    if question.observations is not None:
        if reference is None:
            raise DamagedFileError(CHANGED.format(file))
        seen = np.frombuffer(question.observations, "<f4").reshape(-1, question.width)
        try:
            return Outputs(reference(seen), digest.hexdigest())
        except UnreadableError as error:
            raise DamagedFileError(f"{file} cannot be imported: {error}") from None
    return Found(
        replace(policy, reference=None),
        digest.hexdigest(),
        normalizer,
        recorded,
        reference is not None,
    )


if __name__ == "__main__":
    answer_calls(Question, answer)

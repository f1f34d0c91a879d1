"""rlt_policy.h and the core on the same images: tests/integrations/c/rlt_policy_beside_core.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from programs import output_of
from rltools_host.policies import export
from rltools_host.tree import TREE

SOURCE = TREE.root / "tests/integrations/c/rlt_policy_beside_core.cpp"
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = {
    "plain": ("-O1", "-march=native"),
    "sanitized": (*SANITIZED, "-march=native"),
    "without the instruction": SANITIZED,  # that multiplies and adds at once
}


def require_the_cores_bits(
    images: Mapping[str, bytes], folder: Path, damaged: int = 100, kind: str = "plain"
) -> None:
    """For each image, and so many damaged copies of it; kind: one of FLAGS."""
    includes = (f"-I{export.RUNTIME.parent}", f"-I{TREE.include}")
    program = folder / "beside_core"
    output_of("g++", *STRICT, *FLAGS[kind], *includes, SOURCE, "-o", program)
    for name, image in images.items():
        (folder / f"{name}.rltp").write_bytes(image)
    output_of(program, damaged, *(folder / f"{name}.rltp" for name in images))

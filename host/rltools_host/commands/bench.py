"""`rlt bench`: runs a program of benchmarks/, which a checkout has and a wheel does not."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from rltools_host.commands.options import beginning
from rltools_host.errors import UsageError, unknown_name
from rltools_host.tree import TREE

EXAMPLE = "bench train --quick"
CONTEXT = {"allow_interspersed_args": False}  # options behind the name are the benchmark's
BENCHMARKS = (
    *("train", "ppo", "inference", "vertical", "roofline", "neon", "gpu", "any-airframe", "web"),
)


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(BENCHMARKS[:-1])} or {BENCHMARKS[-1]}.",
            autocompletion=lambda incomplete: beginning(incomplete, BENCHMARKS),
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTIONS]", help="The benchmark's own: rlt bench NAME --help"),
    ] = None,
) -> None:
    """Run one of:

    \b
    - train: the training time of TD3, SAC and XQC, beside other libraries
    - ppo: steps a second of PPO on Ant-v4, beside other libraries
    - inference: a forward pass, beside other libraries; --board counts instructions
    - vertical: the same training on every device that is here
    - roofline: a TD3 step beside the core's peak, by phase
    - neon: the kernels' loops on Arm cores, as LLVM's models predict them
    - gpu: training on a GPU or, without one, a prediction from its instructions
    - any-airframe: flights of airframes that no training saw, beside RAPTOR
    - web: the page that trains in the browser, in Chromium

    Each takes --json. benchmarks/README.md says how they measure.
    """
    if not (TREE.root / "benchmarks").is_dir():
        raise UsageError("the benchmarks are in the checkout: clone the repository to run them")
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    start(name, options or ())


def start(name: str, options: Sequence[str]) -> None:
    """Replace this process by the benchmark's, which runs in the same environment."""
    module = f"benchmarks.{name.replace('-', '_')}"
    folders = os.pathsep.join([str(TREE.root / "host"), str(TREE.root)])
    sys.stdout.flush()
    os.execve(
        sys.executable,
        [sys.executable, "-P", "-m", module, *options],
        {**os.environ, "PYTHONPATH": folders},
    )

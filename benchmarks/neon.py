"""`rlt bench neon`: the kernels' innermost loops on Arm cores, as llvm-mca predicts them.

A prediction: nothing runs. LLVM's models of cores count the cycles of a loop whose loads hit the
first cache; programs/neon_loops.cpp has the loops of a layer of 64 by 64.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import harness
from benchmarks.harness import Json, Row
from rltools_host.errors import MissingToolError, RefusedError
from rltools_host.lines import aligned
from rltools_host.tree import TREE

TARGET = "aarch64-linux-gnu"
COMPILERS = (f"{TARGET}-g++", "clang++", "clang++-19")
ANALYZERS = (*(f"llvm-mca-{version}" for version in range(22, 13, -1)), "llvm-mca")
CORES = "cortex-a72,neoverse-n1,apple-m1"
LOOPS = ("all_terms", "nonzero_terms")
HALF = 0.5  # of the factors are zero behind a ReLU, about
TIMES = 200  # that a loop is gone through
# As many as a core starts in a cycle: multiplications, as these do not wait for their own sums.
PEAK = "\n".join(f"fmul v{number}.4s, v30.4s, v31.4s" for number in range(24))


def neon(
    cores: Annotated[
        str, typer.Option(metavar="NAMES", help="Cores by LLVM's names, with commas.")
    ] = CORES,
    json_output: Json = False,
) -> None:
    """Predict the loops of NEON's kernels on Arm cores; half of the factors are zero."""
    compilers = [name for name in COMPILERS if shutil.which(name)]
    analyzer = next(filter(shutil.which, ANALYZERS), None)
    if not compilers or not analyzer:
        raise MissingToolError(
            "the prediction needs llvm-mca and a compiler for Arm: "
            f"apt-get install llvm g++-{TARGET}"
        )
    rows = []
    for compiler in compilers:
        loops = dict(zip(LOOPS, map(innermost, assembly(compiler), LOOPS), strict=True))
        rows += [row_of(analyzer, compiler, core, loops) for core in harness.split_names(cores)]
    version = subprocess.run([analyzer, "--version"], capture_output=True, text=True).stdout
    llvm = re.search(r"version (\S+)", version)
    document = {"llvm": llvm[1] if llvm else "", "rows": rows}
    harness.tell(document, lines(document), json_output)


def assembly(compiler: str) -> list[str]:
    """Return the assembly of each loop's function."""
    flags = json.loads(TREE.build_file.read_text())["flags"]
    target = [f"--target={TARGET}"] if "clang" in compiler else []
    source = TREE.root / "benchmarks/programs/neon_loops.cpp"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "loops.s")
        command = [compiler, *target, *flags, f"-I{TREE.include}", "-S", str(source)]
        result = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True)
        if result.returncode != 0:
            raise MissingToolError(f"{compiler} cannot compile for Arm: {result.stderr.strip()}")
        text = output.read_text(encoding="utf-8")
    found = [
        re.search(rf"^{name}:.*?^\s*\.size\s+{name}", text, re.MULTILINE | re.DOTALL)
        for name in LOOPS
    ]
    return [match[0] if match else "" for match in found]


def innermost(function: str, name: str) -> list[str]:
    """Return the instructions of the loop that has the most multiply-adds."""
    text = function.splitlines()
    labels = {line.split(":")[0]: at for at, line in enumerate(text) if line.startswith(".L")}
    loops = []
    for end, line in enumerate(text):
        branch = re.search(r"\s(?:b\S*|t?cbn?z)\s.*?(\.L\w+)", line)
        if branch and labels.get(branch[1], end) < end:
            loops.append(text[labels[branch[1]] + 1 : end + 1])
    best = max(loops, key=multiply_adds, default=[])
    if not multiply_adds(best):
        raise RefusedError(f"no loop of multiply-adds was found in {name}")
    return [line for line in best if line.strip() and not line.strip().startswith((".", "//", "#"))]


def multiply_adds(loop: Sequence[str]) -> int:
    return sum("fmla" in line for line in loop)


def row_of(analyzer: str, compiler: str, core: str, loops: dict[str, list[str]]) -> Row:
    peak = PEAK.count("fmul") / cycles(analyzer, core, PEAK)
    shares = {
        name: multiply_adds(loop) / cycles(analyzer, core, "\n".join(loop)) / peak
        for name, loop in loops.items()
    }
    every, nonzero = (shares[name] for name in LOOPS)
    return {
        "compiler": compiler,
        "core": core,
        "all_terms": every,
        "nonzero_terms": nonzero,
        "over_all_terms": nonzero / every / HALF,
    }


def cycles(analyzer: str, core: str, loop: str) -> float:
    """Return the cycles of one time through a loop."""
    command = [analyzer, f"-mtriple={TARGET}", f"-mcpu={core}", f"-iterations={TIMES}"]
    result = subprocess.run(command, input=loop + "\n", capture_output=True, text=True)
    total = re.search(r"Total Cycles:\s+(\d+)", result.stdout)
    if not total:
        raise RefusedError(f"{analyzer} has no figure for {core}: {result.stderr.strip()}")
    return int(total[1]) / TIMES


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for people."""
    header = ("compiler", "core", "all terms", "nonzero terms", "half zero, of all terms")
    rows = [
        (
            *(row["compiler"], row["core"]),
            *map(percent, (row["all_terms"], row["nonzero_terms"], row["over_all_terms"])),
        )
        for row in document["rows"]
    ]
    return [
        f"A layer of 64 by 64, predicted by llvm-mca {document['llvm']}; nothing ran on Arm",
        *aligned([header, *rows]),
        "Shares are of the multiply-adds that the model starts in a cycle.",
    ]


if __name__ == "__main__":
    harness.main(neon, "--json")

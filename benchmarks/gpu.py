"""`rlt bench gpu`: the rate of a GPU's program (firmware/cuda), or a prediction where no GPU is.

The prediction is of the program's instructions (PTX): tests/fakes/ptx.py makes them a program of
this machine, which counts how often each thread executes each basic block. ptxas, where it is
installed, says which registers they take. Neither knows how long memory and barriers are waited
for, so that the shares are bounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import harness
from benchmarks.harness import Json, MeasurementError, Row
from rltools_host.boards.gpu import Gpu
from rltools_host.build import experiments
from rltools_host.build.gpu import MOST_SHARED_BYTES, REGISTERS, build_ptx
from rltools_host.documents import LARGEST_U32
from rltools_host.errors import MissingToolError, RefusedError, unknown_name
from rltools_host.lines import aligned, plural
from rltools_host.runs.group import RunName
from rltools_host.runs.names import date
from rltools_host.training import gpu_runs
from rltools_host.training.plan import TrainingRequest, open_plan
from rltools_host.training.progress import Member
from rltools_host.tree import TREE

# Steps between which is counted: of learning ones, and a whole iteration behind the first.
WINDOWS = {
    "pendulum-td3": (200, 220),
    "quadrotor-ppo": (8192, 16384),
    "crazyflie-ppo": (8192, 16384),
}
MEASURED = "pendulum-td3"
# Architectures, and the shared memory that a block may have there.
SHARED = {
    "sm_75": 64 * 1024,
    "sm_86": 99 * 1024,
    "sm_90": MOST_SHARED_BYTES,
    "sm_100": MOST_SHARED_BYTES,
    "sm_120": 99 * 1024,
}
WARP = 32
TWICE = "wide"  # instructions of 64 bits, which a GPU does in two
# A multiprocessor has as many schedulers, each with its own registers; a warp gets eight at once.
SCHEDULERS, THEIR_REGISTERS, AT_ONCE = 4, 16_384, 8
ASSEMBLER = "nvidia-cuda-nvcc"
LIMIT_S = 600.0


def gpu(
    agents: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Agents at once, on a GPU, with commas.")
    ] = "1,16,256,4096",
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of each agent, on a GPU.")] = 2_000,
    names: Annotated[
        str, typer.Option("--experiments", metavar="NAMES", help="What a prediction is for.")
    ] = ",".join(WINDOWS),
    json_output: Json = False,
) -> None:
    """Measure training on a GPU or, where there is none, predict what bounds it."""
    counts = [int(word) if word.isdecimal() else 0 for word in harness.split_names(agents)]
    harness.require_positive(steps=steps, agents=min(counts, default=0))
    chosen = harness.split_names(names)
    for name in chosen:
        if name not in WINDOWS:
            raise unknown_name("experiment", name, list(WINDOWS))
    try:
        found = Gpu()
    except MissingToolError:
        ptxas = find_ptxas()
        document: Row = {
            "is_prediction": True,
            "rows": [counted(name) for name in chosen],
            "assembled": [assembly(ptxas, *each) for each in product(chosen, SHARED) if ptxas],
        }
        harness.tell(document, predicted_lines(document), json_output)
        return
    with contextlib.closing(found):
        document = measurement(found, counts, steps)
    harness.tell(document, measured_lines(document), json_output)


# ---- Instructions --------------------------------------------------------------------------------


def counted(experiment: str) -> Row:
    """Return the instructions that a step of an agent issues, by what executes."""
    path = build_ptx(experiment, MOST_SHARED_BYTES)
    ptx = path.read_text(encoding="utf-8")
    first, last = WINDOWS[experiment]
    with tempfile.TemporaryDirectory() as folder:
        library, kinds, translation = translated(ptx, Path(folder))
        sizes = sizes_of(ptx)
        counts = Path(folder, "counts")
        before, after, barriers = executions(experiment, library, sizes, counts)
    executed = (after - before) / (last - first)  # of each basic block, by each thread
    lanes = executed[WARP:].reshape(-1, WARP, executed.shape[1])
    each = np.array(translation, dtype=float)
    workers = lanes.max(axis=1).sum(axis=0) @ each
    leader = executed[0] @ each
    fma = kinds.index("fma")
    weights = np.array([2.0 if kind == TWICE else 1.0 for kind in kinds])
    issued = float((workers + leader) @ weights)
    return {
        "title": experiment,
        "issued": issued,
        "workers": float(workers @ weights),
        "leader": float(leader @ weights),
        "fma": float(workers[fma]),
        "fma_share": float((workers + leader)[fma]) / issued,
        "fma_lanes": float(lanes.sum(axis=(0, 1)) @ each[:, fma] / WARP / workers[fma]),
        "workers_by_kind": dict(zip(kinds, workers.tolist(), strict=True)),
        "leader_by_kind": dict(zip(kinds, leader.tolist(), strict=True)),
        "barriers": barriers / (last - first),
        **sizes,
    }


def translated(ptx: str, folder: Path) -> tuple[ctypes.CDLL, list[str], list[list[int]]]:
    """Return the program for this machine, and the instructions of its basic blocks by kind."""
    sys.path.append(str(TREE.root / "tests/fakes"))
    translator, stand_in = map(importlib.import_module, ("ptx", "cuda_driver"))
    module = translator.translate(ptx)
    source, library = folder / "program.cpp", folder / "program.so"
    source.write_text(module.text, encoding="utf-8")
    command = [shutil.which("g++") or "c++", *stand_in.FLAGS, *stand_in.PTX_FLAGS, "-DPTX_COUNTS"]
    result = harness.run_to_end("g++", [*command, str(source), "-o", str(library)], LIMIT_S)
    if result.returncode != 0:
        raise MissingToolError(f"g++ cannot compile it: {harness.last_line(result.stderr)}")
    return ctypes.CDLL(str(library)), list(translator.KINDS), module.blocks


def executions(
    experiment: str, library: ctypes.CDLL, sizes: Mapping[str, int], path: Path
) -> tuple[Any, Any, int]:
    """Train one agent without reports and evaluations, a piece of work in a launch; return the
    executions (threads, basic blocks) until either end of the window, and the barriers within
    it."""
    library.ptx_launch.restype = ctypes.c_long
    rarely = dict.fromkeys(("report_every", "eval_freq"), LARGEST_U32)
    packed = [
        struct.pack("<I" if each.is_whole else "<f", rarely.get(each.name, each.default))
        for each in experiments.describe(experiment).hyperparameters
    ]
    bytes_of = (
        *(sizes["agent_bytes"], 4 * len(packed), 1),
        *(sizes["record_count"] * sizes["record_bytes"], sizes["status_bytes"]),
    )
    memory = [ctypes.create_string_buffer(count + 256) for count in bytes_of]
    agent, values, stops, records, status = (
        ctypes.c_uint64(-(-ctypes.addressof(each) // 256) * 256) for each in memory
    )
    ctypes.memmove(values.value, b"".join(packed), 4 * len(packed))

    def launch(kernel: bytes, *arguments: Any) -> int:
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        barriers: int = library.ptx_launch(kernel, 1, sizes["block_threads"], pointers, 0)
        return barriers

    def train(pieces: int) -> int:
        return launch(b"train_agents", agent, ctypes.c_uint32(pieces), stops, records, status)

    def train_until(step: int) -> tuple[Any, int]:
        barriers = 0
        while ctypes.c_uint32.from_address(status.value).value < step:
            barriers += train(1)
        os.environ["PTX_COUNTS"] = str(path)
        train(0)
        del os.environ["PTX_COUNTS"]
        counts = np.fromfile(path, dtype=np.uint64).reshape(sizes["block_threads"], -1)
        return counts.astype(float), barriers

    launch(b"initialize_agents", agent, values)
    (before, _), (after, barriers) = map(train_until, WINDOWS[experiment])
    return before, after, barriers


def sizes_of(ptx: str) -> dict[str, int]:
    """Return the numbers that a program has for who starts it; a zero is not written."""
    found = re.findall(r"^\.visible \.global .*\.u32 (\w+)(?: = (\d+))?;", ptx, re.MULTILINE)
    return {name: int(value or 0) for name, value in found}


# ---- Registers -----------------------------------------------------------------------------------


def find_ptxas() -> str | None:
    """Return NVIDIA's assembler: an installed one, or that of a package of this Python."""
    packages = Path(sysconfig.get_path("purelib"), "nvidia")
    found = [*packages.glob("cu[0-9]*/bin/ptxas"), *packages.glob("cuda_nvcc/bin/ptxas")]
    return shutil.which("ptxas") or next(map(str, found), None)


def assembly(ptxas: str | None, experiment: str, architecture: str) -> Row:
    """Return what a program takes on an architecture, in its version for such a GPU."""
    path = build_ptx(experiment, SHARED[architecture])
    row = {"title": experiment, "architecture": architecture}
    command = [ptxas or "ptxas", "-v", f"-arch={architecture}", f"-maxrregcount={REGISTERS}"]
    command += [str(path), "-o", os.devnull]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return {**row, "error": f"{architecture}: {harness.last_line(result.stderr)}"}
    sizes = sizes_of(path.read_text(encoding="utf-8"))
    return {**row, **sizes, **registers(result.stdout + result.stderr, sizes["block_threads"])}


def registers(log: str, threads: int) -> Row:
    """Return the registers of train_agents, the shared memory that its threads have in common, and
    what is spilled, from ptxas's words."""
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    kernels = dict(zip(parts[::2], parts[1::2], strict=True))
    spilled, saved = 0, dict[str, int]()
    for kernel, text in kernels.items():
        for name, stored in re.findall(r"properties for (\S+)\s.*?(\d+) bytes spill stores", text):
            if name == kernel:
                spilled += int(stored)
            else:
                saved[name] = int(stored)
    used = re.search(r"Used (\d+) registers.* (\d+) bytes smem", kernels.get("train_agents", ""))
    if not used:
        raise RefusedError("ptxas -v does not say how many registers train_agents has")
    # As cuda_occupancy.h has it: a scheduler's registers are for whole warps.
    each = -(-int(used[1]) // AT_ONCE) * AT_ONCE * WARP
    return {
        "kernels": [*kernels],
        "common_bytes": int(used[2]),
        "registers": int(used[1]),
        "blocks_by_registers": THEIR_REGISTERS // each * SCHEDULERS // (threads // WARP),
        "spilled_bytes": spilled,
        "saved_bytes": sum(saved.values()),
        "saving_functions": len(saved),
    }


def predicted_lines(document: Mapping[str, Any]) -> list[str]:
    header = (
        *("a step of an agent", "instructions", "leader's", "FMA", "of FP32's peak, at most"),
        *("lanes in an FMA", "barriers", "shared memory", "tile"),
    )
    lines = [
        "PREDICTION from the program's instructions (PTX): nothing was run on a GPU",
        *harness.table(header, document["rows"], counted_cells),
        "Instructions are of warps, those of 64 bits twice. A multiprocessor issues four a clock "
        "and has 128 lanes for FMA (sm_75: 64), so that FMA's share of them bounds that of the "
        "peak.",
        "",
    ]
    if not document["assembled"]:
        return [*lines, f"Registers need ptxas: pip install {ASSEMBLER}"]
    columns = ("assembled", "for", "shared memory", "tile", "registers", "blocks")
    return [
        *lines,
        *harness.table((*columns, "spilled", "saved"), document["assembled"], assembled_cells),
        "blocks: as many as a multiprocessor has registers for. spilled: bytes of a thread, by the "
        "kernels themselves; saved: by functions that are called by a pointer, of their caller's "
        "registers, which ptxas calls spills too.",
    ]


def counted_cells(row: Row) -> tuple[str, ...]:
    return (
        *(f"{row[name]:,.0f}" for name in ("issued", "leader", "fma")),
        *(f"{100 * row[name]:.0f} %" for name in ("fma_share", "fma_lanes")),
        *(f"{row['barriers']:,.1f}", f"{row['shared_bytes']:,}"),
        plural(row["rows_of_tile"], "row"),
    )


def assembled_cells(row: Row) -> tuple[str, ...]:
    return (
        *(row["architecture"], f"{row['shared_bytes']:,}", plural(row["rows_of_tile"], "row")),
        *(str(row["registers"]), str(row["blocks_by_registers"])),
        *(f"{row['spilled_bytes']:,}", f"{row['saved_bytes']:,} by {row['saving_functions']}"),
    )


# ---- A GPU ---------------------------------------------------------------------------------------


def measurement(found: Gpu, counts: list[int], steps: int) -> Row:
    """Return the rates of these numbers of agents, as many as fit."""
    shared = min(MOST_SHARED_BYTES, found.info.shared_bytes)
    found.load(build_ptx(MEASURED, shared).read_bytes(), REGISTERS)
    request = TrainingRequest(experiment=MEASURED, board="cuda", seed=0, steps=steps, seeds=(0,))
    with open_plan(request) as plan:
        pass

    def agent(seed: int) -> gpu_runs.Agent:
        member = Member(RunName("", seed), "", Path(), steps)
        own = replace(plan, hyperparameters={**plan.hyperparameters, "seed": seed})
        return gpu_runs.Agent(member, request, own)

    room = gpu_runs.room_for(found, agent(0))
    rows = []
    for count in sorted({min(count, room) for count in counts}):
        agents = [agent(seed) for seed in range(count)]
        with contextlib.closing(gpu_runs.Population(found, agents)) as population:
            rows.append({"agents": count, **timed(population, agents, steps)})
    info = found.info
    driver = {"gpu": info.name, "driver": info.driver_version, "date": date()}
    return {"is_prediction": False, "experiment": MEASURED, "steps": steps, **driver, "rows": rows}


def timed(population: gpu_runs.Population, agents: list[gpu_runs.Agent], steps: int) -> Row:
    """Train the agents to their end."""
    population.begin()
    began = time.perf_counter()
    while population.advance():
        if any(agent.fault for agent in agents):
            raise MeasurementError("an agent's training stopped at a fault")
    train_s = time.perf_counter() - began
    return {"train_s": train_s, "steps_per_s": len(agents) * steps / train_s}


def measured_lines(document: Mapping[str, Any]) -> list[str]:
    rows = [
        (f"{row['agents']:,}", f"{row['steps_per_s']:,.0f}", f"{row['train_s']:.2f} s")
        for row in document["rows"]
    ]
    return [
        f"{document['experiment']}, {document['steps']:,} steps of each agent on {document['gpu']} "
        f"(driver of CUDA {document['driver']}), {document['date']}",
        *aligned([("agents", "steps a second, of all", "time"), *rows]),
    ]


if __name__ == "__main__":
    harness.main(gpu, "--json")

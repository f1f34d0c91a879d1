"""`rlt bench train`: Pendulum-v1, ours against other libraries, as in the paper's figure 1.

All are held to one core and one thread and take turns, so that what else the machine does meets
all of them. Only the training loop is timed; imports and compilation are reported apart. The
newest result of this machine stays in build/bench, from where a run's report takes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltools_host import clock
from rltools_host.bench import build_times, harness
from rltools_host.bench.training_contenders import peer, train_loop, train_ours
from rltools_host.bench.training_result import LOOP, OURS, Row, draw_chart, lines, overhead, summary
from rltools_host.boards.description import load_board
from rltools_host.build import cmake, experiments, firmware
from rltools_host.errors import RltError, UsageError, near_matches, unknown_name
from rltools_host.files import write_atomically
from rltools_host.project import PROJECT

ALGORITHMS = ("td3", "sac")
STEPS = 10_000
EPISODES = 100
REPETITIONS = 3
QUICK_PEER = "pytorch"
PEERS_DIRECTORY = harness.BENCHMARKS_DIRECTORY / "peers"


def peer_names(script: str, directory: Path = PEERS_DIRECTORY) -> list[str]:
    """Peers with a script of this name: each algorithm has its own."""
    return sorted(path.parent.name for path in directory.glob(f"*/{script}.py"))


def chosen_peers(script: str, peers: str | None, quick: bool, directory: Path) -> list[str]:
    known = peer_names(script, directory)
    if peers is None:
        return [QUICK_PEER] if quick else known
    names = [name.strip() for name in peers.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UsageError(f'--peers: unknown peer "{name}": {near_matches(name, known)}')
    return list(dict.fromkeys(names))


def result_path(algorithm: str, directory: Path | None = None) -> Path:
    """Where this machine's newest result lies."""
    return (directory or PROJECT.benchmarks) / f"train-{algorithm}.json"


@dataclass(frozen=True)
class TrainingBenchmark:
    """What a user asks for; the two folders are other ones in tests."""

    quick: bool = False
    peers: str | None = None  # as typed: names with commas; None: all
    repetitions: int | None = None
    steps: int = STEPS
    episodes: int = EPISODES
    chart: Path | None = None
    algorithm: str = "td3"
    peers_directory: Path = PEERS_DIRECTORY
    environments_directory: Path = field(default_factory=lambda: PROJECT.benchmarks)


def run(request: TrainingBenchmark, json_output: bool = False) -> dict[str, Any]:
    """Measures, prints the table, draws a chart where asked, returns what `--json` prints."""
    algorithm, steps, episodes = request.algorithm, request.steps, request.episodes
    environments_directory = request.environments_directory
    if request.quick and request.peers is not None and request.repetitions is not None:
        raise UsageError(
            "--quick has no effect beside --peers and --repetitions: leave it out, or one of them"
        )
    usual = 1 if request.quick else REPETITIONS
    count = usual if request.repetitions is None else request.repetitions
    harness.require_positive(repetitions=count, steps=steps, episodes=episodes)
    if algorithm not in ALGORITHMS:
        raise unknown_name("algorithm", algorithm, ALGORITHMS)
    names = chosen_peers(algorithm, request.peers, request.quick, request.peers_directory)
    experiment = f"pendulum-{algorithm}"
    experiments.describe(experiment)
    firmware.build_firmware(load_board("host"), experiment)
    cmake.host_library("policy")
    harness.build_program("training_loop")
    contenders: dict[str, Callable[[int], Row]] = {
        OURS: lambda seed: train_ours(experiment, seed, steps, episodes),
        LOOP: lambda _: train_loop(algorithm, steps),
    }
    rows: list[Row] = []
    for name in names:
        try:
            folder = request.peers_directory / name
            contenders[name] = peer(
                name, folder, algorithm, environments_directory, steps, episodes
            )
        except RltError as error:
            rows.append({"name": name, "error": str(error)})
    rows += take_turns(contenders, count)
    document = {
        "algorithm": algorithm,
        "rows": rows,
        "build": build_times.build_times(experiment, environments_directory / "build-time"),
        "summary": summary(rows),
        "overhead": overhead(rows),
        "steps": steps,
        "episodes": episodes,
        "repetitions": count,
        "machine": harness.machine(),
        "load_average": harness.load_average(),
        "date": clock.date(),
    }
    print("\n".join(lines(document)))
    path = result_path(algorithm, environments_directory)
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())
    if request.chart is not None:
        draw_chart(document, request.chart)
        print(f"wrote {request.chart}")
    if json_output:
        print(json.dumps(document))
    return document


def take_turns(contenders: Mapping[str, Callable[[int], Row]], count: int) -> list[Row]:
    """Every contender once, then all again with the next seed; who fails is not asked again."""
    rows: list[Row] = []
    failed: set[str] = set()
    with harness.pinned() as core:
        for seed in range(count):
            for name, measure in contenders.items():
                if name in failed:
                    continue
                try:
                    row = {"name": name, **measure(seed), "core": core}
                    said = f"{row['train_s']:.2f} s"
                except RltError as error:
                    failed.add(name)
                    row = {"name": name, "error": str(error)}
                    said = str(error)
                rows.append(row)
                print(f"{name}, seed {seed}: {said}", file=sys.stderr, flush=True)
    return rows

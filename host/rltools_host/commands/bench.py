"""`rlt bench`: each benchmark's options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rltools_host.bench import (
    airframes,
    board_forward,
    build_times,
    environments,
    gymnasium_tasks,
    inference,
    layers,
    ppo,
    roofline,
    training,
    vertical,
    web,
)
from rltools_host.commands.options import Json, mode, require
from rltools_host.training.hyperparameters import given_numbers

Repetitions = Annotated[int, typer.Option(metavar="N", help="Repetitions; the median counts.")]
Tasks = Annotated[
    str | None, typer.Option(metavar="A,B", help="Gymnasium's names of tasks. [default: all]")
]
Chart = Annotated[Path | None, typer.Option(metavar="PATH", help="Draw bars into this SVG.")]


def told(document: Mapping[str, Any], json_output: bool) -> None:
    """The last line, where it is asked for."""
    if json_output:
        print(json.dumps(document))


# -- roofline --------------------------------------------------------------------------------------

ROOFLINE_EXAMPLE = "bench roofline --json"


def roofline_command(
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a run.")] = 10_000,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Runs; the median counts.")] = 5,
    buffer_mb: Annotated[
        int | None,
        typer.Option(
            metavar="MB", help="Buffer for the memory bandwidth. [default: well beyond the caches]"
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    told(roofline.run(steps, repetitions, buffer_mb), json_output)


# -- train -----------------------------------------------------------------------------------------

TRAIN_EXAMPLE = "bench train --peers rltools,sbx --repetitions 5"


def train_command(
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare with plain PyTorch only, once.")
    ] = False,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of peers/training. [default: all]"),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of each, with seeds 0, 1 and so on.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Environment steps of a run.")] = 10_000,
    chart: Chart = None,
    algorithm: Annotated[str, typer.Option(metavar="ALGORITHM", help="td3 or sac.")] = "td3",
    json_output: Json = False,
) -> None:
    request = training.TrainingBenchmark(
        quick, peers, repetitions, steps, chart=chart, algorithm=algorithm.lower()
    )
    told(training.run(request), json_output)


# -- vertical --------------------------------------------------------------------------------------

VERTICAL_EXAMPLE = "bench vertical --devices avx2,chromium-lanes,qemu-cortex-m7"


def vertical_command(
    devices: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="scalar, avx2, avx512, threads, node-lanes, node-exact, chromium-lanes, "
            "chromium-exact, emulated boards. [default: all]",
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Environment steps of a run.")
    ] = vertical.STEPS,
    emulated_steps: Annotated[
        int, typer.Option(metavar="N", help="The same, on emulated boards.")
    ] = vertical.EMULATED_STEPS,
    repetitions: Repetitions = vertical.REPETITIONS,
    chart: Chart = None,
    json_output: Json = False,
) -> None:
    request = vertical.VerticalBenchmark(devices, steps, emulated_steps, repetitions, chart)
    told(vertical.run(request), json_output)


# -- ppo -------------------------------------------------------------------------------------------

PPO_EXAMPLE = "bench ppo --peers rl_games --threads 2"
PPO_COMMON = ("peers", "threads", "turn_steps", "seed", "chart", "json_output")
PPO_TURNS = mode("without --to-return", *PPO_COMMON, "rounds")
PPO_TO_RETURN = mode("with --to-return", *PPO_COMMON, "to_return", "steps")
PPO_MODES = (PPO_TURNS, PPO_TO_RETURN)


def ppo_command(
    context: typer.Context,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of peers/ppo. [default: all]"),
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Threads and cores of each contender.")
    ] = 2,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Turns of each; the median counts.")
    ] = ppo.ROUNDS,
    turn_steps: Annotated[
        int, typer.Option(metavar="N", help="Environment steps of a turn.")
    ] = ppo.TURN_STEPS,
    to_return: Annotated[
        bool,
        typer.Option(
            "--to-return",
            help="Measure the time to a mean return of 2,000 and 4,000, with each one's settings.",
        ),
    ] = False,
    steps: Annotated[
        int,
        typer.Option(metavar="N", help="With --to-return: steps after which a contender gives up."),
    ] = ppo.RETURN_STEPS,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every contender.")] = 0,
    chart: Chart = None,
    json_output: Json = False,
) -> None:
    require(context, PPO_MODES, PPO_TO_RETURN if to_return else PPO_TURNS)
    request = ppo.PpoBenchmark(
        peers, threads, rounds, turn_steps, to_return, steps, seed, chart=chart
    )
    told(ppo.run(request), json_output)


# -- environments ----------------------------------------------------------------------------------

ENVIRONMENTS_EXAMPLE = "bench environments --tasks Ant-v4,Pendulum-v1"


def environments_command(
    tasks: Tasks = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Threads of the rows with more than one.")
    ] = 2,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Turns of each; the median counts.")
    ] = environments.ROUNDS,
    json_output: Json = False,
) -> None:
    told(environments.run(tasks, threads, rounds), json_output)


# -- gymnasium -------------------------------------------------------------------------------------

GYMNASIUM_EXAMPLE = "bench gymnasium --tasks Pendulum-v1,Hopper-v5 --seeds 0-2"


def gymnasium_command(
    tasks: Tasks = None,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of peers/gymnasium. [default: all]"),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="A run of each for every seed: 0-9, or 0,3,5-7.")
    ] = gymnasium_tasks.SEEDS,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="ppo, sac or td3. [default: the task's]")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Environment steps of a run. [default: the task's]"),
    ] = None,
    hidden: Annotated[
        str | None, typer.Option(metavar="N,N", help="Widths of the layers. [default: the task's]")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a hyperparameter of our runs."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Runs at once.")] = 1,
    json_output: Json = False,
) -> None:
    request = gymnasium_tasks.GymnasiumBenchmark(
        *(tasks, peers, seeds, jobs, algorithm, steps, hidden), settings=settings or ()
    )
    told(gymnasium_tasks.run(request), json_output)


# -- build -----------------------------------------------------------------------------------------

BUILD_EXAMPLE = "bench build --json"


def build_command(
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="The experiment to build and start.")
    ] = "pendulum-td3",
    repetitions: Repetitions = 3,
    json_output: Json = False,
) -> None:
    told(build_times.run(experiment, repetitions), json_output)


# -- inference -------------------------------------------------------------------------------------

INFERENCE_EXAMPLE = "bench inference --peers onnxruntime,litert"
INFERENCE_HERE = mode("without --board", "peers", "repetitions", "json_output")
INFERENCE_BOARD = mode("with --board", "board", "json_output")
INFERENCE_MODES = (INFERENCE_HERE, INFERENCE_BOARD)


def inference_command(
    context: typer.Context,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of peers/inference. [default: all]"),
    ] = None,
    repetitions: Repetitions = 20,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="On an emulated board, or all-emulated: guest instructions of generic code, "
            "CMSIS-DSP, the board's kernels and a policy image.",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    require(context, INFERENCE_MODES, INFERENCE_HERE if board is None else INFERENCE_BOARD)
    told(
        board_forward.run(board) if board is not None else inference.run(peers, repetitions),
        json_output,
    )


# -- layers ----------------------------------------------------------------------------------------

LAYERS_EXAMPLE = "bench layers --widths 512,1024 --batches 100"


def layers_command(
    widths: Annotated[
        str, typer.Option(metavar="A,B", help="Widths, of 16, 32, 64, 128, 256, 512, 1024.")
    ] = "64,128,256,512,1024",
    batches: Annotated[
        str, typer.Option(metavar="A,B", help="Batches, of 1, 32, 100, 256.")
    ] = "100,256",
    zeros: Annotated[
        int,
        typer.Option(
            metavar="PERCENT", help="Zeros among inputs and gradients, as ReLU leaves them."
        ),
    ] = 0,
    repetitions: Repetitions = 7,
    json_output: Json = False,
) -> None:
    told(layers.run(widths, batches, zeros, repetitions), json_output)


# -- any-airframe ----------------------------------------------------------------------------------

ANY_AIRFRAME_EXAMPLE = "bench any-airframe --run latest --episodes 100"


def any_airframe_command(
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="The run of our policy. [default: trains foundation-quadrotor]"
        ),
    ] = None,
    alone: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="The run of a policy for one airframe. [default: trains crazyflie-ppo]",
        ),
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of peers/airframes. [default: all]"),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Airframes through each part. [default: the gate's]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of all flights."),
    ] = None,
    json_output: Json = False,
) -> None:
    request = airframes.AirframesBenchmark(
        run, alone, peers, episodes, given_numbers(settings or ())
    )
    told(airframes.run(request), json_output)


# -- web -------------------------------------------------------------------------------------------

WEB_EXAMPLE = "bench web --memory 600"


def web_command(
    memory_s: Annotated[
        int, typer.Option("--memory", metavar="S", help="How long to train for the memory's row.")
    ] = 60,
    json_output: Json = False,
) -> None:
    told(web.run(memory_s), json_output)

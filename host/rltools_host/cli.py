"""The command line `rlt`: a thin command per module, which is imported when the command runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rltools_host.errors import Interrupted, RltError

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
# The base of what typer raises for a wrong command line. Older versions take it from click.
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="rlt",
    help="Trains policies on microcontrollers, real or emulated, and brings them home.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: rlt demo",
)

bench = typer.Typer(
    name="bench",
    help="How fast this machine trains and infers, and against what.",
    rich_markup_mode=None,
    context_settings=app.info.context_settings,
    epilog="\b\nExample: rlt bench train --quick",
)
app.add_typer(bench)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's folder, its name under runs/, or: latest.")
]


def example(text: str) -> str:
    """The line at the end of a command's --help."""
    return f"\b\nExample: {text}"


@app.command(epilog=example("rlt demo --quick"))
def demo(
    board: Annotated[
        str, typer.Option(metavar="BOARD", help="An emulated board, or host.")
    ] = "qemu-cortex-m7",
    quick: Annotated[bool, typer.Option("--quick", help="Train 1,000 steps only.")] = False,
    compare_host: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="Train the same on this machine and compare."),
    ] = True,
    json_output: Json = False,
) -> None:
    """The whole story on an emulated board, with a report."""
    from rltools_host import demo as module

    module.run(json_output, board, quick, compare_host)


@app.command("test", epilog=example("rlt test --fast -k framing"))
def run_tests(
    fast: Annotated[bool, typer.Option("--fast", help="Leave the emulated board out.")] = False,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPRESSION", help="Only tests that match this.")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Also the full training runs.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Also mathematics over all floats.")
    ] = False,
) -> None:
    """Every test, and the style checks."""
    from rltools_host import test_command

    leave(test_command.run(fast, expression, slow, exhaustive))


@app.command(epilog=example("rlt doctor --json"))
def doctor(json_output: Json = False) -> None:
    """What is installed, what is missing, how to get it."""
    from rltools_host import doctor as module

    leave(module.run(json_output))


@app.command(epilog=example("rlt boards"))
def boards(json_output: Json = False) -> None:
    """Every board, and what can be done with it here."""
    from rltools_host import boards as module

    leave(module.run(json_output))


@app.command(
    epilog=example("rlt train pendulum-td3 --board host --seed 1 --set learning_rate=5e-4")
)
def train(
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="[EXPERIMENT]", help="An experiment, such as pendulum-td3."),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="Where to train: see `rlt boards`. [default: qemu-cortex-m7, which is emulated]",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same seed gives the same bits everywhere.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Environment steps in all, also with --resume.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Another hyperparameter; may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder. [default: a new one under runs/]"),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with a run that was paused.")
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Where the board is: /dev/ttyACM0, socket://HOST:PORT."),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard/--no-tensorboard", help="Write a TensorBoard log.")
    ] = True,
    json_output: Json = False,
) -> None:
    """Trains on a board while you watch; brings the policy home.

    Checkpoint, policy, metrics and a TensorBoard log go to the run's folder. Ctrl-C pauses the
    board, saves a checkpoint and says how to go on.
    """
    from rltools_host import train as module

    module.run(
        experiment,
        board,
        seed,
        steps,
        settings or (),
        out,
        resume,
        port,
        tensorboard,
        json_output,
    )


@app.command(epilog=example("rlt evaluate latest --in gymnasium"))
def evaluate(
    run: RunArgument,
    episodes: Annotated[int, typer.Option(metavar="N", help="How many.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the initial states.")] = 0,
    simulator: Annotated[
        str,
        typer.Option("--in", metavar="SIMULATOR", help="core, or gymnasium for the reference."),
    ] = "core",
    json_output: Json = False,
) -> None:
    """Deterministic episodes of a run's policy."""
    from rltools_host import evaluate as module

    module.run(run, episodes, seed, simulator, json_output)


@app.command(epilog=example("rlt export latest --to c --output policy.h"))
def export(
    run: RunArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="image or c.")] = "image",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder.")
    ] = None,
    json_output: Json = False,
) -> None:
    """A run's policy as a deployable image or a C++ header."""
    from rltools_host import export as module

    path = module.run(run, to, output)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run, "format": to, "path": str(path)}))


@app.command(epilog=example("rlt flash teensy41 pendulum-td3"))
def flash(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="See `rlt boards`.")],
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    json_output: Json = False,
) -> None:
    """Builds an experiment's firmware and flashes a board with it."""
    from rltools_host import flash as module

    leave(module.run(board, experiment, json_output))


@app.command(epilog=example("rlt emulate qemu-cortex-m7 pendulum-td3"))
def emulate(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="See `rlt boards`.")],
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="What it trains.")
    ] = "pendulum-td3",
    time_limit_s: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="Then it ends.")
    ] = 3600.0,
    json_output: Json = False,
) -> None:
    """Starts an emulated board, prints its port; Ctrl-C ends it."""
    from rltools_host import emulator

    leave(emulator.run(board, experiment, time_limit_s, json_output))


@app.command(epilog=example("rlt report latest --output report.html"))
def report(
    run: RunArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder.")
    ] = None,
    json_output: Json = False,
) -> None:
    """One self-contained HTML page about a run, with plots."""
    from rltools_host import report as module

    path = module.run(run, output)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run, "path": str(path)}))


@bench.command("roofline", epilog=example("rlt bench roofline --json"))
def bench_roofline(
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a run.")] = 10_000,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Runs; medians count.")] = 5,
    buffer_mb: Annotated[
        int | None,
        typer.Option(
            metavar="MB", help="For the memory bandwidth. [default: well beyond the caches]"
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """A TD3 step against the core's peak, by phase."""
    from rltools_host import bench_roofline as module

    module.run(json_output, steps, repetitions, buffer_mb)


@bench.command("train", epilog=example("rlt bench train --peers rltools,sbx --repetitions 5"))
def bench_train(
    quick: Annotated[
        bool, typer.Option("--quick", help="Against plain PyTorch only, once.")
    ] = False,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/peers. [default: all]"),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of each, with seeds 0, 1 and so on.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Environment steps of a run.")] = 10_000,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Draw bars. [default: docs/images, with all peers]"),
    ] = None,
    algorithm: Annotated[str, typer.Option(metavar="ALGORITHM", help="td3 or sac.")] = "td3",
    json_output: Json = False,
) -> None:
    """Training time against other libraries."""
    from rltools_host import bench_train as module

    module.run(
        json_output, quick, peers, repetitions, steps, chart=chart, algorithm=algorithm.lower()
    )


@bench.command("build", epilog=example("rlt bench build --json"))
def bench_build(
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="What is built and started.")
    ] = "pendulum-td3",
    repetitions: Annotated[int, typer.Option(metavar="N", help="Medians count.")] = 3,
    json_output: Json = False,
) -> None:
    """How long an experiment takes to build and to start."""
    from rltools_host import bench_build as module

    module.run(json_output, experiment, repetitions)


@bench.command("inference", epilog=example("rlt bench inference --peers onnxruntime,litert"))
def bench_inference(
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/inference_peers. [default: all]"),
    ] = None,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Medians count.")] = 20,
    json_output: Json = False,
) -> None:
    """Latency and throughput of a policy, 13-64-64-4."""
    from rltools_host import bench_inference as module

    module.run(json_output, peers, repetitions)


@bench.command("layers", epilog=example("rlt bench layers --widths 512,1024 --batches 100"))
def bench_layers(
    widths: Annotated[
        str, typer.Option(metavar="A,B", help="Of 16, 32, 64, 128, 256, 512, 1024.")
    ] = "64,128,256,512,1024",
    batches: Annotated[str, typer.Option(metavar="A,B", help="Of 1, 32, 100, 256.")] = "100,256",
    zeros: Annotated[
        int, typer.Option(metavar="PERCENT", help="Of inputs and gradients, as ReLU leaves them.")
    ] = 0,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Medians count.")] = 7,
    json_output: Json = False,
) -> None:
    """Dense layers by width, our kernels and OpenBLAS."""
    from rltools_host import bench_layers as module

    module.run(json_output, widths, batches, zeros, repetitions)


def leave(code: int) -> None:
    """Ends the command with an exit code that a module returned."""
    if code:
        raise typer.Exit(code)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with the command's exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = run(words or ["--help"])
        sys.stdout.flush()
    except BrokenPipeError:  # `rlt boards | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def run(words: list[str]) -> int:
    """The exit code of a command; whatever goes wrong is one line on the error stream."""
    try:
        code = app(words, prog_name="rlt", standalone_mode=False)
        if code == Interrupted.exit_code:  # how typer passes a KeyboardInterrupt on
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except RltError as error:
        prefix = "" if isinstance(error, Interrupted) else "error: "
        return fail(words, str(error), error.exit_code, prefix, error.details)
    except (KeyboardInterrupt, typer.Abort):
        return fail(words, "interrupted", Interrupted.exit_code, "")
    except typer.Exit as ending:
        return ending.exit_code
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, CommandLineError):
            return fail(words, command_line_message(error), 2)
        return fail(words, internal_message(error), INTERNAL_ERROR)


def fail(
    words: list[str],
    message: str,
    exit_code: int,
    prefix: str = "error: ",
    details: dict[str, Any] | None = None,
) -> int:
    """Prints an error, for people and, with --json, for scripts."""
    sys.stdout.flush()
    print(f"{prefix}{message}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"error": message, "exit_code": exit_code, **(details or {})}))
    return exit_code


def command_line_message(error: Any) -> str:
    """What typer says about a wrong command line, as one sentence that names the help."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "rlt"
    message = " ".join(str(error.format_message()).split()).rstrip(".?").replace(". ", ", ")
    return f"{message[:1].lower()}{message[1:]}; see `{command} --help`"


def internal_message(error: Exception) -> str:
    """Names the log that the traceback was written to."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="rlt-internal-error-", suffix=".log", delete=False
    ) as log:
        log.write("".join(traceback.format_exception(error)))
    return f"internal error ({type(error).__name__}: {error}): please report it with {log.name}"

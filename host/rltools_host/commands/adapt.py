"""`rlt adapt`: from the log of a flight to a policy for that drone, tried and confirmed on a board.

Each step is what another command does: fit, train, evaluate --gate (twice), push.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: a fit's matrices are small

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from rltools_host.boards import push as boards
from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.boards.policy_session import PROGRAM, PolicyTarget
from rltools_host.boards.push import PushRequest, PushResult
from rltools_host.build import firmware, tools
from rltools_host.build.native import host_library
from rltools_host.commands import fit as fitting
from rltools_host.commands.options import BoardOption, Json, Port
from rltools_host.commands.policies import NoConfirm, Trial, note_its_end, policies_of
from rltools_host.commands.train import close, streams
from rltools_host.documents import LARGEST_U32
from rltools_host.drones.flight.airframes import (
    ANY_MASS_KG,
    ANY_ROTOR_M,
    QUICK,
    SLOW,
    Recipe,
    fitted_of,
    fitted_settings,
    gate_for,
    gate_of,
    turns_quickly,
)
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.drones.flight.gate_result import GateResult, fly_gate, percent
from rltools_host.drones.flight.in_the_loop import CONTRACT
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.errors import (
    BoardMismatchError,
    DiskError,
    Interrupted,
    RefusedError,
    RltError,
    UsageError,
)
from rltools_host.interruption import Interruption
from rltools_host.lines import aside, next_steps, say
from rltools_host.policies.contract import entry_text
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.screen.terminal import Step, StepsScreen
from rltools_host.training.board import build_program
from rltools_host.training.hyperparameters import SetFile
from rltools_host.training.plan import Built, TrainingRequest, make_plan
from rltools_host.training.progress import Screen, TrainingView
from rltools_host.training.run import train
from rltools_host.tree import command_line, near_path

if TYPE_CHECKING:
    from rltools_host.drones.fitting.log import FlightLog
    from rltools_host.drones.fitting.result import FitResult

FIT, TRAIN, GATE, ENTRY, PUSH = "fit", "train", "gate", "entry", "push"
LEAST = 0.95
REST_S = 9.0  # without training, on an idle machine of two cores


@dataclass(frozen=True)
class AdaptRequest:
    log: Path
    target: PolicyTarget
    mass_kg: float | None = None
    rotors_m: tuple[float, float] | None = None
    seed: int | None = None
    steps: int | None = None
    out: Path | None = None
    least: float = LEAST
    trial_s: float | None = None
    confirm: bool = True

    def training(self, recipe: Recipe) -> TrainingRequest:
        steps = recipe.steps if self.steps is None else self.steps
        return TrainingRequest(
            recipe.experiment, "host", self.seed, steps, settings=recipe.settings, out=self.out
        )

    def push_of(self, run: str) -> PushRequest:
        return PushRequest(run, self.target, self.trial_s, self.confirm)

    def check(self) -> None:
        """Raise UsageError for what can be known before anything is built or begun."""
        fitting.require_airframe(self.mass_kg, self.rotors_m)
        if not 0.0 <= self.least <= 1.0:
            raise UsageError(f"--least {self.least:g}: a rate lies between 0 and 1")
        policies_of(self.target).check_push(self.push_of(""))


def run(request: AdaptRequest, json_output: bool = False) -> dict[str, Any]:
    """Adapt, print what happens, and return the keys that `--json` prints."""
    began = time.monotonic()
    from rltools_host.drones.fitting.log import read_log

    request.check()
    log = read_log(request.log)
    output, stream = streams(json_output)
    tools.ensure_group(fitting.GROUP)
    built = build(request)
    look_at_board(request.target)
    with Interruption():
        document = Adaptation(request, log, built, stream, began).carry_out()
    say(stream, *closing_lines(document, request.target))
    note_its_end(request.target)
    close(output, document if json_output else None, document["run"])
    return document


def build(request: AdaptRequest) -> dict[Recipe, Built]:
    """Build both recipes before anything begins, as the log will choose one."""
    built = {}
    for recipe in (QUICK, SLOW):
        plan = make_plan(request.training(recipe))
        build_program(plan)
        built[recipe] = Built(plan.description, plan.program, plan.sources)
    flight_library()
    host_library("policy")
    return built


def look_at_board(target: PolicyTarget) -> None:
    """Raise an error unless the board is there and free. A board that is started for the push is
    only built."""
    if not target.is_crazyflie:
        board = target.described_board()
        if target.ends_with_command(board):
            firmware.build_firmware(board, CONTRACT, PROGRAM)
            return
    found = policies_of(target).policies_on(target)
    if found.contract != CONTRACT:
        raise BoardMismatchError(
            f'the board on {target.port or target.board} acts by the contract "{found.contract}", '
            f"and a drone's policy by {CONTRACT}: flash it with that one"
        )
    boards.require_free(found.slots, found.armed, target, target.board)


class Adaptation:
    """One drone on its way from the log to the board."""

    def __init__(
        self,
        request: AdaptRequest,
        log: FlightLog,
        built: Mapping[Recipe, Built],
        stream: IO[str],
        began: float,
    ) -> None:
        self._request = request
        self._log = log
        self._built = built
        self._began = began
        self._notes: list[str] = []
        # The keys of `--json` that the steps before the push add, one after the other.
        self._results: dict[str, Any] = {"log": str(log.path), "log_sha256": log.sha256}
        board = request.target.board
        self._screen = StepsScreen(
            f"{near_path(log.path)} to {board}: {duration_text(request.steps)}",
            [
                Step(FIT, "the drone's parameters and their intervals, from the log"),
                Step(TRAIN, "a policy for drones within these intervals, on this machine"),
                Step(GATE, f"{percent(request.least)} of 1,000 held-out flights must succeed"),
                Step(ENTRY, "what the policy may be handed in flight, from short flights"),
                Step(PUSH, f"the policy to {board}: checked there, tried, and then confirmed"),
            ],
            stream,
        )

    def carry_out(self) -> dict[str, Any]:
        """Return the keys of `--json`; an error has those that are known as its details."""
        try:
            with self._ends_without_push(FIT) as step:
                result = self._fit(step)
            with self._ends_without_push(TRAIN) as step:
                run = self._train(step, result)
            with self._ends_without_push(GATE) as step:
                self._fly_gate(step, RunFolder.open(run), result)
            with self._ends_without_push(ENTRY) as step:
                self._find_entry(step, RunFolder.open(run))
            with self._screen.step(PUSH) as step:
                pushed = self._push(step, run)
        except RltError as error:
            error.details = {**self._results, **error.details}
            raise
        finally:
            for note in self._notes:
                aside(f"note: {note}")
        seconds = {step.name: step.seconds for step in self._screen.steps.values()}
        seconds["total"] = time.monotonic() - self._began
        return {**self._results, **asdict(pushed), "seconds": seconds}

    @contextlib.contextmanager
    def _ends_without_push(self, name: str) -> Iterator[Step]:
        """Run a step before the push; an error of it says that nothing was pushed."""
        try:
            with self._screen.step(name) as step:
                yield step
        except RltError as error:
            error.args = (f"{error}; nothing was pushed",)
            raise
        except KeyboardInterrupt:
            run = self._results.get("run")
            kept = f"; the policy is in {near_path(Path(run))}" if run else ""
            raise Interrupted(f"interrupted in the step {name}, nothing was pushed{kept}") from None

    def _fit(self, step: Step) -> FitResult:
        from rltools_host.drones.fitting.fit import fit
        from rltools_host.drones.fitting.result import FitResult

        request = self._request
        x, y = request.rotors_m or (ANY_ROTOR_M, ANY_ROTOR_M)
        result = FitResult(fit(self._log, x, y), request.mass_kg or ANY_MASS_KG, x, y)
        result.require_trainable()
        self._notes += result.fit.warnings
        step.text = (
            f"greatest thrust {result.thrust_to_weight:.2f} times the weight, "
            f"intervals within ± {100 * result.spread:.0f} %"
        )
        self._results["spread"] = result.spread
        return result

    def _train(self, step: Step, result: FitResult) -> str:
        request = self._request
        recipe = QUICK if turns_quickly(result) else SLOW
        texts = {name: str(value) for name, value in fitted_settings(result).items()}
        training = replace(
            request.training(recipe),
            set_file=SetFile(request.log, texts),
            fitted=fitted_of(result),
            built=self._built[recipe],
        )
        done = train(training, lambda view: TrainingStep(view, step, self._screen))
        run = near_path(Path(done["run"]))
        step.text = f"{done['step']:,} steps of {recipe.experiment}, in {run}"
        self._results |= {name: done[name] for name in ("run", "experiment", "seed", "step")}
        return str(done["run"])

    def _fly_gate(self, step: Step, folder: RunFolder, result: FitResult) -> None:
        gate = gate_of(result)
        flown = self._flown(gate, folder, f"{gate.episodes:,} flights of the fitted drone")
        share = flown.all
        low, high = share.interval
        self._results |= {"gate": gate.name, "success_rate": share.rate}
        self._results |= {"interval": (low, high), "causes": dict(share.causes)}
        step.text = (
            f"{percent(share.rate)} of {share.flights:,} flights succeed, 95 % interval "
            f"{percent(low)} to {percent(high)}"
        )
        if share.rate < self._request.least:
            raise self._not_passed(flown, folder)

    def _find_entry(self, step: Step, folder: RunFolder) -> None:
        """Measure the entry envelope, by which flight controllers refuse; the push does not depend
        on it."""
        gate, _ = gate_for(load_gate(ENTRY), folder)
        envelope = self._flown(gate, folder, "some ten thousand short flights").envelope
        assert envelope is not None
        step.text = entry_text(envelope)

    def _flown(self, gate: Gate, folder: RunFolder, what: str) -> GateResult:
        """Fly a gate, and keep its flights in the run's folder."""
        image = read_run_policy(folder)
        image.verify()
        self._screen.say(what)
        flown = fly_gate(gate, image, str(folder.path))
        try:
            flown.write(folder.path)
        except DiskError as error:
            self._notes.append(f"the report will not have the flights: {error}")
        return flown

    def _not_passed(self, flown: GateResult, folder: RunFolder) -> RefusedError:
        share, request = flown.all, self._request
        seed = folder.content.seed or 0
        another = seed + 1 if seed < LARGEST_U32 else 0
        return RefusedError(
            f"{percent(share.rate)} of {share.flights:,} flights of the fitted drone succeed, and "
            f"{percent(request.least)} were to: train it with another --seed, as {another}, or "
            f"longer, as --steps {2 * folder.content.steps}; the policy is in "
            f"{near_path(folder.path)}"
        )

    def _push(self, step: Step, run: str) -> PushResult:
        request = self._request
        try:
            outcome: PushResult = policies_of(request.target).push(
                request.push_of(run),
                self._screen.say,
                lambda done, whole: self._screen.progress(step, done / whole if whole else 1.0),
            )
        except KeyboardInterrupt:  # of one in the trial, the push itself says what came of it
            raise Interrupted("interrupted before the trial: the board acts as before") from None
        except RltError as error:
            target = request.target
            port = ["--port", target.port] if target.port else []
            again = command_line("push", near_path(Path(run)), "--board", target.board, *port)
            error.args = (f"{error}; the policy passed its gate, `{again}` pushes it again",)
            raise
        step.text = f"{outcome.reason}, in slot {outcome.slot} of {request.target.board}"
        return outcome


class TrainingStep(Screen):
    """A screen that shows a run as a step."""

    def __init__(self, view: TrainingView, step: Step, screen: StepsScreen) -> None:
        super().__init__(view)
        self._step, self._steps = step, screen

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        super().take(event)
        self.refresh()

    def refresh(self) -> None:
        self._steps.progress(self._step, self.view.share)

    def activity(self, text: str, share: float | None = None) -> None:
        if text and text != self.view.activity:
            self._steps.say(text)
        super().activity(text, share)


# -- the command -----------------------------------------------------------------------------------


def duration_text(steps: int | None) -> str:
    """Return the duration of both recipes, as the log decides which one it is."""
    quick, slow = (REST_S + (steps or each.steps) / each.steps_per_s for each in (QUICK, SLOW))
    return f"about {quick:.0f} s on an idle machine, {slow:.0f} s for a drone that turns slowly"


def closing_lines(document: Mapping[str, Any], target: PolicyTarget) -> list[str]:
    run, total_s = near_path(Path(document["run"])), document["seconds"]["total"]
    if document["activated"]:
        lines = [f"{total_s:.2f} s from the log to the confirmed policy"]
    else:
        keep, drop = target.trial_commands
        lines = [f"{total_s:.2f} s from the log to the board, where it is {document['reason']}"]
        lines += [f"  keep it:  {keep}", f"  drop it:  {drop}"]
    return [*lines, f"  run   {run}", *next_steps(command_line("report", run))]


EXAMPLE = "adapt flight.csv --board qemu-stm32f405"


def command(
    log: fitting.Log,
    board: BoardOption,
    port: Port = None,
    mass: fitting.Mass = None,
    rotors: fitting.Rotors = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the training. [default: 0]")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps of training. [default: by the drone]"),
    ] = None,
    least: Annotated[
        float,
        typer.Option(metavar="RATE", help="The share of the flights that must succeed."),
    ] = LEAST,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder. [default: a new one under runs/]"),
    ] = None,
    trial_s: Trial = None,
    no_confirm: NoConfirm = False,
    json_output: Json = False,
) -> None:
    """Fit the drone's parameters to the log, train a policy on this machine for drones within their
    intervals, fly it through 1,000 held-out flights of that drone, measure what it may be handed in
    flight, and push it: the board checks it, tries it, and keeps it if it has this machine's bits.
    The first step that fails ends all; then nothing is pushed, or the board returns to the previous
    policy.

    A policy commands fractions of the greatest thrust, so mass and size need not be known. Rotors
    that do not form a square need --rotors.
    """
    target = PolicyTarget(board, port, CONTRACT)
    confirm = not no_confirm
    run(
        AdaptRequest(log, target, mass, rotors, seed, steps, out, least, trial_s, confirm),
        json_output,
    )

"""Training of a group's runs on a GPU, all at once: each is an agent of a program (firmware/cuda).

The program reports and evaluates as a board does, and an agent's state and policies come back as
the save of its run. A sample of the runs is trained here as well, and has to end alike.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import struct
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import structs

from rltools_host.boards.framing import SEVERITY_INFO
from rltools_host.boards.gpu import Gpu, GpuMemory, OutOfGpuMemoryError, at
from rltools_host.boards.messages import (
    Evaluation,
    Report,
    State,
    StatusText,
    TrainingProgress,
)
from rltools_host.build.gpu import MOST_SHARED_BYTES, REGISTERS, program_of
from rltools_host.documents import LARGEST_U32
from rltools_host.errors import (
    DiskError,
    Interrupted,
    RefusedError,
    RltError,
    TrainingFaultError,
    UsageError,
)
from rltools_host.interruption import Interruption
from rltools_host.lines import plural
from rltools_host.runs.checkpoint import to_safetensors
from rltools_host.runs.contents import Run, RunDocument, StatedIdentity
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import begun_us_now, timestamp
from rltools_host.runs.provenance import Sources, checkpoint_versions
from rltools_host.runs.saves import (
    CHECKPOINT_FILE,
    LARGEST_SHARE,
    POLICY_FILE,
    remove_partials,
)
from rltools_host.training import faults
from rltools_host.training.board import (
    BestPolicy,
    checkpoint_of,
    origin_now,
    run_at_start,
    run_in_state,
    train_s_before,
)
from rltools_host.training.metrics_log import ReportLog, last_evaluation
from rltools_host.training.parallel_runs import Next
from rltools_host.training.plan import (
    DEFAULT_BOARD,
    Plan,
    TrainingRequest,
    lacks_evaluation,
    note_of_rate,
    open_plan,
)
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PAUSED,
    STARTING,
    TRAINING,
    GroupScreen,
    Member,
    Screen,
)
from rltools_host.training.run import train

VERIFIED = 2  # runs of a group that are trained here as well
LEFT_BYTES = 256 * 1024 * 1024  # of the GPU's memory, for its driver and other programs
BUFFER_BYTES = 64 * 1024 * 1024  # for states on their way
LAUNCH_S = 0.5  # between two looks at the agents
WRITERS = 8  # runs that are written at once
SAVE_EVERY_S = 60.0  # on the way; no more often
# Status and Record of firmware/cuda/agents.cpp.
STATUS = struct.Struct("<IIII")
HEAD, PROGRESS, EVALUATION = struct.Struct("<II"), struct.Struct("<III4f16f"), struct.Struct("<I5f")
RECORD_BYTES = HEAD.size + PROGRESS.size
HASH_BYTES = 32
FAULTS = (
    "",
    "a hyperparameter was refused",
    "a loss, a weight, an action or a number of the environment is not finite",
)


@dataclass
class Agent:
    """A run on its way: its member of the group, and its checked request."""

    member: Member
    request: TrainingRequest
    plan: Plan
    step: int = 0
    is_finished: bool = False
    is_stopped: bool = False
    fault: int = 0  # of FAULTS
    folder: RunFolder | None = None  # once it was opened to save in this session
    is_torn: bool = False  # metrics.jsonl has rows behind the save
    train_s_before: float = 0.0  # in training, in earlier sessions
    lacks_evaluation: bool = False  # of its checkpoint
    begun_us: int | None = None  # for its run.json, if it is a new run
    sibling: Path | None = None  # another run, of the same sources
    evaluation: Evaluation | None = None
    best: BestPolicy = field(default_factory=BestPolicy)
    unsaved: list[tuple[float, Report | StatusText]] = field(default_factory=list)  # with its time

    def take(self, event: Report | StatusText, time_s: float) -> None:
        """Take what the agent reports, after a time in training of this session."""
        self.unsaved.append((self.train_s_before + time_s, event))
        if isinstance(event, Evaluation):
            self.evaluation = event
            self.best.take(event)
            if math.isfinite(event.return_mean):
                self.member.evaluations[event.step] = event.return_mean

    @property
    def has_ended(self) -> bool:
        return self.is_finished or self.is_stopped or bool(self.fault)

    @property
    def values(self) -> bytes:
        """Return the hyperparameters, four bytes each, in the description's order."""
        return b"".join(
            struct.pack("<I" if entry.is_whole else "<f", self.plan.hyperparameters[entry.name])
            for entry in self.plan.description.hyperparameters
        )


def agent_of(member: Member, request: TrainingRequest, plan: Plan) -> Agent:
    """Return the agent of a new run, or of one that goes on from its save."""
    agent = Agent(member, request, plan, plan.first_step)
    if plan.resumed is None:
        return agent
    rows = [row for row in plan.resumed.read_metrics() if row["step"] <= plan.first_step]
    agent.lacks_evaluation = lacks_evaluation(plan, rows)
    agent.evaluation = last_evaluation(rows)
    agent.train_s_before = train_s_before(plan.resumed.content, plan.first_step, rows)
    if plan.save is not None:
        agent.best.restore(plan.save, rows)
    return agent


def prepare_new_runs(agents: Sequence[Agent]) -> None:
    """Set what new runs have of each other: the times at which they begin, each later than those
    before it and than those of the runs that are there, and whose sources they have, too."""
    new = [agent for agent in agents if agent.plan.resumed is None]
    if new:
        first_us = begun_us_now(new[0].member.path)
        for index, agent in enumerate(new):
            agent.begun_us = first_us + index
            agent.sibling = new[0].member.path


@dataclass(frozen=True)
class Fetched:
    """An agent's training state, and its policies: that of the state, and that of the session's
    best evaluation, if any."""

    payload: bytes
    sha256: bytes
    policy: bytes
    best: bytes


class Population:
    """Agents of one experiment in the memory of a GPU, until it is closed."""

    def __init__(self, gpu: Gpu, agents: Sequence[Agent]) -> None:
        self._gpu, self._agents = gpu, agents
        self._agent_bytes = gpu.number("agent_bytes")
        self._threads = gpu.number("block_threads")
        self._shared_bytes = gpu.number("shared_bytes")
        self._policy_bytes = gpu.number("policy_bytes")
        self._records_each = gpu.number("record_count")
        self.state_bytes = agents[0].plan.description.bytes_of["state"]
        sizes = gpu.number("status_bytes"), gpu.number("record_bytes")
        if sizes != (STATUS.size, RECORD_BYTES):
            raise UsageError("the program's reports are of another version: delete build/cuda")
        at_once = BUFFER_BYTES // (self.state_bytes + 2 * self._policy_bytes)
        self.rows = max(1, min(at_once, len(agents)))  # of states on their way
        self._pieces = 1  # of work in a launch
        self._began = 0.0
        self._heard: tuple[float, bytes, list[int]] | None = None  # records that nobody took yet
        self._memory: list[GpuMemory] = []
        try:
            count = len(agents)
            self._place = self._allocate(self._agent_bytes * count)
            self._statuses = self._allocate(STATUS.size * count)
            self._stops = self._allocate(count)
            self._records = self._allocate(RECORD_BYTES * self._records_each * count)
            self._values = self._allocate(len(agents[0].values) * count)
            self._states = self._allocate(self.state_bytes * self.rows)
            self._hashes = self._allocate(HASH_BYTES * self.rows)
            self._images = self._allocate(2 * self._policy_bytes * self.rows)
        except BaseException:
            self.close()
            raise

    def _allocate(self, size: int) -> GpuMemory:
        self._memory.append(GpuMemory(size))
        return self._memory[-1]

    def close(self) -> None:
        for memory in self._memory:
            memory.free()
        self._memory = []

    @property
    def elapsed_s(self) -> float:
        """Return the time in training."""
        return time.monotonic() - self._began

    def _launch(self, kernel: str, first: int, count: int, *arguments: GpuMemory | int) -> None:
        place = at(self._place, first * self._agent_bytes)
        self._gpu.launch(kernel, count, self._threads, self._shared_bytes, [place, *arguments])

    def _run(self, kernel: str, first: int, count: int, *arguments: GpuMemory | int) -> None:
        self._launch(kernel, first, count, *arguments)
        self._gpu.synchronize()

    def begin(self) -> None:
        """Begin the agents, those of paused runs from their checkpoints."""
        self._values.write(b"".join(agent.values for agent in self._agents))
        self._run("initialize_agents", 0, len(self._agents), self._values)
        for index, agent in enumerate(self._agents):
            if agent.plan.checkpoint is not None:
                self._states.write(agent.plan.checkpoint.payload)
                evaluates = int(agent.lacks_evaluation)
                self._run("write_states", index, 1, self._states, self.state_bytes, evaluates)
        self._began = time.monotonic()

    def advance(self, stopped: Collection[Path] = ()) -> bool:
        """Train all agents, but for those of `stopped` runs, for about LAUNCH_S; return False where
        none has anything left to do."""
        for agent in self._agents:
            agent.is_stopped = agent.member.path in stopped
        if all(agent.has_ended for agent in self._agents):
            return False
        self._stops.write(bytes(agent.is_stopped for agent in self._agents))
        launched = time.monotonic()
        count = len(self._agents)
        self._launch(
            *("train_agents", 0, count),
            *(self._pieces, self._stops, self._records, self._statuses),
        )
        self.take_records()  # of the launch before, meanwhile
        self._gpu.synchronize()
        counts = []
        statuses = STATUS.iter_unpack(self._statuses.read(self._statuses.size))
        for agent, status in zip(self._agents, statuses, strict=True):
            agent.step, is_finished, agent.fault, records = status
            agent.is_finished = bool(is_finished)
            counts.append(records)
        if any(counts):
            self._heard = self.elapsed_s, self._records.read(self._records.size), counts
        launch_s = max(time.monotonic() - launched, 1e-3)
        self._pieces = max(1, int(self._pieces * min(4.0, LAUNCH_S / launch_s)))
        self._pieces = min(self._pieces, LARGEST_U32)
        return True

    def take_records(self) -> None:
        """Hand over what the last launch has reported."""
        if self._heard is None:
            return
        time_s, data, counts = self._heard
        self._heard = None
        for index, (agent, count) in enumerate(zip(self._agents, counts, strict=True)):
            for number in range(count):
                offset = (index * self._records_each + number) * RECORD_BYTES
                agent.take(report_at(data, offset, agent.plan.steps), time_s)

    def fetch(self, first: int, count: int) -> Iterator[Fetched]:
        """Yield what is saved of these agents."""
        size, each = self.state_bytes, self._policy_bytes
        for begin in range(first, first + count, self.rows):
            rows = min(self.rows, first + count - begin)
            self._run("read_states", begin, rows, self._states, size)
            data = self._states.read(rows * size)
            payloads = [data[row * size : (row + 1) * size] for row in range(rows)]
            hashes = [hashlib.sha256(payload).digest() for payload in payloads]
            self._hashes.write(b"".join(hashes))
            self._run("read_policies", begin, rows, self._hashes, self._images)
            images = self._images.read(2 * rows * each)
            for row, (payload, sha256) in enumerate(zip(payloads, hashes, strict=True)):
                policy, best = (
                    images[at : at + each] for at in (2 * row * each, (2 * row + 1) * each)
                )
                yield Fetched(payload, sha256, policy, best if any(best) else b"")


def report_at(data: bytes, offset: int, steps: int) -> Report:
    """Return the report of a Record."""
    is_evaluation, step = HEAD.unpack_from(data, offset)
    offset += HEAD.size
    if is_evaluation:
        return Evaluation(0, step, *EVALUATION.unpack_from(data, offset))
    updates, episodes, ended, last, best, returned, length, *metrics = PROGRESS.unpack_from(
        data, offset
    )
    of_ended = (ended, returned, length) if ended else ()
    return TrainingProgress(
        0, step, steps, updates, episodes, last, best, tuple(metrics), *of_ended
    )


def room_for(gpu: Gpu, agent: Agent) -> int:
    """Return how many agents like this one fit into the GPU's free memory, with its program
    loaded; raise OutOfGpuMemoryError where none does."""
    each = gpu.number("agent_bytes") + gpu.number("record_count") * RECORD_BYTES
    each += STATUS.size + len(agent.values) + 1
    room = (gpu.free_bytes() - LEFT_BYTES - BUFFER_BYTES) // each
    if room < 1:
        raise OutOfGpuMemoryError(
            f"an agent of {agent.plan.description.name} takes {each / 1e6:,.1f} MB, and "
            f"{gpu.info.name} has {gpu.free_bytes() / 1e6:,.1f} MB left: end other programs there, "
            "or train with --board host"
        )
    return room


class GpuRuns:
    """The runs of a group on a GPU."""

    def __init__(
        self,
        screen: GroupScreen,
        interruption: Interruption,
        ended: Callable[[Member], None],
        at_once: int,
        reported: Callable[[Member], None],
        verified: int | None,
    ) -> None:
        """Prepare to train so many runs at once, if they fit. `ended` is called with each run that
        has ended, `reported` some times a second; `verified` of each experiment are trained here as
        well."""
        self._screen = screen
        self._interruption = interruption
        self._ended = ended
        self._at_once = at_once
        self._reported = reported
        self._verified = VERIFIED if verified is None else verified
        self._left = dict[str, int]()  # to verify, by experiment
        self._stopped: set[Path] = set()
        self._is_pausing = False
        self._origin = origin_now()

    def stop(self, members: Sequence[Member]) -> None:
        """Pause these runs."""
        self._stopped |= {member.path for member in members}

    def pause(self, why: str) -> None:
        """Pause the runs in training, and start no other. `why` is shown."""
        if not self._is_pausing:
            self._screen.activity(why)
        self._is_pausing = True

    @property
    def _is_to_rest(self) -> bool:
        if self._interruption.requested:
            self.pause("pausing; Ctrl-C once more quits without saving")
        return self._is_pausing

    def train(self, next_run: Next) -> None:
        """Train the next runs, as many as train at once, until there is none, or to a pause."""
        while not self._is_to_rest and (taken := [*islice(iter(next_run, None), self._at_once)]):
            by_experiment: dict[str, list[Agent]] = {}
            for member, request in taken:
                with open_plan(request) as plan:
                    agent = agent_of(member, request, plan)
                by_experiment.setdefault(plan.description.name, []).append(agent)
            for agents in by_experiment.values():
                with contextlib.closing(Gpu()) as gpu:
                    self._train_experiment(gpu, agents)

    def _train_experiment(self, gpu: Gpu, agents: Sequence[Agent]) -> None:
        """Train the agents of an experiment, as many at once as fit."""
        name = agents[0].plan.description.name
        shared = min(MOST_SHARED_BYTES, gpu.info.shared_bytes)
        gpu.load(program_of(name, shared), REGISTERS)
        room = room_for(gpu, agents[0])
        for first in range(0, len(agents), room):
            if self._is_to_rest:
                break
            batch = agents[first : first + room]
            prepare_new_runs(batch)
            with contextlib.closing(Population(gpu, batch)) as population:
                self._train_batch(gpu, population, batch)

    def _train_batch(self, gpu: Gpu, population: Population, agents: Sequence[Agent]) -> None:
        what = f"training {len(agents):,} runs on {gpu.info.name}"
        for agent in agents:
            agent.member.state = STARTING
            self._screen.changed(agent.member)
            for text in notes_of(agent, gpu.info.name, len(agents) - 1):
                agent.take(text, 0.0)
        self._screen.activity(what)
        population.begin()
        saved_s = save_s = 0.0
        while not self._is_to_rest and population.advance(self._stopped):
            now_s = population.elapsed_s
            self._show(agents, now_s)
            if now_s - saved_s > max(SAVE_EVERY_S, save_s / LARGEST_SHARE):
                population.take_records()  # a save has all reports up to its step
                self._save(gpu, population, agents, now_s, is_last=False)
                saved_s = population.elapsed_s
                save_s = saved_s - now_s
                self._screen.activity(what)
        train_s = population.elapsed_s
        population.take_records()
        completes = self._verify(population, agents)
        self._save(gpu, population, agents, train_s, is_last=True, completes=completes)
        self._settle(agents, completes)

    def _show(self, agents: Sequence[Agent], elapsed_s: float) -> None:
        for agent in agents:
            member = agent.member
            done = max(0, agent.step - agent.plan.first_step)
            rate = done / elapsed_s if elapsed_s > 0 else None
            left_s = (agent.plan.steps - agent.step) / rate if rate else None
            was, member.state = member.state, TRAINING
            evaluation = agent.evaluation
            report = {
                "step": min(agent.step, agent.plan.steps),
                "steps": agent.plan.steps,
                "steps_per_s": rate,
                "left_s": left_s,
            }
            if evaluation is not None:
                names = ("return_mean", "return_std", "length_mean")
                report |= {name: getattr(evaluation, name) for name in names}
            member.take(report)
            if member.state != was:
                self._screen.changed(member)
            self._reported(member)
        self._screen.refresh()

    # -- what comes back ---------------------------------------------------------------------------

    def _verify(self, population: Population, agents: Sequence[Agent]) -> bool:
        """Train a sample of finished runs here; raise RefusedError unless they end alike. Return
        False where a pause came before: what has learned all is completed when it is resumed."""
        finished = [index for index, agent in enumerate(agents) if agent.is_finished]
        experiment = agents[0].plan.description.name
        count = min(self._left.setdefault(experiment, self._verified), len(finished))
        for number in range(count):
            if self._is_to_rest:
                return False
            index = finished[len(finished) * number // count]
            agent = agents[index]
            title = agent.member.title
            self._screen.activity(f"training {title} here, to compare")
            ours = self._trained_here(agent)
            if ours is None:
                return False
            (fetched,) = population.fetch(index, 1)
            state, theirs = ours["state_sha256"], fetched.sha256.hex()
            if state != theirs:
                raise RefusedError(
                    f"{title} ended with state {theirs[:16]}… on the GPU, and with {state[:16]}… "
                    f"on this machine{REMEDY}"
                )
            mean = ours["return_mean"]
            if agent.evaluation is None or mean != agent.evaluation.return_mean:
                found = None if agent.evaluation is None else agent.evaluation.return_mean
                raise RefusedError(
                    f"{title} has a return of {found} on the GPU, and of {mean} on this "
                    f"machine{REMEDY}"
                )
            self._left[experiment] -= 1
        return True

    def _trained_here(self, agent: Agent) -> RunDocument | None:
        """Return how a run ends on this machine; None after a pause."""
        values = agent.plan.hyperparameters
        settings = (f"{name}={values[name]}" for name in values if name not in ("seed", "steps"))
        with tempfile.TemporaryDirectory() as folder:
            request = replace(
                agent.request,
                experiment=agent.plan.description.name,
                board=DEFAULT_BOARD,
                seed=agent.plan.seed,
                steps=agent.plan.steps,
                settings=tuple(settings),
                set_file=None,
                resume=None,
                built=None,
                restarts=False,
                tensorboard=False,
                wandb=None,
                out=Path(folder) / "run",
            )
            try:
                return train(request, Screen)
            except Interrupted:
                self._interruption.requested = True
                return None

    def _save(
        self,
        gpu: Gpu,
        population: Population,
        agents: Sequence[Agent],
        train_s: float,
        *,
        is_last: bool,
        completes: bool = False,
    ) -> None:
        """Save what the agents are in the runs' folders; finished ones are complete where it
        `completes` them. What was saved before a fault stays.

        On a full disk the agents go on, and the next save has what this one lacks; the last one
        fails then.
        """
        self._screen.activity(f"saving {len(agents):,} runs")

        def error_of(given: tuple[Agent, Fetched]) -> RltError | None:
            try:
                save(*given, gpu, train_s, self._origin, completes=completes)
            except RltError as error:
                return error
            return None

        with ThreadPoolExecutor(WRITERS) as writers:  # most of the time goes by waiting for disks
            for first in range(0, len(agents), population.rows):
                several = agents[first : first + population.rows]
                fetched = population.fetch(first, len(several))
                saved = [each for each in zip(several, fetched, strict=True) if not each[0].fault]
                for (agent, _), error in zip(saved, writers.map(error_of, saved), strict=True):
                    if isinstance(error, DiskError) and not is_last:
                        self._screen.activity(f"{error}: trying again later")
                        return
                    if error is not None:
                        agent.member.fail(error)

    def _settle(self, agents: Sequence[Agent], completes: bool) -> None:
        """Set the members' states."""
        for agent in agents:
            member = agent.member
            member.activity = ""
            if agent.fault:
                member.fail(
                    TrainingFaultError(
                        f"{FAULTS[agent.fault]} at step {agent.step:,}: the same run with "
                        f"--board {DEFAULT_BOARD} says which"
                    )
                )
            elif member.state != FAILED:
                member.state = FINISHED if agent.is_finished and completes else PAUSED
            self._ended(member)
            self._screen.changed(member)


REMEDY = (
    f": no run of this training is completed. Train with --board {DEFAULT_BOARD}, and report it "
    "with the output of `rlt doctor`"
)


def notes_of(agent: Agent, gpu: str, others: int) -> list[StatusText]:
    """Return what the log of a run says of its beginning here."""
    where = f"trains on {gpu} from step {agent.plan.first_step:,}, beside "
    texts = [where + plural(others, "other run")]
    if agent.plan.checkpoint is not None:
        texts += filter(None, (faults.note_of_resumption(agent.plan), note_of_rate(agent.plan)))
    return [StatusText(SEVERITY_INFO, text) for text in texts]


def save(
    agent: Agent,
    fetched: Fetched,
    gpu: Gpu,
    train_s: float,
    origin: Mapping[str, Any],
    *,
    completes: bool,
) -> None:
    """Save an agent in the folder of its run, which is begun where necessary."""
    plan = agent.plan
    first_step = plan.first_step + 1 if agent.folder is None and plan.resumed else None
    if agent.folder is None:
        agent.folder = open_folder(agent, gpu, origin)
    else:
        agent.folder.lock()
    folder = agent.folder
    with contextlib.closing(folder):
        agent.best.offer(fetched.best)
        append_reports(agent, folder, first_step)
        session = structs.replace(
            folder.content.sessions[-1], last_step=agent.step, train_s=train_s
        )
        state = "finished" if agent.is_finished and completes else "paused"
        whole_s = agent.train_s_before + train_s
        run = run_in_state(folder.content, state, agent.step, whole_s, agent.evaluation, session)
        run = structs.replace(run, best=agent.best.best, checkpoint_train_s=run.train_s)
        checkpoint = checkpoint_of(plan, agent.step, fetched.payload, checkpoint_versions(run))
        files = {
            CHECKPOINT_FILE: to_safetensors(checkpoint, plan.description.tensors),
            POLICY_FILE: fetched.policy,
            **agent.best.files,
        }
        folder.commit(agent.step, fetched.sha256.hex(), files, run)
    agent.unsaved, agent.is_torn = [], False


def append_reports(agent: Agent, folder: RunFolder, first_step: int | None) -> None:
    """Append what an agent has reported to the logs of its run; in TensorBoard's it replaces what
    comes from `first_step` on."""
    plan = agent.plan
    if agent.is_torn:
        saved = folder.content.checkpoint_step
        folder.truncate_metrics(-1 if saved is None else saved)
    agent.is_torn = True
    log = ReportLog(
        folder,
        [metric.name for metric in plan.description.metrics],
        plan.request.tensorboard is not False,
        first_step,
        plan.searchable,
        plan.request.wandb,
        folder.read_metrics(),
    )
    with contextlib.closing(log):
        for time_s, event in agent.unsaved:
            log.take(event, plan.first_step, time_s)
        log.flush()
    if log.disk_error is not None:
        raise log.disk_error


def open_folder(agent: Agent, gpu: Gpu, origin: Mapping[str, Any]) -> RunFolder:
    """Create the folder of a run, or begin a session in that of a paused one; lock it."""
    plan = agent.plan
    sources = plan.sources
    assert sources is not None
    folder = plan.resumed
    if folder is None:
        earlier = Run(started=timestamp(), begun_us=agent.begun_us)
        run = started(plan, gpu, sources, earlier, origin)
        return RunFolder.create(
            agent.member.path, run, [sources], agent.request.restarts, agent.sibling
        )
    folder.lock()
    folder.require_unchanged()
    remove_partials(folder.path)
    folder.truncate_metrics(plan.first_step)
    folder.keep(*sources)
    run = started(plan, gpu, sources, folder.content, origin)
    folder.write(plan.with_resumed_save(run))
    return folder


def started(plan: Plan, gpu: Gpu, sources: Sources, earlier: Run, origin: Mapping[str, Any]) -> Run:
    """Return run.json of a run whose session begins on the GPU."""
    sizes = plan.description.bytes_of
    identity = StatedIdentity(
        experiment=plan.description.name,
        board=plan.board.name,
        device="Block",
        fingerprint=plan.description.fingerprint,
        state=State.TRAINING,
        learner_bytes=sizes["learner"],
        replay_bytes=sizes["replay"],
        scratch_bytes=sizes["scratch"],
        program="train",
    )
    return run_at_start(plan, identity, gpu.info.name, sources.name, earlier, origin)

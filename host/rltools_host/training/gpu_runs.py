"""Training of a group's runs on a GPU, all at once: each is an agent of a program (firmware/cuda).

What an agent has learned comes back as the save of its run. A sample of the runs is trained here as
well, and has to end with the same state. The runs then go on to this machine's program, which finds
nothing left to learn: it evaluates them, and writes their policies.
"""

from __future__ import annotations

import contextlib
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from rltools_host.boards.gpu import Gpu, GpuMemory, OutOfGpuMemoryError, at
from rltools_host.boards.messages import Identity, State
from rltools_host.build.gpu import MOST_SHARED_BYTES, REGISTERS, program_of
from rltools_host.documents import LARGEST_U32
from rltools_host.errors import (
    Interrupted,
    RefusedError,
    RltError,
    TrainingFaultError,
    UsageError,
)
from rltools_host.interruption import Interruption
from rltools_host.lines import plural
from rltools_host.runs.checkpoint import Checkpoint, to_safetensors
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import timestamp
from rltools_host.runs.provenance import Sources, checkpoint_versions
from rltools_host.runs.saves import CHECKPOINT_FILE, LARGEST_SHARE, remove_partials
from rltools_host.training.board import run_at_start, run_in_state
from rltools_host.training.parallel_runs import Next, Runs
from rltools_host.training.plan import (
    DEFAULT_BOARD,
    Plan,
    TrainingRequest,
    has_learned,
    open_plan,
)
from rltools_host.training.progress import (
    FAILED,
    PAUSED,
    STARTING,
    TRAINING,
    GroupScreen,
    Member,
    Screen,
)
from rltools_host.training.run import train
from rltools_host.training.training_time import train_s_before

VERIFIED = 2  # runs of a group that are trained here as well
LEFT_BYTES = 256 * 1024 * 1024  # of the GPU's memory, for its driver and other programs
BUFFER_BYTES = 64 * 1024 * 1024  # for states on their way
LAUNCH_S = 0.5  # between two looks at the agents
SAVE_EVERY_S = 60.0  # on the way; no more often
REPORT = struct.Struct("<III")  # of firmware/cuda/agents.cpp: step, is_finished, fault
FAULTS = (
    "",
    "a hyperparameter was refused",
    "a loss, an action or a number of the environment is not finite",
)


@dataclass
class Agent:
    """A run on its way: its member of the group, and its checked request."""

    member: Member
    request: TrainingRequest
    plan: Plan
    report: tuple[int, int, int] = (0, 0, 0)
    folder: RunFolder | None = None  # once something of it is saved
    train_s_before: float = 0.0  # in training, in earlier sessions

    @property
    def step(self) -> int:
        return self.report[0]

    @property
    def is_finished(self) -> bool:
        return bool(self.report[1])

    @property
    def fault(self) -> int:
        return self.report[2]

    @property
    def values(self) -> bytes:
        """Return the hyperparameters, four bytes each, in the description's order."""
        return b"".join(
            struct.pack("<I" if entry.is_whole else "<f", self.plan.hyperparameters[entry.name])
            for entry in self.plan.description.hyperparameters
        )


class Population:
    """Agents of one experiment in the memory of a GPU, until it is closed."""

    def __init__(self, gpu: Gpu, agents: Sequence[Agent]) -> None:
        self._gpu, self._agents = gpu, agents
        self._agent_bytes = gpu.number("agent_bytes")
        self._threads = gpu.number("block_threads")
        self._shared_bytes = gpu.number("shared_bytes")
        self.state_bytes = agents[0].plan.description.bytes_of["state"]
        if gpu.number("report_bytes") != REPORT.size:
            raise UsageError("the program's reports are of another version: delete build/cuda")
        at_once = BUFFER_BYTES // self.state_bytes
        self._rows = max(1, min(at_once, len(agents)))  # of states on their way
        self._last = max(agent.plan.steps for agent in agents)
        self._until = min(agent.plan.first_step for agent in agents)
        self._chunk = max(1, self._last // 1000)  # steps of a launch
        self._memory: list[GpuMemory] = []
        try:
            self._place = self._allocate(self._agent_bytes * len(agents))
            self._reports = self._allocate(REPORT.size * len(agents))
            self._states = self._allocate(self.state_bytes * self._rows)
            self._values = self._allocate(len(agents[0].values) * len(agents))
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

    def _run(self, kernel: str, first: int, count: int, *arguments: GpuMemory | int) -> None:
        place = at(self._place, first * self._agent_bytes)
        self._gpu.run(kernel, count, self._threads, self._shared_bytes, [place, *arguments])

    def begin(self) -> None:
        """Begin the agents, those of paused runs from their checkpoints."""
        self._values.write(b"".join(agent.values for agent in self._agents))
        self._run("initialize_agents", 0, len(self._agents), self._values)
        for index, agent in enumerate(self._agents):
            if agent.plan.checkpoint is not None:
                self._states.write(agent.plan.checkpoint.payload)
                self._run("write_states", index, 1, self._states, self.state_bytes)

    def advance(self) -> bool:
        """Train all agents for about LAUNCH_S; return False where none has steps left."""
        if all(agent.is_finished or agent.fault for agent in self._agents):
            return False
        self._until = min(self._until + self._chunk, LARGEST_U32)
        until = self._until if self._until < self._last else LARGEST_U32
        launched = time.monotonic()
        self._run("train_agents", 0, len(self._agents), until, self._reports)
        rows = REPORT.iter_unpack(self._reports.read(self._reports.size))
        for agent, report in zip(self._agents, rows, strict=True):
            agent.report = report
        launch_s = max(time.monotonic() - launched, 1e-3)
        self._chunk = max(1, int(self._chunk * min(4.0, LAUNCH_S / launch_s)))
        return True

    def states(self, first: int, count: int) -> Iterator[bytes]:
        """Yield the training states of these agents: a checkpoint's payload each."""
        size = self.state_bytes
        for begin in range(first, first + count, self._rows):
            rows = min(self._rows, first + count - begin)
            self._run("read_states", begin, rows, self._states, size)
            data = self._states.read(rows * size)
            yield from (data[row * size : (row + 1) * size] for row in range(rows))


def room_for(gpu: Gpu, agent: Agent) -> int:
    """Return how many agents like this one fit into the GPU's free memory, with its program
    loaded; raise OutOfGpuMemoryError where none does."""
    each = gpu.number("agent_bytes") + REPORT.size + len(agent.values)
    room = (gpu.free_bytes() - LEFT_BYTES - BUFFER_BYTES) // each
    if room < 1:
        raise OutOfGpuMemoryError(
            f"an agent of {agent.plan.description.name} takes {each / 1e6:,.1f} MB, and "
            f"{gpu.info.name} has {gpu.free_bytes() / 1e6:,.1f} MB left: end other programs there, "
            "or train with --board host"
        )
    return room


class GpuRuns:
    """The runs of a group on a GPU; `finishing` takes those that have learned all."""

    def __init__(
        self,
        screen: GroupScreen,
        interruption: Interruption,
        ended: Callable[[Member], None],
        verified: int | None,
        finishing: Runs,
    ) -> None:
        self._screen = screen
        self._interruption = interruption
        self._ended = ended
        self._verified = VERIFIED if verified is None else verified
        self._finishing = finishing

    def train(self, next_run: Next) -> None:
        """Train all runs, or to a pause."""
        learned: list[Agent] = []  # before a pause
        by_experiment: dict[str, list[Agent]] = {}
        for member, request in iter(next_run, None):
            with open_plan(request) as plan:
                agent = Agent(member, request, plan)
            if has_learned(plan):
                learned.append(agent)
            else:
                by_experiment.setdefault(plan.description.name, []).append(agent)
        self._verify(learned, lambda index: checkpoint_of_save(learned[index]).state_sha256)
        complete = [(agent.member, agent.request) for agent in learned]
        for agents in by_experiment.values():
            with contextlib.closing(Gpu()) as gpu:
                complete += self._train_experiment(gpu, agents)
        if not self._interruption.requested:
            self._screen.activity("evaluating what the GPU has trained")
            following = iter(complete)
            self._finishing.train(lambda: next(following, None))

    def _train_experiment(
        self, gpu: Gpu, agents: Sequence[Agent]
    ) -> list[tuple[Member, TrainingRequest]]:
        """Train the agents of an experiment, as many at once as fit; return what has learned
        all."""
        name = agents[0].plan.description.name
        shared = min(MOST_SHARED_BYTES, gpu.info.shared_bytes)
        gpu.load(program_of(name, shared), REGISTERS)
        room = room_for(gpu, agents[0])
        learned: list[tuple[Member, TrainingRequest]] = []
        for first in range(0, len(agents), room):
            if self._interruption.requested:
                break
            batch = agents[first : first + room]
            with contextlib.closing(Population(gpu, batch)) as population:
                learned += self._train_batch(gpu, population, batch)
        return learned

    def _train_batch(
        self, gpu: Gpu, population: Population, agents: Sequence[Agent]
    ) -> list[tuple[Member, TrainingRequest]]:
        began, what = time.monotonic(), f"training {len(agents):,} runs on {gpu.info.name}"
        for agent in agents:
            agent.member.state = STARTING
            self._screen.changed(agent.member)
        self._screen.activity(what)
        population.begin()
        saved_at, save_s = began, 0.0
        while not self._interruption.requested and population.advance():
            now = time.monotonic()
            self._show(agents, now - began)
            if now - saved_at > max(SAVE_EVERY_S, save_s / LARGEST_SHARE):
                self._save(gpu, population, agents, now - began)
                saved_at = time.monotonic()
                save_s = saved_at - now
                self._screen.activity(what)
        train_s = time.monotonic() - began
        finished = [index for index, agent in enumerate(agents) if agent.is_finished]

        def hash_of(number: int) -> str:
            (payload,) = population.states(finished[number], 1)
            return checkpoint_of(agents[finished[number]], payload).state_sha256

        self._verify([agents[index] for index in finished], hash_of)
        self._save(gpu, population, agents, train_s)
        return self._settle(agents)

    def _show(self, agents: Sequence[Agent], elapsed_s: float) -> None:
        for agent in agents:
            member = agent.member
            done = max(0, agent.step - agent.plan.first_step)
            rate = done / elapsed_s if elapsed_s > 0 else None
            left_s = (agent.plan.steps - agent.step) / rate if rate else None
            was, member.state = member.state, TRAINING
            member.take(
                {
                    "step": min(agent.step, agent.plan.steps),
                    "steps": agent.plan.steps,
                    "steps_per_s": rate,
                    "left_s": left_s,
                }
            )
            if member.state != was:
                self._screen.changed(member)
        self._screen.refresh()

    # -- what comes back ---------------------------------------------------------------------------

    def _verify(self, agents: Sequence[Agent], hash_of: Callable[[int], str]) -> None:
        """Train a sample of finished runs here; raise RefusedError unless they end alike."""
        count = min(self._verified, len(agents))
        for index in (len(agents) * number // count for number in range(count)):
            if self._interruption.requested:
                return
            title = agents[index].member.title
            self._screen.activity(f"training {title} here, to compare")
            ours, theirs = self._trained_here(agents[index]), hash_of(index)
            if ours is not None and ours != theirs:
                raise RefusedError(
                    f"{title} ended with state {theirs[:16]}… on the GPU, and with {ours[:16]}… on "
                    "this machine: no run of this training is completed. Train with --board host, "
                    "and report it with the output of `rlt doctor`"
                )

    def _trained_here(self, agent: Agent) -> str | None:
        """Return the hash of the state in which a run ends on this machine; None after a pause."""
        values = {
            **agent.plan.hyperparameters,
            "eval_freq": LARGEST_U32,
            "n_eval_episodes": 1,
        }
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
                restarts=False,
                tensorboard=False,
                wandb=None,
                out=Path(folder) / "run",
            )
            try:
                return train(request, Screen)["state_sha256"]
            except Interrupted:
                self._interruption.requested = True
                return None

    def _save(
        self, gpu: Gpu, population: Population, agents: Sequence[Agent], train_s: float
    ) -> None:
        """Save the states in the runs' folders. What was saved before a fault stays."""
        self._screen.activity(f"saving {len(agents):,} runs")
        for agent, payload in zip(agents, population.states(0, len(agents)), strict=True):
            if agent.fault:
                continue
            try:
                self._save_one(gpu, agent, payload, train_s, len(agents) - 1)
            except RltError as error:
                agent.member.fail(error)

    def _save_one(
        self, gpu: Gpu, agent: Agent, payload: bytes, train_s: float, others: int
    ) -> None:
        plan = agent.plan
        checkpoint = checkpoint_of(agent, payload)
        if agent.folder is None:
            agent.folder = open_folder(agent, gpu)
        else:
            agent.folder.lock()
        folder = agent.folder
        with contextlib.closing(folder):
            session = structs.replace(
                folder.content.sessions[-1], last_step=agent.step, train_s=train_s
            )
            whole_s = agent.train_s_before + train_s
            run = run_in_state(folder.content, "paused", agent.step, whole_s, None, session)
            run = structs.replace(run, checkpoint_train_s=run.train_s)
            text = (
                f"trained on {gpu.info.name} from step {plan.first_step:,} to {agent.step:,}, "
                f"beside {plural(others, 'other run')}; a GPU does not report on the way"
            )
            row = {"kind": "event", "time_s": whole_s, "step": agent.step, "severity": 6}
            folder.append_metrics([{**row, "text": text}])
            versions = checkpoint_versions(run)
            files = {
                CHECKPOINT_FILE: to_safetensors(
                    replace(checkpoint, versions=versions), plan.description.tensors
                )
            }
            folder.commit(agent.step, checkpoint.state_sha256, files, run)

    def _settle(self, agents: Sequence[Agent]) -> list[tuple[Member, TrainingRequest]]:
        """Set the members' states; return what has learned all, with the request to go on."""
        learned = []
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
                member.state = PAUSED
                if agent.is_finished:
                    request = replace(
                        agent.request,
                        settings=(),
                        resume=str(member.path),
                        seed=None,
                        out=None,
                        restarts=False,
                    )
                    learned.append((member, request))
                    continue
            self._ended(member)
        return learned


def checkpoint_of(agent: Agent, payload: bytes) -> Checkpoint:
    plan = agent.plan
    return Checkpoint(
        experiment=plan.description.name,
        fingerprint=plan.description.fingerprint,
        step=agent.step,
        payload=payload,
        hyperparameters=plan.hyperparameters,
        learning=plan.description.learning,
    )


def checkpoint_of_save(agent: Agent) -> Checkpoint:
    checkpoint = agent.plan.checkpoint
    assert checkpoint is not None
    return checkpoint


def open_folder(agent: Agent, gpu: Gpu) -> RunFolder:
    """Create the folder of a run, or begin a session in that of a paused one; lock it."""
    plan = agent.plan
    sources = plan.sources
    assert sources is not None
    folder = plan.resumed
    if folder is None:
        run = started(plan, gpu, sources, Run(started=timestamp()))
        return RunFolder.create(agent.member.path, run, [sources], agent.request.restarts)
    folder.lock()
    folder.require_unchanged()
    remove_partials(folder.path)
    rows = folder.truncate_metrics(plan.first_step)
    agent.train_s_before = train_s_before(folder.content, plan.first_step, rows)
    folder.keep(*sources)
    folder.write(plan.with_resumed_save(started(plan, gpu, sources, folder.content)))
    return folder


def started(plan: Plan, gpu: Gpu, sources: Sources, earlier: Run) -> Run:
    """Return run.json of a run whose session begins on the GPU."""
    sizes = plan.description.bytes_of
    identity = Identity(
        experiment=plan.description.name,
        board=plan.board.name,
        device="Block",
        revision="",
        fingerprint=plan.description.fingerprint,
        protocol_version=0,
        state=State.TRAINING,
        counts_instructions=False,
        learner_bytes=sizes["learner"],
        replay_bytes=sizes["replay"],
        scratch_bytes=sizes["scratch"],
        unique_id="",
        program="train",
    )
    return run_at_start(plan, identity, gpu.info.name, sources.name, earlier)

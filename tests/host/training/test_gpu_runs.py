"""A group's runs on a GPU, whose driver is a stand-in here: it does what the instructions say, one
thread after the other. No real GPU has run them.

Unlike the tests of the kernels (tests/lib/kernels/block) these have the program as Zig compiles it:
its barriers, its shared memory, and whose memory each thread reads."""

from __future__ import annotations

import itertools
import math
import shlex
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cuda_driver
from group_calls import ENVIRONMENT, RLT
from rltools_host.boards import gpu
from rltools_host.boards.messages import Evaluation, Report
from rltools_host.build import tools
from rltools_host.commands import cli
from rltools_host.errors import DiskError, Interrupted, RefusedError, TrainingFaultError
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.training import gpu_runs
from rltools_host.training.metrics_log import without_null
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen
from rltools_host.training.study import TuneRequest
from rltools_host.training.tune import tune
from tune_calls import prune_second

pytestmark = [pytest.mark.all, pytest.mark.timeout(300)]

LEFT_OUT = ("kind", "time_s", "counter")
# An evaluation of an episode on the way, and one at the end.
RARELY = ("--set", "eval_freq=1000", "--set", "n_eval_episodes=1")
# Steps of which the last ones learn: the stand-in takes some 20 ms for one.
TD3 = (
    *("pendulum-td3", "--steps", "330", "--set", "learning_starts=290"),
    *("--set", "eval_freq=200", "--set", "n_eval_episodes=1", "--set", "report_every=50"),
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools.ensure_group("zig")
    return cuda_driver.build(tmp_path_factory.mktemp("driver"))


def rlt(words: tuple[str, ...], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RLT, *words],
        env={**environment, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def train(driver: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = ("train", *words, "--no-tensorboard")
    return rlt(words, cuda_driver.environment(driver, **variables))


def run_of(path: Path) -> Run:
    return RunFolder.open(path).content


def trained_here(folder: Path, seed: int, *words: str) -> Run:
    out = folder / f"here-{seed}"
    more = ("--seed", str(seed), "--out", str(out), "--no-tensorboard")
    assert cli.run(["train", *words, *more]) == 0
    return run_of(out)


def policies_of(run: Path) -> list[bytes]:
    folder = RunFolder.open(run)
    return [folder.policy_path.read_bytes(), folder.best_path.read_bytes()]


def require_same_reports(*runs: Path) -> None:
    """Compare the numbers that two runs have reported, without the time."""
    reports, others = (
        [
            {name: value for name, value in without_null(row).items() if name not in LEFT_OUT}
            for row in RunFolder.open(run).read_metrics()
            if row["kind"] != "event"
        ]
        for run in runs
    )
    # Losses are added up tile by tile, and a block has tiles of another size.
    assert reports == [pytest.approx(row, rel=1e-6, nan_ok=True) for row in others]


@pytest.mark.parametrize(
    ("words", "is_reversed"),
    [
        (TD3, "1"),
        (("pendulum-ppo", "--steps", "2048", "--set", "n_epochs=2", *RARELY), ""),
        *(
            pytest.param(words, "1", marks=pytest.mark.slow)
            for words in (
                ("pendulum-sac", "--steps", "120", "--set", "learning_starts=100", *RARELY),
                ("pendulum-xqc", "--steps", "60", "--set", "learning_starts=40", *RARELY),
                ("cartpole-dqn", "--steps", "1100", *RARELY),
                ("pendulum-ppo-masked", "--steps", "2048", "--set", "n_epochs=1", *RARELY),
                ("crazyflie-ppo", "--steps", "8192", *RARELY),
            )
        ),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else given,
)
def test_runs_on_a_gpu_end_with_this_machines_bits(
    words: tuple[str, ...], is_reversed: str, driver: Path, tmp_path: Path
) -> None:
    """Whichever thread of a block goes first."""
    group = tmp_path / "group"
    more = ("--board", "cuda", "--seeds", "0,7", "--verify", "1", "--out", str(group))
    done = train(driver, *words, *more, reversed=is_reversed)
    assert done.returncode == 0, done.stderr
    for seed in (0, 7):
        run = run_of(group / f"s{seed}")
        here = trained_here(tmp_path, seed, *words)
        assert (run.state, run.board) == ("finished", "cuda")
        assert (run.state_sha256, run.return_mean) == (here.state_sha256, here.return_mean)
        assert (run.length_mean, run.best) == (here.length_mean, here.best)
        assert run.sessions[0].port == "Stand-in GPU"
        folders = group / f"s{seed}", tmp_path / f"here-{seed}"
        assert policies_of(folders[0]) == policies_of(folders[1])
        require_same_reports(*folders)
    assert (run_of(group / "s0").begun_us or 0) < (run_of(group / "s7").begun_us or 0)
    assert cli.run(["evaluate", str(group / "s7"), "--episodes", "2"]) == 0


def test_a_pause_and_a_gpu_that_gives_up(driver: Path, tmp_path: Path) -> None:
    """What is saved goes on, and the rest begins again."""
    group = tmp_path / "group"
    td3 = ("pendulum-td3", "--steps", "200", "--set", "learning_starts=60")
    td3 = (*td3, "--set", "eval_freq=40", "--set", "n_eval_episodes=1")
    words = (*td3, "--board", "cuda", "--seeds", "0-1", "--out", str(group))
    # The fifth launch trains for the fourth time, and to step 1 + 4 + 16 + 64 at most.
    stopped = train(driver, *words, sigterm_at="5")
    assert stopped.returncode == 130, stopped.stderr
    assert "2 saved on the way" in stopped.stdout + stopped.stderr
    paused = [run_of(group / f"s{seed}") for seed in (0, 1)]
    assert [run.state for run in paused] == ["paused", "paused"]
    assert all(0 < run.step < 200 for run in paused)

    lost = train(driver, "--resume", str(group), falls_off_after="4")
    assert lost.returncode != 0
    assert "the GPU gave up: cuLaunchKernel returned 719, CUDA_ERROR_LAUNCH_FAILED" in lost.stderr
    assert f"rlt train --resume {group}" in lost.stderr
    assert [run_of(group / f"s{seed}").step for seed in (0, 1)] == [run.step for run in paused]

    done = train(driver, "--resume", str(group), "--verify", "2")
    assert done.returncode == 0, done.stderr
    for seed in (0, 1):
        trained_here(tmp_path, seed, *td3)
        assert policies_of(group / f"s{seed}") == policies_of(tmp_path / f"here-{seed}")


@pytest.fixture
def gpu_here(driver: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU for commands of this process."""
    monkeypatch.setattr(gpu, "LIBRARIES", [str(driver / "libcuda.so.1")])
    for name, value in cuda_driver.environment(driver).items():
        monkeypatch.setenv(name, value)
    gpu.library.cache_clear()
    yield
    gpu.library.cache_clear()


@pytest.mark.usefixtures("gpu_here")
def test_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be saved on the way is saved later, and once; only the last save completes a
    run, whose agent has finished before."""
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "60", "--set", "report_every=10", "--set", "eval_freq=30")
    words = (*words, "--set", "n_eval_episodes=1")
    saves = []

    def commit(folder: RunFolder, *arguments: Any) -> None:
        saves.append(arguments[-1].state)
        if len(saves) in (1, 4):
            raise DiskError("no space left")
        committed(folder, *arguments)

    committed = RunFolder.commit
    monkeypatch.setattr(RunFolder, "commit", commit)
    monkeypatch.setattr(gpu_runs, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(gpu_runs, "LARGEST_SHARE", math.inf)
    more = ("--board", "cuda", "--seeds", "0", "--verify", "0", "--out", str(group))
    assert cli.run(["train", *words, *more, "--no-tensorboard"]) == 0
    assert len(saves) > 5
    assert saves == ["paused"] * (len(saves) - 1) + ["finished"]
    here = trained_here(tmp_path, 0, *words)
    assert run_of(group / "s0").state_sha256 == here.state_sha256
    require_same_reports(group / "s0", tmp_path / "here-0")


@pytest.mark.usefixtures("gpu_here")
def test_a_tuning_trains_some_trials_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is pruned at its first evaluation."""
    prune_second(monkeypatch)
    path = tmp_path / "t"
    settings = ("eval_freq=30", "n_eval_episodes=1", "report_every=1")
    training = TrainingRequest(
        "pendulum-td3", "cuda", out=path, steps=90, settings=settings, jobs=2, tensorboard=False
    )
    document = tune(TuneRequest(training, trials=3), GroupScreen)
    assert [each["state"] for each in document["trials"]] == ["complete", "pruned", "complete"]
    runs = [run_of(path / f"t{number}" / "s0") for number in range(3)]
    assert [run.state for run in runs] == ["finished", "paused", "finished"]
    assert runs[1].step < 90
    assert [each["value"] for each in document["trials"]][::2] == [
        run.return_mean for run in runs[::2]
    ]
    words = shlex.split(document["command"] or "")[2:]
    words[words.index("cuda")] = "host"
    best = document["best"]
    assert best is not None
    assert cli.run(["train", *words, "--seed", "0", "--out", str(tmp_path / "here")]) == 0
    assert run_of(tmp_path / "here").state_sha256 == runs[best["trial"]].state_sha256


@pytest.mark.usefixtures("gpu_here")
def test_a_save_has_the_best_policy_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the GPU still hashes the state of that policy: it would be lost with a pause."""
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "45", "--set", "eval_freq=20", *RARELY[2:])
    saved: list[Run] = []

    def commit(folder: RunFolder, *arguments: Any) -> None:
        saved.append(arguments[-1])
        committed(folder, *arguments)

    committed = RunFolder.commit
    monkeypatch.setattr(RunFolder, "commit", commit)
    monkeypatch.setattr(gpu_runs, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(gpu_runs, "LARGEST_SHARE", math.inf)
    monkeypatch.setattr(gpu_runs, "LAUNCH_S", 0.0)  # a piece of work in each
    more = ("--board", "cuda", "--seeds", "0", "--verify", "0", "--out", str(group))
    assert cli.run(["train", *words, *more, "--no-tensorboard"]) == 0
    evaluated = [run for run in saved if run.return_mean is not None]
    assert len(evaluated) > 45
    largest = -math.inf
    for run in evaluated:
        largest = max(largest, run.return_mean or -math.inf)
        assert run.best is not None
        assert run.best.return_mean == largest


@pytest.mark.usefixtures("gpu_here")
def test_a_pause_before_the_comparison_completes_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has learned all is compared when it is resumed, and finished then."""
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "60", "--set", "n_eval_episodes=1")

    def pause(*_: Any) -> None:
        raise Interrupted("paused")

    with monkeypatch.context() as patched:
        patched.setattr(gpu_runs, "train", pause)
        more = ("--board", "cuda", "--seeds", "0", "--out", str(group), "--no-tensorboard")
        assert cli.run(["train", *words, *more]) == Interrupted.exit_code
    run = run_of(group / "s0")
    assert (run.state, run.step) == ("paused", 60)
    assert cli.run(["train", "--resume", str(group)]) == 0
    assert run_of(group / "s0").state == "finished"
    here = trained_here(tmp_path, 0, *words)
    assert run_of(group / "s0").state_sha256 == here.state_sha256


def pause_where(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    more: tuple[str, ...],
    is_there: Callable[[gpu_runs.Agent], bool],
) -> None:
    """Train with a piece of work in each launch, here and later, and pause before the launch for
    which the agent `is_there`."""

    def advance(population: gpu_runs.Population, *arguments: Any) -> bool:
        (agent,) = population._agents
        if is_there(agent):
            signal.raise_signal(signal.SIGTERM)
        return advanced(population, *arguments)

    advanced = gpu_runs.Population.advance
    monkeypatch.setattr(gpu_runs, "LAUNCH_S", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(gpu_runs.Population, "advance", advance)
        assert cli.run(["train", *words, *more, "--no-tensorboard"]) == Interrupted.exit_code


@pytest.mark.usefixtures("gpu_here")
def test_a_run_goes_on_within_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause there costs no row of the log, which is this machine's, and no time."""
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "45", "--set", "eval_freq=20", *RARELY[2:])
    words = (*words, "--set", "report_every=20")
    more = ("--board", "cuda", "--seeds", "0", "--verify", "0", "--out", str(group))
    launches = itertools.count(1)  # the 23rd: after 20 steps, within 10 pieces of an evaluation
    pause_where(monkeypatch, words, more, lambda _: next(launches) == 23)
    paused = run_of(group / "s0")
    assert (paused.state, paused.step, paused.return_mean) == ("paused", 20, None)
    assert cli.run(["train", "--resume", str(group), "--verify", "0"]) == 0
    done, here = run_of(group / "s0"), trained_here(tmp_path, 0, *words)
    assert done.state_sha256 == here.state_sha256
    assert done.train_s == pytest.approx(sum(session.train_s or 0.0 for session in done.sessions))
    times = [row["time_s"] for row in RunFolder.open(group / "s0").read_metrics()]
    assert times == sorted(times)
    require_same_reports(group / "s0", tmp_path / "here-0")


@pytest.mark.usefixtures("gpu_here")
def test_a_run_that_goes_on_with_its_last_updates_is_evaluated_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause between the last step and what is learned from it adds no evaluation."""
    group = tmp_path / "group"
    words = ("pendulum-ppo", "--steps", "2048", "--set", "n_epochs=1", *RARELY)
    more = ("--board", "cuda", "--seeds", "0", "--verify", "0", "--out", str(group))

    pause_where(monkeypatch, words, more, lambda agent: agent.step == 2048)
    paused = run_of(group / "s0")
    assert (paused.state, paused.step) == ("paused", 2048)
    assert cli.run(["train", "--resume", str(group), "--verify", "0"]) == 0
    here = trained_here(tmp_path, 0, *words)
    assert run_of(group / "s0").state_sha256 == here.state_sha256
    assert run_of(group / "s0").best == here.best
    evaluations, expected = (
        [
            (row["step"], row["return_mean"])
            for row in RunFolder.open(folder).read_metrics()
            if row["kind"] == "evaluation"
        ]
        for folder in (group / "s0", tmp_path / "here-0")
    )
    assert evaluations == expected


@pytest.mark.usefixtures("gpu_here")
def test_another_return_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of an evaluation that has other bits after a training with the same."""

    def report_at(*arguments: Any) -> Report:
        report = reported(*arguments)
        if isinstance(report, Evaluation):
            return replace(report, return_mean=math.nextafter(report.return_mean, 0.0))
        return report

    reported = gpu_runs.report_at
    monkeypatch.setattr(gpu_runs, "report_at", report_at)
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "60", "--set", "n_eval_episodes=1", "--no-tensorboard")
    words = (*words, "--board", "cuda", "--seeds", "0", "--out", str(group))
    assert cli.run(["train", *words]) == RefusedError.exit_code
    assert "has a return of" in capsys.readouterr().err
    assert not list(group.glob("s*/save-*"))


@pytest.mark.usefixtures("gpu_here")
@pytest.mark.parametrize("learning_starts", [100, 5])
def test_a_fault_leaves_what_was_saved_before(
    learning_starts: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the run whose weight is no number, at its evaluation or at its first action; the other one
    goes on."""
    group = tmp_path / "group"
    words = ("pendulum-td3", "--steps", "25", "--set", f"learning_starts={learning_starts}")
    words = (*words, "--set", "eval_freq=20", *RARELY[2:], "--no-tensorboard")
    launches = 0

    def advance(population: gpu_runs.Population, *arguments: Any) -> bool:
        nonlocal launches
        launches += 1
        if launches == 20:
            (fetched,) = population.fetch(0, 1)
            population._states.write(struct.pack("<f", math.nan) + fetched.payload[4:])
            population._run("write_states", 0, 1, population._states, population.state_bytes, 0)
        return advanced(population, *arguments)

    advanced = gpu_runs.Population.advance
    monkeypatch.setattr(gpu_runs.Population, "advance", advance)
    monkeypatch.setattr(gpu_runs, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(gpu_runs, "LARGEST_SHARE", math.inf)
    monkeypatch.setattr(gpu_runs, "LAUNCH_S", 0.0)  # a step in each, and a save behind it
    more = ("--board", "cuda", "--seeds", "0-1", "--verify", "0", "--out", str(group))
    assert cli.run(["train", *words, *more]) == TrainingFaultError.exit_code
    said = capsys.readouterr()
    assert "is not finite at step" in said.out + said.err
    faulty, other = run_of(group / "s0"), run_of(group / "s1")
    assert (faulty.state, faulty.step) == ("paused", 19)
    assert (other.state, other.step) == ("finished", 25)


def test_other_bits_are_refused(driver: Path, tmp_path: Path) -> None:
    """As by a driver that fuses no multiplication with an addition."""
    translator = tmp_path / "unfused.py"
    translator.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(cuda_driver.__file__).parent)!r})\n"
        "import cuda_driver, ptx\n"
        "fused = cuda_driver.translate\n"
        "def unfused(text):\n"
        "    module = fused(text)\n"
        "    added = '#define fma_f32(x, y, z) add<f32>(mul<f32>(x, y), z)\\n'\n"
        "    return ptx.PtxModule(added + module.text.replace('fma<f32>(', 'fma_f32('))\n"
        "cuda_driver.translate = unfused\n"
        "sys.exit(cuda_driver.main(*sys.argv[1:]))\n"
    )
    environment = cuda_driver.environment(driver)
    environment["STAND_IN_CUDA_TRANSLATE"] = shlex.join([sys.executable, str(translator)])
    group = tmp_path / "group"
    words = ("--board", "cuda", "--seeds", "0-1", "--out", str(group), "--no-tensorboard")
    done = rlt(("train", *TD3, *words), environment)
    assert done.returncode != 0
    assert "on the GPU, and with" in done.stderr
    assert "no run of this training is completed" in done.stderr
    assert not list(group.glob("s*/save-*"))


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        ((), {"devices": "0"}, "the NVIDIA driver finds no GPU"),
        ((), {"version": "11000"}, "needs one of CUDA 11.1 or later: install a newer driver"),
        ((), {"memory": "330000000"}, "MB left: end other programs there"),
        (("--port", "COM3"), {}, "--port does not go with --board cuda"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: tuple[str, ...],
    variables: dict[str, str],
    sentence: str,
    driver: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "group"
    more = ("--board", "cuda", "--seeds", "0-1", "--out", str(out), *words)
    done = train(driver, *TD3, *more, **variables)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gpu_is_for_groups_of_compiled_environments(capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (("pendulum-td3",), "trains many runs at once, and one alone is faster"),
        (("ant-ppo", "--seeds", "0-1"), "ant-ppo is not for cuda, which does not provide mujoco"),
        (("pendulum-td3", "--verify", "1"), "--verify goes with --seeds"),
    ):
        assert cli.run(["train", *words, "--board", "cuda"]) != 0
        assert sentence in capsys.readouterr().err
    assert cli.run(["train", "pendulum-td3", "--seeds", "0-1", "--verify", "1"]) != 0
    assert "--verify goes with a GPU, and not with --board host" in capsys.readouterr().err

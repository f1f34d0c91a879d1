"""Groups and tunings on a real Ray cluster of two nodes here; nodes and workers are killed."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from group_calls import ENVIRONMENT, RLT, rlt
from rltools_host.errors import UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.training.group_plan import is_for_group
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.ray_cluster import files_of, write_files
from run_folders import document_of
from tune_calls import new_project, stored
from waiting import wait_for

OF_NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
KILLS = 10  # of each, in the exhaustive tests


def new_cluster() -> Any:
    cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={**OF_NODE, "include_dashboard": False}
    )
    cluster.add_node(**OF_NODE)
    return cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    cluster = new_cluster()
    yield cluster
    cluster.shutdown()


def words(cluster: Any, name: str, trials: int, steps: int) -> list[str]:
    return [
        *("tune", "pendulum-td3", "--board", "host", "--name", name, "--ray", cluster.address),
        *("--trials", str(trials), "--steps", str(steps), "--set", "eval_freq=200"),
    ]


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])


def workers() -> list[int]:
    """Processes of Ray that train, of this test's cluster."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"ray::TrialActor"):
                found += [int(path.name)] if os.getpid() in ancestors(int(path.name)) else []
        except OSError:
            continue
    return found


def told(path: Path) -> dict[int, tuple[str, float | None]]:
    """The trials that the storage has as finished."""
    if not (path / "study.db").is_file():
        return {}
    return {n: each for n, each in stored(path).items() if each[0] in ("COMPLETE", "PRUNED")}


@pytest.mark.all
@pytest.mark.slow  # with --all on this machine alone: test_tune.py
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [1, pytest.param(KILLS, marks=pytest.mark.exhaustive)])
def test_no_finished_trial_is_lost_on_a_cluster(kills: int, cluster: Any, tmp_path: Path) -> None:
    """Nodes, workers and the command are killed; each finished trial's run is here, as it was
    trained there. The command is killed soon after a run has begun, when nothing may have been told
    yet."""
    project, chance = new_project(tmp_path), random.Random(1)
    path = project / "runs/t"
    killed = {"node": 0, "worker": 0, "head": 0}
    node = next(each for each in cluster.worker_nodes)
    known: dict[int, tuple[str, float | None]] = {}
    trials = 5 + 2 * kills
    while True:
        start = [*RLT, *words(cluster, "t", trials, 4000)]
        head = subprocess.Popen(
            start, env=ENVIRONMENT, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with head:
            while head.poll() is None:
                time.sleep(chance.uniform(0.1, 0.5))
                training = workers()
                if training and killed["worker"] < kills and chance.random() < 0.3:
                    os.kill(chance.choice(training), signal.SIGKILL)
                    killed["worker"] += 1
                elif len(training) == 2 and killed["node"] < kills and chance.random() < 0.3:
                    cluster.remove_node(node, allow_graceful=False)
                    node = cluster.add_node(**OF_NODE)
                    killed["node"] += 1
                elif training and killed["head"] < kills and chance.random() < 0.3:
                    head.kill()
                    killed["head"] += 1
            assert head.stdout is not None
            said = head.stdout.read().decode()
        assert known.items() <= told(path).items()
        known = told(path)
        assert head.returncode in (0, -signal.SIGKILL), said
        if head.returncode == 0:
            if set(killed.values()) == {kills}:
                break
            trials += 4  # it was too fast
    assert len(known) == trials, (path / "group.json").read_text()
    rows = {run["variant"]: run for run in document_of(GroupFolder.open(path))["runs"]}
    for number, (state, value) in known.items():
        if state == "PRUNED" and not (path / f"t{number}").exists():
            # It was ended early, and its node was lost before the run came from there; the command
            # that saw it knows the step, and one that was started since does not.
            assert rows[f"t{number}"]["state"] == "pruned"
            continue
        run = RunFolder.open(path / f"t{number}/s0").content
        assert run.state == ("finished" if state == "COMPLETE" else "paused")
        assert state == "PRUNED" or run.return_mean == value
    best = max((v, n) for n, (state, v) in known.items() if state == "COMPLETE" and v is not None)
    settings = RunFolder.open(path / f"t{best[1]}/s0").content
    line = next(text for text in said.splitlines() if "train pendulum-td3" in text)
    again = rlt(*shlex.split(line)[1:], "--out", "again", cwd=project)
    assert again.returncode == 0, again.stderr
    assert RunFolder.open(project / "again").content.state_sha256 == settings.state_sha256


@pytest.mark.all
@pytest.mark.timeout(900)
def test_runs_of_a_group_train_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    """With the bits of this machine."""
    project = new_project(tmp_path)
    options = ["--steps", "300", "--ray", cluster.address, "--out", "g", "--no-tensorboard"]
    ended = rlt("train", "pendulum-td3", "--seeds", "0-3", *options, cwd=project)
    assert ended.returncode == 0, ended.stderr
    assert "2 at once" in ended.stdout, "a run for each processor of the two nodes"
    runs = [RunFolder.open(project / f"g/s{seed}").content for seed in range(4)]
    assert [run.state for run in runs] == ["finished"] * 4
    here = rlt("train", "pendulum-td3", "--seed", "3", *options[:2], "--out", "here", cwd=project)
    assert here.returncode == 0, here.stderr
    assert RunFolder.open(project / "here").content.state_sha256 == runs[3].state_sha256


@pytest.mark.all
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_group_loses_no_run_with_a_worker_or_a_node(cluster: Any, tmp_path: Path) -> None:
    """Each begins again elsewhere, to the bits of a run that was not lost."""
    project = new_project(tmp_path)
    options = ["--steps", "20000", "--no-tensorboard"]
    words = ["train", "pendulum-td3", "--seeds", "0-1", "--ray", cluster.address, "--out", "g"]
    head = subprocess.Popen(
        [*RLT, *words, *options],
        env=ENVIRONMENT,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with head:
        wait_for(lambda: len(workers()) == 2, 300)
        killed = workers()
        os.kill(killed[0], signal.SIGKILL)
        wait_for(lambda: len(set(workers()) - {killed[0]}) == 2, 300)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        cluster.add_node(**OF_NODE)
        said, _ = head.communicate(timeout=600)
    assert head.returncode == 0, said
    document = document_of(GroupFolder.open(project / "g"))
    assert (document["state"], [run["state"] for run in document["runs"]]) == (
        "finished",
        ["finished"] * 2,
    )
    for seed in range(2):
        run = RunFolder.open(project / f"g/s{seed}")
        here = rlt(
            "train", "pendulum-td3", "--seed", str(seed), *options, "--out", f"h{seed}", cwd=project
        )
        assert here.returncode == 0, here.stderr
        alone = RunFolder.open(project / f"h{seed}")
        assert run.content.state_sha256 == alone.content.state_sha256
        assert run.policy_path.read_bytes() == alone.policy_path.read_bytes()


def test_a_cluster_is_for_a_group() -> None:
    with pytest.raises(UsageError, match="--ray goes with --seeds"):
        is_for_group(TrainingRequest("pendulum-td3", ray="h:1"))


def test_a_folder_comes_whole_or_not_at_all(tmp_path: Path) -> None:
    old = {"run.json": b"{}", "save-1/policy.rltp": b"old"}
    new = {"run.json": b'{"a": 1}', "save-2/policy.rltp": b"new"}
    write_files(tmp_path / "s0", old)
    assert files_of(tmp_path / "s0") == old
    write_files(tmp_path / "s0", new)
    assert files_of(tmp_path / "s0") == new
    for name in ("../out", "/tmp/out", "a/../../out"):
        with pytest.raises(UsageError, match="is outside the run's folder"):
            write_files(tmp_path / "s0", {name: b""})
    assert files_of(tmp_path / "s0") == new

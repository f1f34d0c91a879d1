"""`rlt bench gymnasium`: who learns what, what is compared, and who fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rltools_host.bench import gymnasium_tasks
from rltools_host.bench.contenders import OURS
from rltools_host.bench.gymnasium_tasks import GymnasiumBenchmark, Task
from rltools_host.errors import UnknownNameError
from rltools_host.runs.aggregates import interval_of_difference
from stub_peers import add_peer

STUB = """
import json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["--task"] == "CartPole-v1" and given["--algorithm"] == "ppo", given
assert given["--hidden"] == "16,16" and given["--episodes"] == "20", given
print(json.dumps({"version": "3.4", "cpu_s": int(given["--steps"]) / 16,
                  "return_mean": 10.0 + int(given["--seed"])}))
"""


@pytest.mark.all
def test_both_learn_the_task_and_who_fails_is_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers, directory = tmp_path / "peers", tmp_path / "gymnasium"
    add_peer(peers, directory, "stub", STUB, "run.py")
    add_peer(peers, directory, "broken", "raise SystemExit('out of luck')", "run.py")
    (peers / "missing").mkdir()
    (peers / "missing" / "run.py").write_text(STUB)
    (peers / "missing" / "requirements.txt").write_text("./no-such-package\n")
    document = gymnasium_tasks.run(
        GymnasiumBenchmark(
            tasks="CartPole-v1",
            seeds="0,1",
            jobs=2,
            steps=4096,
            hidden="16,16",
            settings=["learning_rate=1e-3"],
            peers_directory=peers,
            directory=directory,
        )
    )
    entries = {entry["name"]: entry for entry in document["summary"]}
    ours, stub = entries[OURS], entries["stub"]
    assert ours["runs"] == stub["runs"] == 2
    assert ours["cpu_s"] > 0.1
    assert 8 <= ours["return_mean"] <= 500
    assert stub["returns"] == [10, 11]
    assert stub["times_ours"] == 256 / ours["cpu_s"]
    assert stub["difference"] == ours["return_mean"] - 10.5
    low, high = stub["difference_interval"]
    assert low <= stub["difference"] <= high
    assert "out of luck" in entries["broken"]["error"]
    assert "cannot be installed" in entries["missing"]["error"]
    assert json.loads((directory / "result.json").read_text())["rows"] == document["rows"]
    out = capsys.readouterr().out
    assert out.startswith("Mean return of 20 episodes, means over seeds; ")
    assert "CartPole-v1  PPO        4,096  16,16   stub 3.4" in out


def test_difference_is_of_the_runs_that_there_are() -> None:
    tasks = {"A": Task("sac", 10), "B": Task("ppo", 10)}
    rows = [
        {"name": OURS, "task": "A", "seed": seed, "version": "1", "cpu_s": 2.0, "return_mean": seed}
        for seed in (2, 0, 1)
    ]
    rows.append(
        {"name": "x", "task": "A", "seed": 0, "version": "2", "cpu_s": 8.0, "return_mean": 5}
    )
    ours, other, *of_b = gymnasium_tasks.summary(rows, tasks, (OURS, "x"))
    assert ours["returns"] == [0, 1, 2]  # by seed
    assert (other["difference"], other["difference_interval"]) == (-4, None)  # of one run
    assert other["times_ours"] == 4
    assert [entry["error"] for entry in of_b] == ["not yet", "not yet"]


def test_interval_holds_the_difference_and_narrows_with_it() -> None:
    wide = interval_of_difference([0, 10, 20, 30], [5, 5, 5, 6])
    narrow = interval_of_difference([14, 15, 15, 16], [5, 5, 5, 6])
    assert wide is not None
    assert narrow is not None
    assert wide[0] < 0 < 9.75 < wide[1]
    assert 9 <= narrow[0] < 9.75 < narrow[1] <= 10.5


def test_cells() -> None:
    entry = {
        "algorithm": "sac",
        "steps": 12345,
        "hidden": "64,64",
        "name": "x",
        "version": "2",
        "return_mean": -123.46,
        "cpu_s": 2.06,
    }
    whole = ("SAC", "12,345", "64,64", "x 2", "-123.5")
    assert gymnasium_tasks.cells(entry) == (*whole, "-", "2.1 s", "-")
    against = {"difference": 4.25, "difference_interval": (-1.26, 9.0), "times_ours": 3.14}
    cells = gymnasium_tasks.cells({**entry, **against})
    assert cells == (*whole, "4.2 (-1.3 to 9.0)", "2.1 s", "3.1")
    assert gymnasium_tasks.said_of({**entry}) == "return -123.5, 2.1 s of processor time"
    assert gymnasium_tasks.said_of({"error": "no luck"}) == "no luck"


def test_means_over_seeds_and_medians_of_times() -> None:
    rows = [
        {"name": name, "task": "A", "seed": seed, "version": name, "cpu_s": cpu_s, "return_mean": 3}
        for name, times in ((OURS, (1.0, 2.0, 9.0)), ("x", (4.0, 4.0, 5.0)))
        for seed, cpu_s in enumerate(times)
    ]
    rows[2]["return_mean"] = 9
    rows.append({"name": "x", "task": "A", "seed": 3, "error": "no luck"})
    ours, other = gymnasium_tasks.summary(rows, {"A": Task("sac", 10)}, (OURS, "x"))
    assert (ours["return_mean"], ours["cpu_s"], ours["runs"], ours["version"]) == (5, 2, 3, OURS)
    assert (other["difference"], other["times_ours"], other["runs"]) == (2, 2, 3)
    assert "difference" not in ours
    (failed,) = gymnasium_tasks.summary(rows[6:], {"A": Task("sac", 10)}, ("x",))
    assert (failed["error"], failed["title"]) == ("no luck", "A")


def test_unknown_task_is_refused_by_name() -> None:
    with pytest.raises(UnknownNameError, match='unknown task "Pendulum-v2"'):
        gymnasium_tasks.run(GymnasiumBenchmark(tasks="Pendulum-v2"))

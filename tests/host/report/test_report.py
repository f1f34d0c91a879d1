"""The report: one self-contained page, nothing made up, nothing of a run's texts becomes markup."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from html_page import Page
from policy_samples import sample_images
from rltools_host.documents import typed
from rltools_host.errors import RefusedError
from rltools_host.policies.image import parse_policy
from rltools_host.report import page as page_module
from rltools_host.report.markup import Panel, Section
from rltools_host.report.run_data import RunData, collect
from rltools_host.report.sections import episodes, learning, provenance
from rltools_host.report.sections.board import MemoryPart, memory_map
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder

HYPERPARAMETERS = {
    "seed": 0,
    "steps": 400,
    "eval_freq": 200,
    "n_eval_episodes": 10,
    "report_every": 20,
    "learning_starts": 100,
    "learning_rate": 0.002,
    "gamma": 0.99,
    "tau": 0.005,
    "action_noise": 0.1,
    "target_policy_noise": 0.2,
    "target_noise_clip": 0.5,
    "policy_delay": 2,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-08,
}


def metadata(**changes: Any) -> dict[str, Any]:
    image = parse_policy(sample_images()["pendulum"])
    identity = {
        "device": "CortexM7",
        "revision": "abc",
        "counts_instructions": True,
        "learner_bytes": 218_112,
        "replay_bytes": 211_080,
        "scratch_bytes": 74_944,
        "unique_id": "00",
    }
    return {
        "experiment": "pendulum-td3",
        "algorithm": "TD3",
        "environment": "Pendulum-v1",
        "fingerprint": "0393dfd8",
        "board": "qemu-cortex-m7",
        "seed": 0,
        "steps": 400,
        "hyperparameters": HYPERPARAMETERS,
        "git_revision": "0c88f5cefcc30108e50a2bfd64199f1d680edace",
        "git_dirty": True,
        "identity": identity,
        "host": {"platform": "Linux", "processors": 2},
        "versions": {"python": "3.11.7"},
        "memory": [
            {"name": "RAM1", "use": "code", "used_bytes": 405_912, "bytes": 524_288},
            {"name": "RAM2", "use": "replay", "used_bytes": 229_556, "bytes": 524_288},
        ],
        "state": "finished",
        "train_s": 18.5,
        "state_sha256": image.state_sha256,
        "started": "2026-01-02T03:04:05+00:00",
        **changes,
    }


def progress(step: int) -> dict[str, Any]:
    known = step > 100
    return {
        "time_s": step / 20,
        "kind": "progress",
        "counter": step * 1000 if step <= 100 else 100_000 + (step - 100) * 50_000,
        "step": step,
        "steps": 400,
        "updates": max(0, step - 100),
        "episodes": step // 200,
        "last_return": -1000.0 - step if step >= 200 else None,
        "best_return": -1200.0 if step >= 200 else None,
        "critic_1_loss": 0.5 / step if known else None,
        "critic_2_loss": 0.6 / step if known else None,
        "actor_loss": step / 100 if known else None,
    }


def evaluation_row(step: int) -> dict[str, Any]:
    return {
        "time_s": step / 20,
        "kind": "evaluation",
        "counter": step * 50_000,
        "step": step,
        "episodes": 10,
        "return_mean": -1300.0 + step,
        "return_std": 200.0,
        "return_min": -1400.0 + step,
        "return_max": -900.0 + step,
    }


def make_run(path: Path, policy: bytes | None, **changes: Any) -> RunFolder:
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps(metadata(**changes)))
    rows = [progress(step) for step in range(20, 401, 20)]
    rows += [evaluation_row(200), evaluation_row(400)]
    rows.append({"kind": "event", "time_s": 1.0, "step": 0, "severity": 6, "text": "hello"})
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if policy is not None:
        (path / "policy.rltp").write_bytes(policy)
    return RunFolder.open(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """Of a finished run, beside the same run on the host."""
    runs = tmp_path_factory.mktemp("runs")
    policy = sample_images()["pendulum"]
    folder = make_run(runs / "20260101-000000-a", policy)
    make_run(runs / "20260101-000001-b", None, board="host")
    make_run(runs / "20260101-000002-c", None, board="host", seed=1)
    make_run(runs / "20260101-000003-d", None, board="teensy41", state="paused")
    return collect(folder)


@pytest.fixture(scope="module")
def finished(data: RunData) -> str:
    return page_module.page(data)


def section_html(section: Section | None) -> str:
    assert section is not None
    return section.html()


def test_the_page_is_self_contained_and_small(finished: str) -> None:
    assert len(finished.encode()) < 1_500_000
    page = Page(finished)
    names = {tag for tag, _ in page.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "image", "foreignobject"}
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"url\((?!#)", finished)
    assert "@import" not in finished
    addresses = set(re.findall(r"https?://[^\s\"'<]+", finished))
    assert all(address.startswith("http://www.w3.org/") for address in addresses)


def test_the_page_says_what_the_run_was(finished: str) -> None:
    text = Page(finished).words
    for expected in (
        "pendulum-td3 on qemu-cortex-m7",
        "over 100 episodes in gymnasium's Pendulum-v1.",
        "git checkout 0c88f5cefcc30108e50a2bfd64199f1d680edace ./rlt train pendulum-td3 "
        "--board qemu-cortex-m7 --seed 0 --steps 400 --set eval_freq=200 "
        "--set learning_rate=0.002",
        "guest instructions per step with an update, median 50,000",
    ):
        assert expected in text, expected


def test_runs_on_other_boards_are_compared(finished: str) -> None:
    rows = re.findall(r"<tr><th>([\w-]+)</th>.*?<td>(.*?)</td></tr>", finished)
    compared = {name: cell for name, cell in rows if "run" in cell or "bits" in cell}
    assert compared["qemu-cortex-m7"] == "this run"
    assert "same bits" in compared["host"]
    assert "teensy41" not in compared  # paused


@pytest.mark.all
def test_a_run_with_another_state_is_shown_as_such(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "20260101-000000-a", sample_images()["pendulum"])
    make_run(tmp_path / "20260101-000001-b", None, board="host", state_sha256="11" * 32)
    text = section_html(provenance.same_bits(collect(folder)))
    assert "other bits" in text
    assert "same bits</span>" not in text


def test_of_a_long_run_not_every_episode_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 300 million steps has 25,000 of them, which were five megabytes of the page."""
    monkeypatch.setattr(learning, "MAX_EPISODES", 50)
    folder = make_run(tmp_path / "run", None)
    row = next(row for row in folder.read_metrics() if row["kind"] == "progress")

    def section(count: int) -> str:
        rows = [{**row, "step": n, "episodes": n + 1, "last_return": n} for n in range(count)]
        folder.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return section_html(learning.returns(collect(folder)))

    whole, long = section(50), section(250)
    assert "48 training episodes" in long  # the least and the greatest of 24 parts
    assert "50 training episodes" not in whole
    assert 0.9 < len(long) / len(whole) < 1.1


def test_what_is_unknown_is_left_out(tmp_path: Path) -> None:
    """A run that broke off before anything was fetched or measured."""
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.json").write_text("{}")
    text = Path(page_module.write_report(str(path), tmp_path / "report.html")).read_text(
        encoding="utf-8"
    )
    page = Page(text)
    headings = [tag for tag, _ in page.elements if tag == "h2"]
    assert "no policy has been fetched yet" in text
    assert len(headings) == 1  # provenance
    assert "None" not in "".join(page.text)
    assert not re.search(r"\bnan\b", "".join(page.text), re.IGNORECASE)


HOSTILE = "<script>alert(1)</script>\"'&$x_1$"


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    changes: dict[str, Any] = dict.fromkeys(("board", "git_revision", "started"), HOSTILE)
    changes["hyperparameters"] = {HOSTILE: 1.0}
    changes["versions"] = {HOSTILE: HOSTILE}
    changes["memory"] = [{"name": HOSTILE, "use": "", "used_bytes": 1, "bytes": 10}]
    folder = make_run(tmp_path / "run", None, **changes)
    text = page_module.write_report(folder, tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    page = Page(text)
    assert HOSTILE in "".join(page.text)
    assert {"script"}.isdisjoint(tag for tag, _ in page.elements)


def test_hostile_labels_stay_text_in_plots() -> None:
    values = np.linspace(0.0, 1.0, 20)
    svg = episodes.episode_panels([Panel(HOSTILE, values)], 0.05)
    assert "<script" not in svg
    assert svg.count("&lt;script&gt;") == 2


def test_a_policy_of_another_state_gives_no_report(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", sample_images()["pendulum"], state_sha256="22" * 32)
    with pytest.raises(RefusedError):
        page_module.write_report(folder)
    assert not folder.report_path.exists()


def test_the_report_is_a_function_of_the_run(data: RunData, finished: str) -> None:
    assert page_module.page(data) == finished


def stated(values: dict[str, Any]) -> Run:
    return typed(values, Run)


def test_the_memory_map_fills_each_region_exactly() -> None:
    regions = memory_map(stated(metadata()))
    assert [region.name for region in regions] == ["RAM1", "RAM2"]
    for region in regions:
        assert sum(part.bytes for part in region.parts) == region.bytes
    parts = {part.name: part.bytes for part in regions[0].parts}
    assert parts["learner"] == 218_112
    assert parts["scratch"] == 74_944
    assert parts["free"] == 524_288 - 405_912
    assert regions[1].parts[0] == MemoryPart("replay", "replay buffer", 211_080)

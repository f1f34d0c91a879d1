"""The report: one self-contained page, nothing made up, nothing of a run's texts becomes markup."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drawn import check_drawn, drawn
from html_page import Page
from policy_samples import sample_images
from rltools_host.build import firmware
from rltools_host.documents import typed
from rltools_host.errors import RefusedError
from rltools_host.policies.episodes import EpisodeEnd
from rltools_host.policies.evaluation import Evaluation
from rltools_host.policies.image import parse_policy
from rltools_host.report import group_page, markup
from rltools_host.report import page as page_module
from rltools_host.report.markup import Panel, Section
from rltools_host.report.run_data import RunData, collect
from rltools_host.report.sections import SECTIONS, board, episodes, learning, provenance
from rltools_host.report.sections.board import MemoryPart, memory_map
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import Project

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


def test_identifiers_are_unique_and_all_references_lead_somewhere(finished: str) -> None:
    identifiers = re.findall(r'\bid="([^"]+)"', finished)
    assert len(identifiers) == len(set(identifiers))
    references = re.findall(r'(?:url\(|href=")#([^)"]+)', finished)
    assert references
    assert set(references) <= set(identifiers)


def test_every_placeholder_color_has_become_a_variable_of_the_style_sheet(finished: str) -> None:
    for name, placeholder in markup.COLORS.items():
        assert placeholder not in finished
        assert finished.count(f"--{name}:") == 3  # light, dark, print
    drawn = re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", finished)
    assert drawn == []


def test_the_page_says_what_the_run_was(finished: str) -> None:
    text = Page(finished).words
    for expected in (
        "pendulum-td3 on qemu-cortex-m7",
        "100 episodes in gymnasium's Pendulum-v1",
        "worse than the \N{MINUS SIGN}200 that counts as solved",  # the policy is untrained
        "neither time nor cycles",
        "Other than the experiment's defaults: steps, eval_freq, learning_rate",
        "0c88f5cefcc30108e50a2bfd64199f1d680edace with uncommitted changes",
        "git checkout 0c88f5cefcc30108e50a2bfd64199f1d680edace ./rlt train pendulum-td3 "
        "--board qemu-cortex-m7 --seed 0 --steps 400 --set eval_freq=200 "
        "--set learning_rate=0.002",
        "RAM2 · 229,556 of 524,288 bytes (43.8 %)",
        "replay buffer 211,080",
        "18.5 s",
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


def curves(page: str) -> dict[str, str]:
    """Of the section of metrics: each name, as its picture has it, and the sentence beneath."""
    figures = re.findall(
        r'<figure><svg class="metric" role="img" aria-label="([^"]+) over environment steps".*?'
        r"<figcaption>(.*?)</figcaption></figure>",
        page,
        re.DOTALL,
    )
    return dict(figures)


def test_metrics_of_a_run_have_their_descriptions(finished: str) -> None:
    """Also of a run of before, whose rows have the three losses by the same names."""
    assert curves(finished) == {
        "critic 1 loss": "Mean squared error of the first critic against its target.",
        "critic 2 loss": "Mean squared error of the second critic against its target.",
        "actor loss": "Minus the first critic&#x27;s value of the actor&#x27;s actions.",
    }


def test_metrics_of_any_algorithm_are_drawn(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", None, algorithm="<other>")
    rows = [row for row in folder.read_metrics() if row["kind"] == "progress"]
    losses = ("critic_1_loss", "critic_2_loss", "actor_loss")
    rows = [{name: value for name, value in row.items() if name not in losses} for row in rows]
    for row in rows:
        row |= {"kl": row["step"] / 1000, "never": None, "entropy": 1.0, "actor_loss": -1.0}
    folder.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = section_html(learning.metrics(collect(folder)))
    assert curves(text) == {"kl": "", "entropy": "", "actor loss": ""}
    assert "--columns: 3" in text
    row = {**rows[0], "kl": None, "episode_length": 9.0}
    folder.metrics_path.write_text(json.dumps(row) + "\n")
    assert curves(section_html(learning.metrics(collect(folder)))) == {
        "entropy": "",
        "actor loss": "",
        "episode length": "Mean steps of the training episodes that ended lately.",
    }


def test_of_a_long_run_not_every_episode_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 300 million steps has 25,000 of them, which were five megabytes of the page."""
    monkeypatch.setattr(learning, "MOST_EPISODES", 50)
    folder = make_run(tmp_path / "run", None)
    row = next(row for row in folder.read_metrics() if row["kind"] == "progress")

    def section(count: int) -> str:
        rows = [{**row, "step": n, "episodes": n + 1, "last_return": n} for n in range(count)]
        folder.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return section_html(learning.returns(collect(folder)))

    whole, long = section(50), section(250)
    assert "50 training episodes" in long
    assert "50 training episodes" not in whole
    assert 0.9 < len(long) / len(whole) < 1.1


def test_curves_of_metrics_fill_their_rows() -> None:
    assert [learning.columns(count) for count in range(1, 11)] == [3, 3, 3, 4, 3, 3, 4, 4, 3, 4]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 101.0], True), ([1.0, 100.0], False), ([0.0, 1e9], False), ([-1.0, 1e9], False)],
)
def test_axis_of_a_metric(values: list[float], expected: bool) -> None:
    assert learning.is_logarithmic(values) is expected
    curve = markup.Curve(np.arange(2.0), np.array(values))
    assert learning.small_curve("x", curve, 240).startswith('<svg class="metric"')


def test_what_is_drawn(data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no goal, many quantities, and a group of one variant or of several."""
    panels = [Panel(f"value {i}", np.arange(4.0) * i) for i in range(9)]
    returns = np.array([[1.0, 2.0], [3.0, 6.0]])
    curves = [
        group_page.VariantCurve(name, name, (0, 1), np.array([10.0, 20.0]), returns * factor)
        for name, factor in (("a", 1.0), ("b", -2.0))
    ]
    with drawn(monkeypatch) as found:
        for section in SECTIONS:
            section(data)
        episodes.return_strip([3.0, 1.0, 1.1, 1.2], None)
        group_page.learning_curves(curves, "x", "y")
    with drawn(monkeypatch) as others:
        episodes.episode_panels(panels, 0.05)
        group_page.learning_curves(curves[:1], "x", "y")
    check_drawn({**found, **{f"{label}, again": calls for label, calls in others.items()}})


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


def test_a_paused_run_shows_its_learning(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", None, state="paused", state_sha256=None)
    path = page_module.write_report(folder)
    assert path == folder.report_path
    text = "".join(Page(path.read_text(encoding="utf-8")).text)
    assert "Training has done 400 steps and is paused" in text
    assert "Learning" in text
    assert "gymnasium" not in text.lower()


def test_a_run_that_trains_again_has_not_ended(tmp_path: Path) -> None:
    ended = {"ended": "2026-01-02T03:04:05Z"}
    for state, is_said in (("paused", True), ("training", False)):
        folder = make_run(tmp_path / state, None, state=state, state_sha256=None, **ended)
        shown = section_html(provenance.provenance(collect(folder)))
        assert ("<th>ended</th>" in shown) is is_said


HOSTILE = "<script>alert(1)</script>\"'&$x_1$"


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    changes: dict[str, Any] = dict.fromkeys(("board", "git_revision", "started"), HOSTILE)
    changes["hyperparameters"] = {HOSTILE: 1.0}
    changes["versions"] = {HOSTILE: HOSTILE}
    changes["memory"] = [{"name": HOSTILE, "use": "", "used_bytes": 1, "bytes": 10}]
    folder = make_run(tmp_path / "run", sample_images()["pendulum"], **changes)
    text = page_module.write_report(folder, tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    page = Page(text)
    assert HOSTILE in "".join(page.text)
    assert {"script"}.isdisjoint(tag for tag, _ in page.elements)


def test_a_choice_is_drawn_by_the_names_of_what_was_chosen() -> None:
    chosen = np.array([0.0, 2.0, 2.0, 1.0])
    panel = Panel("gear", chosen, (0.0, 2.0), ("low", "middle_one", HOSTILE))
    svg = episodes.episode_panels([panel], 0.05)
    assert ">low<" in svg
    assert ">middle one<" in svg
    assert HOSTILE not in svg
    many = Panel("gear", chosen, (0.0, 9.0), tuple(f"name {i}" for i in range(10)))
    assert "name 3" not in episodes.episode_panels([many], 0.05)


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


@pytest.mark.parametrize(
    ("mean", "expected"),
    [(-149.0, "better than the"), (-200.0, "better"), (-200.1, "worse than")],
)
def test_the_verdict_follows_the_mean(tmp_path: Path, mean: float, expected: str) -> None:
    data = collect(make_run(tmp_path / "run", None, state_sha256=None))
    image = parse_policy(sample_images()["pendulum"])
    outcome = EpisodeEnd(mean, 200, False, np.zeros(3, np.float32))
    evaluation = Evaluation("run", image, "gymnasium 1", 0, (outcome,), -200.0)
    changed = dataclasses.replace(data, evaluation=evaluation)
    assert expected in page_module.verdict(changed)


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (-149.06, 1, "\N{MINUS SIGN}149.1"),
        (-0.04, 1, "0.0"),
        (10000, 0, "10,000"),
        (math.nan, 1, "\N{EN DASH}"),
        (math.inf, 0, "\N{EN DASH}"),
    ],
)
def test_numbers(value: float, digits: int, expected: str) -> None:
    assert markup.number(value, digits) == expected


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


def test_the_memory_map_reads_the_firmware_of_the_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections of the ELF count where it is older than the run and of the same sizes."""
    values = metadata()
    run = stated(values)
    program = tmp_path / "train" / "pendulum-td3.elf"
    program.parent.mkdir()
    program.write_bytes(b"")
    sections = {".text": 70_000, ".data": 4_000, ".stack": 8_192, ".bss": 294_104}
    monkeypatch.setattr(Project, "board_build", lambda _project, _board: tmp_path)
    monkeypatch.setattr(firmware, "memory_usage", lambda _board, _program: values["memory"])
    monkeypatch.setattr(firmware, "section_sizes", lambda _program: sections)
    learner = MemoryPart("learner", "learner", 218_112)
    assert memory_map(run)[0].parts[0] == learner, "the program is newer"
    started_s = 1767323045  # 2026-01-02T03:04:05, as run.json has it
    os.utime(program, (0, started_s + 2))
    assert memory_map(run)[0].parts[0] == learner, "by more than the second that run.json has"
    os.utime(program, (0, started_s + 1))
    parts = {part.name: part.bytes for part in memory_map(run, 18_476)[0].parts}
    assert parts["code"] == 70_000
    assert parts["stack"] == 8_192
    assert parts["other data"] == 294_104 - 218_112 - 74_944
    assert sum(parts.values()) == 524_288
    assert MemoryPart("policy", "policy image", 18_476) in memory_map(run, 18_476)[1].parts


@pytest.mark.parametrize(
    ("used", "kinds"),
    [
        (293_057, ["learner", "scratch", "other", "free"]),
        (293_056, ["learner", "scratch", "free"]),
        (293_055, ["other", "free"]),  # not the sizes of this firmware
    ],
)
def test_the_memory_map_adds_up_or_says_less(used: int, kinds: list[str]) -> None:
    memory = [{"name": "RAM1", "use": "", "used_bytes": used, "bytes": 524_288}]
    (region,) = memory_map(stated(metadata(memory=memory, board="none")))
    assert [part.kind for part in region.parts] == kinds


def test_counts_are_of_steps_with_an_update_each() -> None:
    """A report without a step, as after a pause, has none."""
    rows = [(10, 1, 0), (12, 1, 0), (22, 3, 2), (52, 5, 3)]
    progress = [dict(zip(("counter", "step", "updates"), row, strict=True)) for row in rows]
    assert board.median_of_updates(progress) == 5.0
    assert board.median_of_updates(progress[:2]) is None


def test_the_memory_map_does_not_trust_sizes_of_other_firmware() -> None:
    values = metadata(board="none")
    values["identity"]["learner_bytes"] = 10_000_000
    region = memory_map(stated(values))[0]
    assert [part.kind for part in region.parts] == ["other", "free"]
    assert memory_map(stated(metadata(memory=[]))) == []


# -- sections and pictures ------------------------------------------------------------------------


def test_every_module_of_sections_is_on_the_page() -> None:
    folder = Path(board.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {section.__module__.rpartition(".")[2] for section in SECTIONS} == modules
    assert len(SECTIONS) == len(set(SECTIONS))


def test_a_section_is_one_line_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        page_module,
        "SECTIONS",
        [lambda _: Section("Mine & yours", "lead", "<b>body</b>", ".mine{}\n"), lambda _: None],
    )
    page = page_module.write_report(make_run(tmp_path / "run", None)).read_text()
    assert page.count("<section>") == 1
    assert "<h2>Mine &amp; yours</h2>\n<p>lead</p>\n<b>body</b>" in page
    assert ".mine{}\n</style>" in page


@pytest.mark.all
def test_of_many_observations_the_first_are_shown(
    data: RunData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "are shown" not in section_html(episodes.one_episode(data))
    monkeypatch.setattr(episodes, "MOST_OBSERVATIONS", 2)
    shown = section_html(episodes.one_episode(data))
    assert "Of the 3 observations the first 2 are shown." in shown
    for label, is_shown in (("cos angle", True), ("sin angle", True), ("velocity, rad/s", False)):
        assert (label in shown) == is_shown


@pytest.mark.all
def test_an_episode_shows_its_channels_and_the_environments_picture(data: RunData) -> None:
    shown = section_html(episodes.one_episode(data))
    assert shown.count("<figure") == 1
    for label in ("cos angle", "velocity, rad/s", "torque, N·m", "reward", "return so far"):
        assert label in shown
    assert "reset with seed " in shown
    assert "where it is cut off" in shown
    without = section_html(episodes.one_episode(dataclasses.replace(data, shapes=())))
    assert "<figure" not in without
    assert "return so far" in without


def test_scales_are_the_contracts_ranges_where_that_shows_something() -> None:
    assert episodes.range_shown(-8.0, 8.0, np.array([-1.0, 0.7])) == (-8.0, 8.0)
    assert episodes.range_shown(-8.0, 8.0, np.array([-0.5, 0.5])) is None
    assert episodes.range_shown(-1e38, 1e38, np.array([0.0, 1.0])) is None
    within = Panel("within", np.array([0.0, 1.0]), (-8.0, 8.0))
    beyond = Panel("beyond", np.array([0.0, 20.0]), (-8.0, 8.0))
    for panel in (within, beyond):
        svg = episodes.episode_panels([panel], 0.05)
        assert all(f">{figure}<" in svg for figure in ("\N{MINUS SIGN}8", "0", "8"))


def test_an_observation_is_drawn_over_its_range(data: RunData) -> None:
    assert data.image is not None
    assert data.episode is not None
    panels = episodes.panels_of(data.image, data.episode)
    for panel, channel in zip(panels, data.image.observations, strict=False):
        assert panel.bounds == (channel.minimum, channel.maximum)


def test_worst_episodes_and_where_they_began(data: RunData) -> None:
    assert data.evaluation is not None
    shown = Page(section_html(episodes.all_episodes(data))).words
    for worst in data.evaluation.worst():
        assert f"seed {worst['seed']} {markup.number(worst['return'], 1)} 200 cut off" in shown
    assert re.search(r"cut off (cos_angle|sin_angle|velocity) ", shown)
    assert "Length: 200 steps" in shown


def test_nothing_of_the_report_knows_of_pendulums() -> None:
    report = Path(page_module.__file__).parent
    sources = [*report.glob("*.py"), *report.glob("sections/*.py"), *report.glob("*.css")]
    knowing = [path.name for path in sources if "endulum" in path.read_text()]
    assert knowing == []


def test_settings_of_a_variant_are_named() -> None:
    assert group_page.settings_in_words([]) == "no settings of its own"
    assert group_page.settings_in_words(["gamma=0.9", "a=<b>"]) == (
        "<code>gamma=0.9</code>, <code>a=&lt;b&gt;</code>"
    )

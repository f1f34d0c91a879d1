"""`rlt report`: one self-contained HTML page about a run, with nothing to load and no script.

Everything on it comes from the run's folder, from episodes that are run here with its policy, and
from the experiment's description; what is unknown is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.bench import harness
from rltools_host.bench import training as bench_training
from rltools_host.boards.description import Board, load_board
from rltools_host.build import experiments
from rltools_host.errors import RltError
from rltools_host.files import write_atomically
from rltools_host.policies import evaluation
from rltools_host.policies.evaluation import GYMNASIUM, SUCCESS_RETURN, Episode, Evaluation
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.report import charts
from rltools_host.report.charts import Curve, EpisodePanel, LearningData, Values
from rltools_host.report.memory_map import MemoryRegion, memory_map
from rltools_host.runs.folder import REPORT_FILE, RunFolder, run_names

EVALUATION_EPISODES = 100
BENCHMARK_RESULTS = harness.ENVIRONMENTS_DIRECTORY
STYLE_SHEET = Path(__file__).with_name("report.css")
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class ReportData:
    """All that the page shows."""

    folder: RunFolder
    metrics: Sequence[Mapping[str, Any]]
    image: PolicyImage | None
    evaluation: Evaluation | None
    episode: Episode | None  # the first of the evaluation
    memory: Sequence[MemoryRegion]
    hyperparameters: Sequence[experiments.Hyperparameter]
    companions: Sequence[RunFolder]  # the same training on other boards
    board_title: str
    board_report_every: int | None
    benchmark: Mapping[str, Any] | None  # this machine's newest of the same algorithm

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.folder.metadata

    @property
    def goal(self) -> float | None:
        environment = self.image.environment if self.image else ""
        return SUCCESS_RETURN.get(environment)

    def rows(self, kind: str) -> list[Mapping[str, Any]]:
        return [row for row in self.metrics if row.get("kind") == kind]

    @property
    def steps_done(self) -> int:
        rows = self.rows("progress")
        done = self.image.step if self.image else 0
        return max([done, *(int(row.get("step") or 0) for row in rows)])

    @property
    def is_emulated(self) -> bool:
        return bool(identity_of(self.metadata).get("counts_instructions"))


def write_report(run_name: str | Path | RunFolder, output: Path | None = None) -> Path:
    """Writes the report of a run, by default into its folder, and returns the file's path."""
    folder = run_name if isinstance(run_name, RunFolder) else RunFolder.open(run_name)
    path = output or folder.report_path
    if path.is_dir():
        path = path / REPORT_FILE
    write_atomically(path, page(collect(folder)).encode())
    return path


def collect(folder: RunFolder) -> ReportData:
    """Reads the folder and runs the evaluation episodes."""
    image = read_run_policy(folder) if folder.policy_path.is_file() else None
    evaluation, episode = None, None
    if image is not None:
        image.verify()
        evaluation, episode = evaluate_here(image, folder)
    board = known_board(folder.metadata)
    return ReportData(
        folder=folder,
        metrics=folder.read_metrics(),
        image=image,
        evaluation=evaluation,
        episode=episode,
        memory=memory_map(folder.metadata, len(image.data) if image else 0),
        hyperparameters=described_hyperparameters(folder),
        companions=find_companions(folder),
        board_title=board.title if board else str(folder.metadata.get("board", "")),
        board_report_every=board.report_every if board else None,
        benchmark=newest_benchmark(str(folder.metadata.get("algorithm", "")).lower()),
    )


def newest_benchmark(algorithm: str) -> Mapping[str, Any] | None:
    """What `rlt bench train` measured last on this machine; None where it never did."""
    if algorithm not in bench_training.ALGORITHMS:
        return None
    try:
        document = json.loads(bench_training.result_path(algorithm, BENCHMARK_RESULTS).read_bytes())
        bench_training.lines(document)  # that of another version lacks what is shown here
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return document if any("train_s" in entry for entry in document["summary"]) else None


def evaluate_here(image: PolicyImage, folder: RunFolder) -> tuple[Evaluation, Episode | None]:
    """In gymnasium where it has the environment, else in the core's simulator."""
    if image.environment not in SUCCESS_RETURN:
        core = evaluation.evaluate_policy(
            image, str(folder.path), EVALUATION_EPISODES, 0, evaluation.CORE
        )
        return core, None
    episodes = evaluation.gymnasium_episodes(image, EVALUATION_EPISODES, 0)
    return evaluation.gymnasium_evaluation(image, str(folder.path), 0, episodes), episodes[0]


def described_hyperparameters(folder: RunFolder) -> Sequence[experiments.Hyperparameter]:
    """Of the experiment as it is here now, if it still is the run's."""
    try:
        description = experiments.describe(str(folder.metadata.get("experiment", "")))
    except RltError:
        return ()
    values = folder.metadata.get("hyperparameters") or {}
    known = [entry for entry in description.hyperparameters if entry.name in values]
    return known if len(known) == len(values) else ()


def known_board(metadata: Mapping[str, Any]) -> Board | None:
    try:
        return load_board(str(metadata.get("board", "")))
    except RltError:
        return None


def find_companions(folder: RunFolder) -> list[RunFolder]:
    """Finished runs beside this one with the same training on another board."""
    companions: dict[str, RunFolder] = {}
    for name in run_names(folder.path.parent):
        if name == folder.name:
            continue
        try:
            other = RunFolder.open(folder.path.parent / name)
        except RltError:
            continue
        same = ("experiment", "fingerprint", "seed", "steps")
        if any(other.metadata.get(key) != folder.metadata.get(key) for key in same):
            continue
        if training_of(other.metadata) != training_of(folder.metadata):
            continue
        if other.metadata.get("board") == folder.metadata.get("board"):
            continue
        if not (gives_the_same_bits(folder) and gives_the_same_bits(other)):
            continue
        if other.metadata.get("state_sha256") and other.metadata.get("state") == "finished":
            companions[str(other.metadata.get("board"))] = other
    return list(companions.values())


def gives_the_same_bits(folder: RunFolder) -> bool:
    """Whether the run's board is meant to; one that is not described here any more is."""
    board = known_board(folder.metadata)
    return board is None or board.bit_identical


def training_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters that influence the training state."""
    watching = ("report_every", "eval_every", "eval_episodes")
    values = metadata.get("hyperparameters") or {}
    return {name: value for name, value in values.items() if name not in watching}


def identity_of(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    identity = metadata.get("identity")
    return identity if isinstance(identity, Mapping) else {}


# ---- The page ------------------------------------------------------------------------------------


def page(data: ReportData) -> str:
    experiment = text(data.metadata.get("experiment", "unknown experiment"))
    board = text(data.metadata.get("board", "unknown board"))
    sections = [
        section_learning(data),
        section_episode(data),
        section_returns(data),
        section_same_bits(data),
        section_memory(data),
        section_timings(data),
        section_benchmark(data),
        section_losses(data),
        section_hyperparameters(data),
        section_provenance(data),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{experiment} on {board}</title>
<style>
{STYLE_SHEET.read_text(encoding="utf-8")}{animation_style(data)}</style>
</head>
<body>
<header>
<p class="kicker">Training report · {text(data.board_title)}</p>
<h1>{experiment} <span class="on">on {board}</span></h1>
<p class="verdict">{verdict(data)}</p>
</header>
<div class="tiles">
{"".join(tiles(data))}
</div>
{"".join(section for section in sections if section)}
<footer>Written by <code>rlt report</code> from the run folder
<code>{text(data.folder.name)}</code>. This page needs no network.</footer>
</body>
</html>
"""


def text(value: Any) -> str:
    """Any value as text that HTML cannot misread."""
    return escape(str(value), quote=True)


def number(value: float, digits: int = 0) -> str:
    """With thousands separators and a true minus; an en dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """For example "3 min 32 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def section(heading: str, lead: str, body: str) -> str:
    """`lead` and `body` are HTML."""
    return f"<section>\n<h2>{text(heading)}</h2>\n<p>{lead}</p>\n{body}\n</section>\n"


def verdict(data: ReportData) -> str:
    """One sentence: what came out, against what."""
    steps = number(data.steps_done)
    if data.evaluation is None:
        state = text(data.metadata.get("state", "unfinished"))
        return f"Training has done {steps} steps and is {state}; no policy has been fetched yet."
    evaluation = data.evaluation
    sentence = (
        f"After {steps} steps the policy earns a mean return of "
        f"<strong>{number(evaluation.mean, 1)}</strong> over {evaluation.episodes} episodes in "
        f"{text(simulator_name(evaluation))}"
    )
    if evaluation.success_return is None:
        return sentence + "."
    solved = evaluation.mean >= evaluation.success_return
    relation = "better" if solved else "worse"
    return (
        f'{sentence}, <strong class="{"good" if solved else "bad"}">{relation} than the customary '
        f"{number(evaluation.success_return)}</strong>."
    )


def simulator_name(evaluation: Evaluation) -> str:
    if evaluation.simulator.startswith(GYMNASIUM):
        return f"gymnasium's {evaluation.environment}"
    return f"{evaluation.simulator} of {evaluation.environment}"


def tile(name: str, value: str, note: str) -> str:
    """All three are HTML."""
    return (
        f'<div class="tile"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>\n'
    )


def tiles(data: ReportData) -> Iterable[str]:
    evaluation = data.evaluation
    if evaluation is not None:
        yield tile(
            "return",
            f"{number(evaluation.mean, 1)} <small>± {number(evaluation.std, 1)}</small>",
            f"{evaluation.episodes} episodes, {text(evaluation.simulator)}",
        )
        if evaluation.success_rate is not None:
            yield tile(
                "solved episodes",
                f"{number(100 * evaluation.success_rate)} <small>%</small>",
                f"return of at least {number(evaluation.success_return or 0.0)}",
            )
    wanted = data.metadata.get("steps")
    if wanted:
        note = "all of them" if data.steps_done == wanted else f"of {text(number(wanted))}"
        yield tile("training steps", number(data.steps_done), f"{note}, seed {seed_of(data)}")
    train_s = data.metadata.get("train_s")
    if train_s:
        where = "wall clock here, emulated" if data.is_emulated else "wall clock"
        yield tile("training time", text(duration(float(train_s))), where)
        yield tile("steps per second", number(data.steps_done / float(train_s)), where)
    digest = str(data.metadata.get("state_sha256") or "")
    if digest:
        yield tile(
            "training state",
            f'<span class="mono" title="{text(digest)}">{text(digest[:8])}</span>',
            "SHA-256, in full below",
        )


def seed_of(data: ReportData) -> str:
    return text(data.metadata.get("seed", data.image.seed if data.image else "\N{EN DASH}"))


# ---- Sections ------------------------------------------------------------------------------------


def values_of(rows: Sequence[Mapping[str, Any]], key: str) -> Values:
    """A column of the metrics; null and what is missing become NaN."""
    return np.array([math.nan if row.get(key) is None else float(row[key]) for row in rows], float)


def learning_data(data: ReportData) -> LearningData:
    progress, evaluations = data.rows("progress"), data.rows("evaluation")
    mean, std = values_of(evaluations, "return_mean"), values_of(evaluations, "return_std")
    episodes = values_of(progress, "episodes")
    is_new = np.diff(episodes, prepend=0) > 0  # an episode ended since the row before
    final = None
    if data.evaluation is not None:
        final = (float(data.steps_done), data.evaluation.mean, data.evaluation.std)
    return LearningData(
        training=Curve(
            values_of(progress, "step")[is_new], values_of(progress, "last_return")[is_new]
        ),
        evaluation=Curve(values_of(evaluations, "step"), mean),
        evaluation_low=np.maximum(mean - std, values_of(evaluations, "return_min")),
        evaluation_high=np.minimum(mean + std, values_of(evaluations, "return_max")),
        final=final,
        final_label=f"{EVALUATION_EPISODES} episodes afterwards",
        goal=data.goal,
    )


def section_learning(data: ReportData) -> str:
    if not data.rows("progress") and not data.rows("evaluation"):
        return ""
    evaluations = data.rows("evaluation")
    lead = "Return of each training episode, which explores"
    if evaluations:
        episodes = number(float(evaluations[-1].get("episodes") or 0))
        lead += (
            f", and of deterministic evaluations on the board, {episodes} episodes each; the "
            "band is one standard deviation, within the smallest and largest return"
        )
    lead += "."
    if data.goal is not None:
        lead += (
            " Gymnasium defines no threshold for this task: "
            f"{number(data.goal)} is the figure customarily called solved."
        )
    return section("Learning", lead, charts.learning_curve(learning_data(data)))


def section_episode(data: ReportData) -> str:
    if data.episode is None or data.image is None or data.evaluation is None:
        return ""
    episode, image = data.episode, data.image
    step_s = image.step_interval_us * 1e-6
    panels = charts.episode_panels(panels_of(image, episode), step_s)
    lead = (
        f"The first of the {data.evaluation.episodes} evaluation episodes, from gymnasium's reset "
        f"with seed {data.evaluation.seed}: {len(episode.rewards)} steps of "
        f"{number(step_s * 1000)} ms, return {number(episode.episode_return, 1)}. "
        "The actions are those that the board would take, bit for bit."
    )
    picture = pendulum_picture(image, episode)
    body = f'<div class="beside">{picture}<div>{panels}</div></div>' if picture else panels
    return section("One episode", lead, body)


def is_pendulum(image: PolicyImage) -> bool:
    names = [channel.name for channel in image.observations]
    return names == ["cos_angle", "sin_angle", "velocity"]


def angles_of(episode: Episode) -> Values:
    """Angle from upright, radians in [-pi, pi]."""
    cosine, sine = episode.observations[:, 0], episode.observations[:, 1]
    return np.arctan2(sine, cosine).astype(float)


def panels_of(image: PolicyImage, episode: Episode) -> list[EpisodePanel]:
    """Observations, actions and reward; for the pendulum the angle itself, in degrees."""
    panels = []
    if is_pendulum(image):
        angle_deg = np.degrees(angles_of(episode))
        panels.append(EpisodePanel("angle from upright, degrees", angle_deg, (-180, 180), 360))
        channels = list(enumerate(image.observations))[2:]
    else:
        channels = list(enumerate(image.observations))
    for index, channel in channels:
        values = episode.observations[:, index].astype(float)
        panels.append(EpisodePanel(label_of(channel.name, channel.unit), values))
    for index, channel in enumerate(image.actions):
        values = episode.actions[:, index].astype(float)
        bounds = (channel.minimum, channel.maximum)
        panels.append(EpisodePanel(label_of(channel.name, channel.unit), values, bounds))
    panels.append(EpisodePanel("reward", episode.rewards))
    return panels


def label_of(name: str, unit: str) -> str:
    readable = name.replace("_", " ")
    return readable if unit == "1" else f"{readable}, {unit.replace('*', '·')}"


ROD = 78.0  # length of the drawn pendulum


def pendulum_picture(image: PolicyImage, episode: Episode) -> str:
    """The pendulum moving as in the episode, over its positions a tenth of a second apart."""
    if not is_pendulum(image):
        return ""
    degrees = np.degrees(angles_of(episode))
    torque = image.actions[0]
    unit = text(torque.unit.replace("*", "·"))
    ghosts = "".join(
        f'<line x2="0" y2="{-ROD:g}" transform="rotate({-angle:.1f})"/>' for angle in degrees[::2]
    )
    return f"""<figure><svg class="pendulum" viewBox="-100 -100 200 232" role="img"
 aria-label="The pendulum during the episode"><g class="ghosts">{ghosts}</g>
<g class="moving swing"><line class="rod" x2="0" y2="{-ROD:g}"/></g>
<circle class="pivot" r="5"/>
<rect class="rail" x="-80" y="112" width="160" height="6" rx="3"/>
<rect class="torque moving push" x="-80" y="110" width="160" height="10" rx="3"/>
<text x="-80" y="106">torque {number(torque.minimum)} {unit}</text>
<text x="80" y="106" text-anchor="end">{number(torque.maximum)} {unit}</text>
</svg><figcaption>In real time; shadows show where it was.</figcaption></figure>"""


def animation_style(data: ReportData) -> str:
    """Key frames of the pendulum's angle and torque."""
    if data.episode is None or data.image is None or not is_pendulum(data.image):
        return ""
    episode = data.episode
    seconds = len(episode.rewards) * data.image.step_interval_us * 1e-6
    turn = -np.degrees(np.unwrap(angles_of(episode)))
    torque = episode.actions[:, 0].astype(float) / data.image.actions[0].maximum
    percent = np.arange(len(turn)) * 100 / len(turn)
    swing = "".join(
        f"{at:.4g}%{{transform:rotate({angle:.1f}deg)}}"
        for at, angle in zip([*percent, 100], [*turn, turn[-1]], strict=True)
    )
    push = "".join(
        f"{at:.4g}%{{{torque_clip(value)}}}"
        for at, value in zip([*percent, 100], [*torque, torque[-1]], strict=True)
    )
    return (
        f":root{{--episode:{seconds:g}s}}\n"
        f".swing{{animation-name:swing;transform:rotate({turn[-1]:.1f}deg)}}\n"
        f".push{{animation-name:push;{torque_clip(torque[-1])}}}\n"
        f"@keyframes swing{{{swing}}}\n@keyframes push{{{push}}}\n"
    )


def torque_clip(share: float) -> str:
    """Shows the part of a bar from its middle to `share` in [-1, 1]."""
    left, right = 50 + 50 * min(share, 0.0), 50 - 50 * max(share, 0.0)
    return f"clip-path:inset(0 {right:.1f}% 0 {left:.1f}%)"


def section_returns(data: ReportData) -> str:
    evaluation = data.evaluation
    if evaluation is None:
        return ""
    lead = (
        f"Every one of the {evaluation.episodes} evaluation episodes, {text(evaluation.simulator)}"
        f"{seeds_of(evaluation)}: worst {number(min(evaluation.returns), 1)}, median "
        f"{number(float(np.median(evaluation.returns)), 1)}, best "
        f"{number(max(evaluation.returns), 1)}. The initial state decides most of the return."
    )
    strip = charts.return_strip(evaluation.returns, evaluation.success_return)
    return section("All evaluation episodes", lead, strip)


def seeds_of(evaluation: Evaluation) -> str:
    if evaluation.simulator.startswith(GYMNASIUM):
        return f", seeds {evaluation.seed} to {evaluation.seed + evaluation.episodes - 1}"
    return f", seed {evaluation.seed}"


def section_same_bits(data: ReportData) -> str:
    digest = str(data.metadata.get("state_sha256") or "")
    if not digest or data.image is None:
        return ""
    rows = [same_bits_row(data.folder, digest, is_this=True)]
    rows += [same_bits_row(other, digest, is_this=False) for other in data.companions]
    lead = (
        f"The policy's {len(data.image.examples)} examples, computed by the board, were replayed "
        "on this machine: every bit of every layer agrees. The training state is all weights, "
        "optimiser moments and the replay buffer."
    )
    table = (
        '<table class="stacked"><thead><tr><th>trained on</th><th>SHA-256 of the training state'
        f"</th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return section("The same bits", lead, table)


def same_bits_row(folder: RunFolder, expected: str, *, is_this: bool) -> str:
    digest = str(folder.metadata.get("state_sha256"))
    if is_this:
        badge = "this run"
    elif digest == expected:
        badge = '<span class="badge good">same bits</span>'
    else:
        badge = '<span class="badge bad">other bits</span>'
    return (
        f"<tr><th>{text(folder.metadata.get('board'))}</th>"
        f'<td class="sentence"><code>{text(digest)}</code></td><td>{badge}</td></tr>'
    )


def section_memory(data: ReportData) -> str:
    if not data.memory:
        return ""
    bars = []
    for region in data.memory:
        spans, items = [], []
        for part in region.parts:
            share = 100 * part.bytes / region.bytes
            spans.append(
                f'<span class="part-{text(part.kind)}" style="width:{share:.3f}%" '
                f'title="{text(part.name)}: {number(part.bytes)} bytes"></span>'
            )
            items.append(
                f'<li><i class="part-{text(part.kind)}"></i>{text(part.name)} '
                f"<b>{number(part.bytes)}</b></li>"
            )
        used = region.bytes - sum(part.bytes for part in region.parts if part.kind == "free")
        bars.append(
            f"<h3>{text(region.name)} · {number(used)} of {number(region.bytes)} bytes "
            f"({100 * used / region.bytes:.1f} %)</h3>"
            f'<div class="bar">{"".join(spans)}</div><ul class="parts">{"".join(items)}</ul>'
        )
    lead = (
        "What the linker placed where, in bytes. The board has no other memory: what does not fit "
        "fails the build."
    )
    return section("Memory", lead, "".join(bars))


def section_timings(data: ReportData) -> str:
    rows = []
    train_s = data.metadata.get("train_s")
    if train_s:
        rows.append(("wall clock of the host", duration(float(train_s))))
        rate = f"{number(data.steps_done / float(train_s), 1)} steps per second"
        rows.append(("training speed, seen from the host", rate))
    progress = data.rows("progress")
    counts = values_of(progress, "counter")
    total = float(data.metadata.get("guest_instructions") or (counts[-1] if counts.size else 0))
    if math.isfinite(total) and total > 0:
        unit = "guest instructions" if data.is_emulated else "µs of the board's clock"
        rows.append((f"{unit}, training and evaluations", number(total)))
        share = number(total / max(data.steps_done, 1))
        rows.append((f"{unit} per environment step, all included", share))
        median = median_of_updates(progress)
        if median is not None:
            rows.append((f"{unit} per step with an update, median", number(median)))
    if not rows:
        return ""
    lead = "Evaluations on the board count as well, and so do its messages."
    if data.is_emulated:
        lead = (
            "The board is emulated. Guest instructions are what the emulated processor executed, "
            "its talk with the host included; they are <strong>neither time nor cycles</strong> "
            "of a real board. Wall clock and steps per second say how fast this host emulates."
        )
    body = "".join(
        f'<tr><th>{text(name)}</th><td class="number">{text(value)}</td></tr>'
        for name, value in rows
    )
    return section("Timings", lead, f"<table><tbody>{body}</tbody></table>")


def section_benchmark(data: ReportData) -> str:
    document = data.benchmark
    if document is None:
        return ""
    entries = document["summary"]
    ours = (bench_training.OURS, bench_training.LOOP)
    bars = [(e["title"], e["train_s"], e["name"] in ours) for e in entries if "train_s" in e]
    rows = "".join(benchmark_row(entry) for entry in entries)
    machine, load = document["machine"], document["load_average"]
    lead = (
        f"{text(bench_training.title(document))}, by <code>rlt bench train</code> on "
        f"{text(document['date'])}: one core of {text(machine['processor'])} "
        f"({text(machine['cores'])} cores, {text(machine['system'])}, load average {text(load)}), "
        f"median of {text(document['repetitions'])}; returns of {text(document['episodes'])} "
        "episodes. Only the training loop is timed; imports and compilation are setup. The policy "
        "of this page is not part of it."
    )
    table = f'<table class="stacked"><tbody>{rows}</tbody></table>'
    chart = charts.training_time_bars(bars)
    return section("Training time against other libraries", lead, chart + table)


def benchmark_row(entry: Mapping[str, Any]) -> str:
    """A library's medians, or why there are none."""
    name = f"<tr><th>{text(entry['title'])}</th>"
    if "train_s" not in entry:
        reason = text(entry.get("error", ""))
        return f'{name}<td class="soft sentence" colspan="5">not measured: {reason}</td></tr>'
    mean, ratio = entry.get("return_mean"), entry.get("times_ours")
    cells = (
        text(entry.get("version", "")),
        f"{number(entry['train_s'], 2)} s",
        "" if ratio is None else f"{number(ratio, 1)} \N{MULTIPLICATION SIGN} ours",
        "" if mean is None else f"return {number(mean, 1)}",
        f"setup {number(entry['setup_s'], 1)} s",
    )
    # a space between cells, as a narrow page sets them as a line of text
    return name + "".join(f' <td class="number">{cell}</td>' for cell in cells) + "</tr>"


def median_of_updates(progress: Sequence[Mapping[str, Any]]) -> float | None:
    """Counts per step between two reports, where every step had an update."""
    counts, steps = values_of(progress, "counter"), values_of(progress, "step")
    updates = values_of(progress, "updates")
    step_gains = np.diff(steps)
    training_only = (np.diff(updates) == step_gains) & (step_gains > 0)
    if not training_only.any():
        return None
    return float(np.median(np.diff(counts)[training_only] / step_gains[training_only]))


def section_losses(data: ReportData) -> str:
    progress = data.rows("progress")
    steps = values_of(progress, "step")
    critics = [Curve(steps, values_of(progress, f"critic_{number}_loss")) for number in (1, 2)]
    actor = Curve(steps, values_of(progress, "actor_loss"))
    if not critics[0].finite().steps.size or not actor.finite().steps.size:
        return ""
    lead = (
        "Means between two reports. The critics' target moves with the policy, so their loss need "
        "not fall; a rising actor loss means falling values."
    )
    return section("Losses", lead, charts.loss_curves(critics, actor))


def section_hyperparameters(data: ReportData) -> str:
    values = data.metadata.get("hyperparameters") or {}
    if not values:
        return ""
    described = {entry.name: entry for entry in data.hyperparameters}
    changed = [name for name in values if name in described and not is_default(data, name)]
    chosen = [name for name in changed if not is_the_boards(data, name)]
    rows = []
    for name, value in values.items():
        entry = described.get(name)
        mark, sentence, unit = "", "", ""
        if entry is not None:
            mark = "default" if is_default(data, name) else f"default {plain(entry.default)}"
            if name in changed and is_the_boards(data, name):
                mark += ", set by the board"
            sentence, unit = entry.description, entry.unit
        weight = "strong" if name in changed else "span"
        rows.append(
            f'<tr><th><code>{text(name)}</code></th><td class="number"><{weight}>'
            f"{text(plain(value))}</{weight}> {text(unit)}</td>"
            f'<td class="soft">{text(mark)}</td>'
            f'<td class="soft sentence">{text(sentence)}</td></tr>'
        )
    lead = "All are the experiment's defaults."
    if chosen:
        lead = f"Other than the experiment's defaults: <strong>{text(', '.join(chosen))}</strong>."
    if not described:
        lead = "The experiment has changed since, so its defaults are not shown."
    table = (
        '<table class="stacked"><thead><tr><th>name</th><th>value</th><th></th><th>meaning</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return section("Hyperparameters", lead, table)


def is_default(data: ReportData, name: str) -> bool:
    """Whether the run's value is the default, to the precision of a float."""
    value = (data.metadata.get("hyperparameters") or {}).get(name)
    for entry in data.hyperparameters:
        if entry.name == name:
            return bool(np.float32(entry.default) == np.float32(value))
    return False


def is_the_boards(data: ReportData, name: str) -> bool:
    """Whether the value is what the board's description gives; it does not influence training."""
    values = data.metadata.get("hyperparameters") or {}
    return name == "report_every" and values.get(name) == data.board_report_every


def plain(value: Any) -> str:
    """The shortest decimal that is the same float."""
    if isinstance(value, float):
        short = str(np.float32(value))
        return short.removesuffix(".0")
    return str(value)


def section_provenance(data: ReportData) -> str:
    metadata, identity = data.metadata, identity_of(data.metadata)
    rows: list[tuple[str, Any]] = [("run", data.folder.name)]
    rows.append(("state", metadata.get("state")))
    rows += [(name, readable_time(metadata.get(name))) for name in ("started", "ended")]
    rows.append(("source revision", revision_of(metadata)))
    rows.append(("board", data.board_title))
    rows.append(("board's kernels", identity.get("device")))
    rows.append(("board's firmware revision", identity.get("revision")))
    rows.append(("board's serial number", serial_number(identity)))
    rows.append(("experiment's fingerprint", metadata.get("fingerprint")))
    rows.append(("SHA-256 of the training state", metadata.get("state_sha256")))
    if data.image is not None:
        rows.append(("SHA-256 of the policy image", data.image.sha256))
        network = f"{data.image.shape}, {number(data.image.parameter_count)} parameters"
        rows.append(("policy network", network))
    rows.append(("host", flat(metadata.get("host"))))
    rows.append(("versions", flat(metadata.get("versions"))))
    body = "".join(
        f"<tr><th>{text(name)}</th><td>{code_or_text(name, value)}</td></tr>"
        for name, value in rows
        if value not in (None, "", {})
    )
    command = ""
    if metadata.get("experiment"):
        command = f"<h3>To reproduce</h3><pre><code>{text(reproduction(data))}</code></pre>"
    lead = "Where this run comes from, and how to get the same bits again."
    return section("Provenance", lead, f"<table><tbody>{body}</tbody></table>{command}")


def serial_number(identity: Mapping[str, Any]) -> str:
    """Empty where the board has none, which it says with zeros."""
    digits = str(identity.get("unique_id") or "")
    return digits if digits.strip("0") else ""


def readable_time(value: Any) -> str:
    """2026-01-02T03:04:05+00:00 as 2026-01-02 03:04:05 UTC."""
    return str(value or "").replace("T", " ", 1).replace("+00:00", " UTC")


def code_or_text(name: str, value: Any) -> str:
    is_code = name == "run" or "SHA-256" in name or "fingerprint" in name
    return f"<code>{text(value)}</code>" if is_code else text(value)


def flat(value: Any) -> str:
    """A mapping as "name value, name value"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items() if item not in (None, ""))
    return "" if value is None else str(value)


def revision_of(metadata: Mapping[str, Any]) -> str:
    revision = str(metadata.get("git_revision") or "")
    if revision and metadata.get("git_dirty"):
        return f"{revision} with uncommitted changes"
    return revision


def reproduction(data: ReportData) -> str:
    """The commands that train the same bits."""
    metadata = data.metadata
    command = [
        f"./rlt train {metadata.get('experiment')} --board {metadata.get('board')}",
        f"--seed {metadata.get('seed')} --steps {metadata.get('steps')}",
    ]
    values = metadata.get("hyperparameters") or {}
    for name, value in values.items():
        is_given = name in ("seed", "steps", "report_every") or not data.hyperparameters
        if not is_given and not is_default(data, name):
            command.append(f"--set {name}={plain(value)}")
    lines = [" ".join(command)]
    if revision := metadata.get("git_revision"):
        lines.insert(0, f"git checkout {revision}")
    if metadata.get("git_dirty"):
        lines.insert(0, "# the sources had changes that were not committed: bits may differ")
    return "\n".join(lines)

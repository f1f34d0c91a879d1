"""Draws the live screen of a run as SVG, as it stood at a step: the picture in the README.

.venv/bin/python docs/images/draw_screen.py RUN 6300 docs/images/training.svg
"""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

from rich.console import Console

from rltools_host.runs.contents import metric_names
from rltools_host.screen.training_screen import picture
from rltools_host.training.progress import TrainingView

WIDTH, HEIGHT = 96, 26


def view_of(run: Path, step: int) -> TrainingView:
    """Return the view after the run's messages up to `step`, at the pace at which they came."""
    about = json.loads((run / "run.json").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    names = next(metric_names(row) for row in rows if row["kind"] == "progress")
    now = 0.0
    view = TrainingView(
        about["experiment"],
        about["board"],
        about["seed"],
        about["steps"],
        Path("runs/latest"),
        clock=lambda: now,
        metric_names=names,
    )
    view.begin()
    for row in rows:
        if row.get("step", 0) > step:
            break
        now = row["time_s"]
        view.take_row(row)
        if "step" in row:
            view.reach(row["step"])
    return view


def main() -> None:
    run, step, destination = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO())
    console.print("[bold]$ ./rlt train pendulum-td3 --board qemu-cortex-m7[/bold]", highlight=False)
    console.print(picture(view_of(run, step), WIDTH, HEIGHT))
    svg = console.export_svg(title="training on an emulated Cortex-M7")
    # The picture is to need nothing from elsewhere: without the fonts that the style names.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")
    destination.write_text(svg.strip() + "\n")


if __name__ == "__main__":
    main()

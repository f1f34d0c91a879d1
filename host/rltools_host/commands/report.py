"""`rlt report`: one self-contained HTML page about a run."""

from __future__ import annotations

import json

from rltools_host.commands.options import Json, Output, RunArgument
from rltools_host.report.page import write_report

EXAMPLE = "rlt report latest --output report.html"


def command(
    run_name: RunArgument,
    output: Output = None,
    json_output: Json = False,
) -> None:
    path = write_report(run_name, output)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run_name, "path": str(path)}))

"""`rlt report`: one self-contained HTML page about a run, or a group of runs."""

from __future__ import annotations

import json

from rltools_host.commands.options import Json, Output, RunArgument, Which
from rltools_host.errors import UsageError
from rltools_host.report.group_page import write_group_report
from rltools_host.report.page import write_report
from rltools_host.runs.group import GroupFolder
from rltools_host.runs.names import LAST, find_group

EXAMPLE = "report latest --output report.html"


def command(
    run_name: RunArgument,
    output: Output = None,
    which: Which = LAST,
    json_output: Json = False,
) -> None:
    """For a group of runs it shows the learning curves of all, and also writes them as CSV."""
    if find_group(run_name) is not None:
        if which != LAST:
            raise UsageError(f"--which is of one run, and {run_name} is a group: name a run of it")
        path, _ = write_group_report(GroupFolder.open(run_name), output)
    else:
        path = write_report(run_name, output, which)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run_name, "path": str(path)}))

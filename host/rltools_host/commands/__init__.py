"""The commands of `rlt`: a table of modules, which are imported when a command is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command: its line in the help of `rlt`, and its module in rltools_host.commands.

    The module has a function `command`, whose parameters are the options and whose docstring is
    added to the help; `EXAMPLE`, the words of a command line without the launcher; and `CONTEXT`,
    settings of typer's, where it needs some. A module of several commands has a prefix for each:
    `push_command`, `PUSH_EXAMPLE`.
    """

    summary: str
    module: str
    prefix: str = ""

    def part(self, name: str, default: Any = None) -> Any:
        """Return what the module has by this name for this command."""
        module = import_module(f"rltools_host.commands.{self.module}")
        prefix = f"{self.prefix}_" if self.prefix else ""
        return getattr(module, f"{prefix.upper() if name.isupper() else prefix}{name}", default)


COMMANDS = {
    "demo": Command(
        "Shows training, transfer and proof on an emulated board, with a report.", "demo"
    ),
    "test": Command("Runs the tests and the style checks.", "test"),
    "doctor": Command("Lists tools and boards: what is here, and how to get the rest.", "doctor"),
    "new": Command("Writes an environment, its experiment and a test, to begin with.", "new"),
    "check": Command("Examines an environment: says what is wrong, and what to do.", "check"),
    "train": Command("Trains on a board, shows the progress, and fetches the policy.", "train"),
    "study": Command("Trains variants over seeds, and draws learning curves.", "study"),
    "tune": Command("Searches hyperparameters and sizes; each trial is a run.", "study", "tune"),
    "runs": Command("Lists, filters, compares, renames and deletes runs.", "runs"),
    "fit": Command("Finds a quadrotor's parameters in the log of a flight.", "fit"),
    "adapt": Command(
        "Fits, trains, tries and confirms a policy for the drone of a flight's log.", "adapt"
    ),
    "evaluate": Command("Runs deterministic episodes with a run's policy.", "evaluate"),
    "import": Command(
        "Makes a run of a policy that another library trained, and proves it.", "import_policy"
    ),
    "export": Command(
        "Writes a run's policy as an image, a C++ header or a library.", "export", "export"
    ),
    "push": Command(
        "Puts a run's policy on a board, tried and verified before it stays.", "policies", "push"
    ),
    "policies": Command(
        "Lists the policies of a board, and says which one acts.", "policies", "list"
    ),
    "confirm": Command("Keeps the policy that a push left in trial.", "policies", "confirm"),
    "rollback": Command("Ends a trial, or returns to the previous policy.", "policies", "rollback"),
    "hil": Command(
        "Compares a board's policy with this machine bit by bit; measures its cost.",
        "policies",
        "hil",
    ),
    "fly": Command("Lets a policy fly a simulated vehicle, and judges the flight.", "fly"),
    "flash": Command(
        "Builds an experiment's firmware and flashes a board with it.", "firmware", "flash"
    ),
    "emulate": Command(
        "Starts an emulated board and prints its port; Ctrl-C ends it.", "firmware", "emulate"
    ),
    "report": Command(
        "Writes a self-contained HTML page about a run, with plots.", "export", "report"
    ),
    "web": Command("Writes a page that trains in the browser, with the same bits.", "web"),
    "docs": Command("Writes this documentation as pages.", "docs"),
    "bench": Command("Runs a benchmark of the checkout, mostly against other libraries.", "bench"),
}
# Commands of before, each with the sentence that names today's.
FORMER = {
    "boards": "`rlt doctor` lists the boards now",
    "compare": "`rlt runs compare` compares runs now",
    "completion": "`source <(_RLT_COMPLETE=source_bash rlt)` completes names in bash now",
}

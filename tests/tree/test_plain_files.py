"""What somebody else may have written is opened by files.py alone, which waits for no pipe, follows
no link out of a run's folder and reads no more than it may."""

from __future__ import annotations

import ast
from pathlib import Path

from rltools_host.tree import TREE

HOST = TREE.root / "host" / "rltools_host"
SUBPACKAGES = (
    "boards",
    "commands",
    "drones",
    "environments",
    "policies",
    "report",
    "runs",
    "training",
)
READING = {"read_bytes", "read_text", "load", "fromfile", "memmap"}
OF_NUMPY = READING - {"read_bytes", "read_text"}
# What these read is this tree's or the user's source, a template, or what this process has written.
OWN = {
    *("boards/board_link.py", "boards/policy_session.py"),  # a storage of a board of this machine
    *("commands/new.py", "commands/test.py", "drones/flight/view.py", "report/markup.py"),
    *("policies/core.py", "policies/export.py", "policies/folders.py", "policies/frameworks.py"),
    *("report/picture.py", "runs/provenance.py"),
    *("training/board.py", "training/parallel_runs.py", "training/ray_cluster.py"),
}


def readers_in(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in READING:
            of_numpy = ast.unparse(node.value) in ("np", "numpy")
            if of_numpy or node.attr not in OF_NUMPY:
                found.add(node.attr)
    return found


def test_one_module_opens_what_others_wrote() -> None:
    modules = [path for subpackage in SUBPACKAGES for path in (HOST / subpackage).rglob("*.py")]
    found = {path.relative_to(HOST).as_posix(): readers_in(path) for path in modules}
    reading = {name for name, readers in found.items() if readers}
    assert reading <= OWN, "read_limited(), load_json() or open_plain() of files.py"
    assert reading == OWN, "no longer reads"

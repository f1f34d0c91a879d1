"""One module asks for the time on the wall, and knows UTC only."""

from __future__ import annotations

import re

from rltools_host.tree import TREE

PACKAGES = ("host", "benchmarks", "integrations", "examples", "lib/protocol", "cmake")
LOCAL = re.compile(
    r"datetime\.now|utcnow|\.today\(|localtime|strftime|fromtimestamp|fromisoformat|ctime\("
)
ALLOWED = {"host/rltools_host/runs/names.py"}


def test_no_other_module_asks_for_the_time_on_the_wall() -> None:
    found = []
    for package in PACKAGES:
        for path in sorted((TREE.root / package).rglob("*.py")):
            name = path.relative_to(TREE.root).as_posix()
            if name not in ALLOWED and LOCAL.search(path.read_text(encoding="utf-8")):
                found.append(name)
    assert found == []

"""What a shell reads to complete words, read by bash: what it offers for a word that was begun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.tree import TREE

ASK = """\
source <(_RLT_COMPLETE=source_bash rlt)
complete -p rlt
COMP_WORDS=(rlt {words}) COMP_CWORD={last}
$(complete -p rlt | sed 's/.*-F \\([^ ]*\\) .*/\\1/') rlt
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ex",), {"export"}),
        (("train", "pendulum-t"), {"pendulum-td3"}),
        (("train", "--see"), {"--seed", "--seeds"}),
    ],
    ids=["command", "experiment", "option"],
)
def test_bash_completes(words: tuple[str, ...], offered: set[str], tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    launcher = tmp_path / "rlt"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rltools_host "$@"\n')
    launcher.chmod(0o755)
    script = ASK.format(words=" ".join(words), last=len(words))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-c", script], cwd=TREE.root, env=environment, capture_output=True, text=True
    )
    bound, *found = result.stdout.splitlines()
    assert bound.endswith(" rlt"), result.stderr
    assert set(found) == offered

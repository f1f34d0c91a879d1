"""`rlt completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.errors import unknown_name

VARIABLE = "_RLT_COMPLETE"  # that the shell asks by
SHELLS = ("bash", "zsh", "fish")
EXAMPLE = "completion bash"


def command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """The shell is to read what `rlt completion bash` prints, for bash: with source, in bash and
    zsh by a process substitution, in fish by a pipe.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise unknown_name("shell", shell, SHELLS)
    print(get_completion_script(prog_name="rlt", complete_var=VARIABLE, shell=shell))

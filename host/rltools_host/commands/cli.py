"""The command line `rlt`: runs a command of the table, and says in one line what goes wrong."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NoReturn

import typer
import typer.core
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.models import TyperPath

import rltools_host
from rltools_host.commands import COMMANDS, Command
from rltools_host.commands.options import VARIABLE, take_whole_numbers
from rltools_host.errors import DiskError, Interrupted, MissingToolError, RltError, UsageError
from rltools_host.files import FULL
from rltools_host.interruption import interrupt_by_ctrl_c
from rltools_host.lines import (
    HARD_SPACE,
    Output,
    aside,
    drop_output,
    open_missing_streams,
    output_can_be_full,
    take_any_text,
    without_breaks,
    without_commands,
)
from rltools_host.tree import HIDE_OPTIONAL, PROJECT, command_line, launcher

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
# The base of what typer raises for a wrong command line. Older versions take it from click.
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
OUTPUT_ERRORS = (*FULL, errno.EPIPE, errno.EIO, errno.EFBIG)
HELP_NAMES = ["-h", "--help"]
WIDTH = 100
# By what their metavar says. `--out ""`, as of a variable that is not set, would be the present
# folder.
PATH_WORDS = {"DIR": "a folder", "FILE": "a file", "LOG": "a file"}
RUN = "RUN"  # a run's folder or name
HYPHEN, WHOLE_HYPHEN = re.compile(r"(?<=\w)-(?=\w)"), "\u2011"  # one that no line breaks at
TYPED_NAME = re.compile(r"(?<=`)rlt(?= [a-z])|(?<=: )rlt(?= [a-z])")  # in texts of the help


class OneCommand(typer.core.TyperCommand):
    """A command that takes no empty paths, and whose help names the launcher as it was called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for parameter in self.params:
            what = names_what(parameter)
            if what and ctx.params.get(parameter.name) == "":
                option = max(parameter.opts, key=len)
                name = option if option.startswith("-") else str(parameter.metavar)
                raise UsageError(f"{name} is empty: name {what}")
        return rest

    def get_help(self, ctx: Any) -> str:
        return super().get_help(ctx).replace(WHOLE_HYPHEN, "-").replace(HARD_SPACE, " ")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.help, self.epilog = as_called(self.help), as_called(self.epilog)
        for parameter in self.params:
            if isinstance(parameter, typer.core.TyperArgument | typer.core.TyperOption):
                parameter.help = as_called(parameter.help)
        super().format_help(ctx, formatter)


def names_what(parameter: Any) -> str | None:
    """What an option or argument is to name on the disk; None for one that names something else."""
    word = str(parameter.metavar or "").strip("[]")
    if isinstance(parameter.type, TyperPath):
        return PATH_WORDS.get(word, "a file or folder")
    return "a run" if word == RUN else None


def as_called(text: str | None) -> str | None:
    """A text of the help with what must be typed in place of the launcher's name. Lines do not
    break in `host-threads`, nor in a command."""
    named = text and TYPED_NAME.sub(lambda _: command_line(), text)
    return named and HYPHEN.sub(WHOLE_HYPHEN, without_breaks(named))


class LazyGroup(typer.core.TyperGroup):
    """A group whose commands stand in a table; a command's module is imported when it is called."""

    table: ClassVar[Mapping[str, Command]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.table, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = self.table.get(cmd_name)
        return load(cmd_name, entry) if entry else super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = as_called(self.epilog)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as typer calls
        rows = [(name, entry.summary) for name, entry in self.table.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def load(name: str, entry: Command) -> Any:
    """Return the command of a module, as typer runs it."""
    function = entry.part("command")
    details = inspect.getdoc(function)
    text = f"{entry.summary}\n\n{details}" if details else entry.summary
    return one_command(function, name, text, entry.part("EXAMPLE"), entry.part("CONTEXT", {}))


def one_command(
    function: Callable[..., Any],
    name: str,
    text: str,
    example: str,
    context: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return a command with the text and the example of its help, as typer runs it."""
    single = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": HELP_NAMES,
            "max_content_width": WIDTH,
            **context,
        },
    )
    epilog = f"\b\nExample: rlt {example}"
    short = text.partition("\n")[0]
    single.command(name, help=text, short_help=short, epilog=epilog, cls=OneCommand)(function)
    command = typer.main.get_command(single)
    for parameter in command.params:
        take_whole_numbers(parameter)
    return command


class TopGroup(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    name="rlt",
    cls=TopGroup,
    help="Trains policies on microcontrollers, real or emulated, and brings them home.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP_NAMES, "max_content_width": WIDTH},
    epilog="Start with: rlt demo",
)


def print_version(wanted: bool) -> None:
    """The version and, in a checkout, the revision: what a report of a fault needs."""
    if not wanted:
        return
    from rltools_host.runs.provenance import git_revision

    tree = git_revision()
    revision = f", revision {tree['git_revision']}" if tree["git_revision"] else ""
    print(f"rlt {rltools_host.__version__}{revision}{' with changes' if tree['git_dirty'] else ''}")
    raise typer.Exit


@app.callback()
def top(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Show the version."),
    ] = False,
    _yes: Annotated[
        bool, typer.Option("--yes", help="Set up .venv, at the first start, without a question.")
    ] = False,
) -> None:
    pass


def main(
    arguments: list[str] | None = None, command: Any = None, name: Sequence[str] = ()
) -> NoReturn:
    """Run the command line and end the process with the command's exit code.

    A command beside those of `rlt` is run in their place, under its name behind the launcher's.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if command is None:
        words = words or ["--help"]
    try:
        interrupt_by_ctrl_c()
        open_missing_streams()
        take_any_text()
        sys.stderr = Output(sys.stderr)  # what cannot be shown is dropped
        code = deliver(run(words, command, name))
    except KeyboardInterrupt:
        code = Interrupted.exit_code
    sys.exit(code)


def deliver(code: int) -> int:
    """Writes what was printed; the exit code, which is another one where that cannot be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or output_lost(error)
        drop_output(sys.stdout)
    try:
        sys.stderr.flush()
    except OSError:
        drop_output(sys.stderr)
    return code


def output_lost(error: OSError) -> int:
    """A reader that goes has read enough, as in rlt boards | head; a full disk is an error."""
    drop_output(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return 1
    print_error(f"error: cannot write the output: {error.strerror}; write it somewhere else")
    return DiskError.exit_code


def run(words: Sequence[str], command: Any = None, name: Sequence[str] = ()) -> int:
    """Return the exit code of a command; whatever goes wrong is one line on the error stream."""
    try:
        if HIDE_OPTIONAL in os.environ:
            from rltools_host.build.toolchains import hide_optional_tools

            hide_optional_tools()
        if VARIABLE in os.environ:
            completion_init()
        code = (command or app)(
            list(words), prog_name=command_line(*name), complete_var=VARIABLE, standalone_mode=False
        )
        if code == Interrupted.exit_code:  # how typer passes a KeyboardInterrupt on
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except RltError as error:
        prefix = "" if isinstance(error, Interrupted) else "error: "
        return fail(words, str(error), error.exit_code, prefix, error.details)
    except (KeyboardInterrupt, typer.Abort):
        return fail(words, "interrupted", Interrupted.exit_code, "")
    except typer.Exit as ending:
        return ending.exit_code
    except Exception as error:
        if isinstance(error, CommandLineError):
            return fail(words, command_line_message(error), 2)
        if isinstance(error, OSError) and error.filename is None and error.errno in OUTPUT_ERRORS:
            if error.errno in FULL and not output_can_be_full():
                remedy = "free some space, then run the command again"
                message = f"cannot write a file: {error.strerror}; {remedy}"
                return fail(words, message, DiskError.exit_code)
            return output_lost(error)
        if isinstance(error, ImportError) and not (error.name or "").startswith("rltools_host"):
            return fail(words, damaged_environment(error), MissingToolError.exit_code)
        if isinstance(error, FileNotFoundError) and (gone := removed_project()):
            message = f"{gone} is gone, removed or renamed while the command ran: run it again"
            return fail(words, message, DiskError.exit_code)
        return fail(words, internal_message(error), INTERNAL_ERROR)


def fail(
    words: Sequence[str],
    message: str,
    exit_code: int,
    prefix: str = "error: ",
    details: dict[str, Any] | None = None,
) -> int:
    """Prints an error, for people and, with --json, for scripts; where that can still be."""
    try:
        sys.stdout.flush()
        if "--json" in words:
            document = {"error": message, "exit_code": exit_code, **(details or {})}
            print(json.dumps(document), flush=True)
    except OSError:
        drop_output(sys.stdout)
    print_error(without_commands(f"{prefix}{message}"))
    return exit_code


def print_error(line: str) -> None:
    try:
        aside(line)
    except OSError:
        drop_output(sys.stderr)


def command_line_message(error: Any) -> str:
    """What typer says about a wrong command line, as one sentence that names the help."""
    context = getattr(error, "ctx", None)
    words = ["--help"]
    while context is not None:
        words.insert(0, context.info_name)
        context = context.parent
    command = " ".join(words)
    message = " ".join(str(error.format_message()).split()).rstrip(".?").replace(". ", ", ")
    return f"{message[:1].lower()}{message[1:]}; see `{command}`"


def removed_project() -> Path | None:
    """The project's folder, where it was there when the command began and is not any more."""
    root: Path | None = vars(PROJECT).get("root")
    return None if root is None or root.is_dir() else root


def damaged_environment(error: BaseException) -> str:
    """Where a package cannot be imported, with the reason that the package's own words hide."""
    while error.__cause__ is not None:
        error = error.__cause__
    reason = " ".join(str(error).split())
    return f"{sys.prefix} is damaged ({reason}): delete it, {launcher()} sets it up again"


def internal_message(error: Exception) -> str:
    """Names the log that the traceback was written to."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="rlt-internal-error-", suffix=".log", delete=False
    ) as log:
        log.write("".join(traceback.format_exception(error)))
    return f"internal error ({type(error).__name__}: {error}): please report it with {log.name}"

"""The command line `rlt`: runs a command of the table, and prints an error in one line."""

from __future__ import annotations

import contextlib
import errno
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer
import typer.core
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.models import TyperPath

import rltools_host
from rltools_host.commands import COMMANDS, FORMER, Command
from rltools_host.commands.options import VARIABLE
from rltools_host.errors import (
    DiskError,
    Interrupted,
    MissingToolError,
    RltError,
    UsageError,
    unknown_name,
)
from rltools_host.files import FULL
from rltools_host.lines import HARD_SPACE, aside, drop_output, without_breaks, without_commands
from rltools_host.tree import HIDE_OPTIONAL, command_line, is_gone, launcher

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
# The base of what typer raises for a wrong command line. Older versions take it from click.
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
HELP_NAMES = ["-h", "--help"]
WIDTH = 100
# By the option's metavar. `--out ""`, of a variable that is not set, would be the current folder.
PATH_WORDS = {"DIR": "a folder", "FILE": "a file", "LOG": "a file"}
RUN = "RUN"  # a run's folder or name
HYPHEN, WHOLE_HYPHEN = re.compile(r"(?<=\w)-(?=\w)"), "\u2011"  # the latter does not break a line
TYPED_NAME = re.compile(r"(?<=`)rlt(?= [a-z])|(?<=: )rlt(?= [a-z])")  # in texts of the help


class OneCommand(typer.core.TyperCommand):
    """A command that refuses empty paths, and whose help names the launcher as it was called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for parameter in self.params:
            what = kind_of_path(parameter)
            if what and ctx.params.get(parameter.name) == "":
                option = max(parameter.opts, key=len)
                name = option if option.startswith("-") else str(parameter.metavar)
                raise UsageError(f"{name} is empty: name {what}")
        return rest

    def get_help(self, ctx: Any) -> str:
        return super().get_help(ctx).replace(WHOLE_HYPHEN, "-").replace(HARD_SPACE, " ")

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.help, self.epilog = with_launcher(self.help), with_launcher(self.epilog)
        for parameter in self.params:
            if isinstance(parameter, typer.core.TyperArgument | typer.core.TyperOption):
                parameter.help = with_launcher(parameter.help)
        super().format_help(ctx, formatter)


def kind_of_path(parameter: Any) -> str | None:
    """Return what a parameter names on the disk, such as "a folder"; None for another parameter."""
    word = str(parameter.metavar or "").strip("[]")
    if isinstance(parameter.type, TyperPath):
        return PATH_WORDS.get(word, "a file or folder")
    return "a run" if word == RUN else None


def with_launcher(text: str | None) -> str | None:
    """Replace the name `rlt` in a text of the help by what starts the launcher here.

    Lines do not break in `host-threads`, nor in a command.
    """
    named = text and TYPED_NAME.sub(lambda _: command_line(), text)
    return named and HYPHEN.sub(WHOLE_HYPHEN, without_breaks(named))


class LazyGroup(typer.core.TyperGroup):
    """The commands of the table; a command's module is imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as typer calls
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in FORMER:
            sentence = TYPED_NAME.sub(lambda _: command_line(), FORMER[cmd_name])
            raise UsageError(f"{cmd_name}: {sentence}")
        entry = COMMANDS.get(cmd_name)
        if entry is None and not cmd_name.startswith("-"):
            error = unknown_name("command", cmd_name, COMMANDS)
            raise UsageError(f"{error}; see `{command_line('--help')}`")
        return load(cmd_name, entry) if entry else super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = with_launcher(self.epilog)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as typer calls
        rows = [(name, entry.summary) for name, entry in COMMANDS.items()]
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
    return typer.main.get_command(single)


app = typer.Typer(
    name="rlt",
    cls=LazyGroup,
    help="Trains policies on microcontrollers, real or emulated, and fetches them.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP_NAMES, "max_content_width": WIDTH},
    epilog="Start with: rlt demo",
)


def print_version(wanted: bool) -> None:
    """Print the version and, in a checkout, the revision."""
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

    `command` is run instead of those of the table, such as a benchmark; `name` are its words.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if command is None:
        words = words or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if os.name == "nt" and isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")  # a file or pipe, as elsewhere
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path may have bytes that are not UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    code = run(words, command, name)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed by the caller
        try:
            stream.flush()
        except OSError:  # Python would end with 120
            drop_output(stream)
    sys.exit(code)


def run(words: Sequence[str], command: Any = None, name: Sequence[str] = ()) -> int:
    """Run a command and return its exit code; print one line on stderr for an error."""
    try:
        if HIDE_OPTIONAL in os.environ:
            from rltools_host.build.toolchains import hide_optional_tools

            hide_optional_tools()
        if VARIABLE in os.environ:
            completion_init()
        # A shell completes ./rlt, too, by the name without a folder.
        called = "rlt" if VARIABLE in os.environ else command_line(*name)
        code = (command or app)(
            list(words), prog_name=called, complete_var=VARIABLE, standalone_mode=False
        )
        sys.stdout.flush()
        if code == Interrupted.exit_code:  # how typer passes a KeyboardInterrupt on
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except RltError as error:
        prefix = "" if isinstance(error, Interrupted) else "error: "
        return fail(words, str(error), error.exit_code, prefix, error.details)
    except (KeyboardInterrupt, typer.Abort):
        return fail(words, "interrupted", Interrupted.exit_code, "")
    except typer.Exit as ended:
        return ended.exit_code
    except BrokenPipeError:  # the reader has read enough, as in `rlt doctor | head`
        return 1
    except Exception as error:
        if isinstance(error, CommandLineError):
            message = command_line_message(error, words)
            return fail(words, message, UsageError.exit_code)
        if isinstance(error, OSError) and error.errno in FULL:
            message = f"cannot write: {error.strerror}; free some space, then run the command again"
            return fail(words, message, DiskError.exit_code)
        if isinstance(error, FileNotFoundError) and is_gone():
            message = "the current folder is gone: change to one that is there"
            return fail(words, message, UsageError.exit_code)
        if isinstance(error, OSError) and error.errno in REFUSED and error.filename is not None:
            message = (
                f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}; see that it is a "
                "file or folder that you may read and write (where that was, says "
                f"{traceback_log(error)})"
            )
            return fail(words, message, DiskError.exit_code)
        if isinstance(error, ImportError) and not (error.name or "").startswith("rltools_host"):
            return fail(words, damaged_environment(error), MissingToolError.exit_code)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        message = f"internal error ({what}): please report it with {traceback_log(error)}"
        return fail(words, message, INTERNAL_ERROR)


def fail(
    words: Sequence[str],
    message: str,
    exit_code: int,
    prefix: str = "error: ",
    details: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Print an error for people and, with --json, for scripts; return the exit code."""
    with contextlib.suppress(OSError):
        if "--json" in words:
            print(json.dumps({"error": message, "exit_code": exit_code, **details}))
        sys.stdout.flush()
    with contextlib.suppress(OSError):  # of a terminal that has been closed
        aside(without_commands(f"{prefix}{message}"))
    return exit_code


# Of files: who the user is, and what lies where, decides about them.
REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.EEXIST),
)


def command_line_message(error: Any, words: Sequence[str]) -> str:
    """Return typer's message about a wrong command line as one sentence that names the help."""
    context = getattr(error, "ctx", None)
    named = ["--help"]
    while context is not None:
        named.insert(0, context.info_name)
        context = context.parent
    # A message of a value has no context: the command is that of the words.
    command = " ".join(named) if named[1:] else command_line(*words[:1], *named)
    message = " ".join(str(error.format_message()).split()).rstrip(".?").replace(". ", ", ")
    message = f"{message[:1].lower()}{message[1:]}"
    known = getattr(getattr(error, "ctx", None), "command", None)
    if option := getattr(error, "option_name", None):
        names = {each.name for each in known.params} if known is not None else set()
        if "settings" in names and not getattr(error, "possibilities", None):
            name = option.lstrip("-").replace("-", "_")
            message += f", what an experiment has by that name is set with --set {name}=VALUE"
    return f"{message}; see `{command}`"


def damaged_environment(error: BaseException) -> str:
    """Return the message for a package that cannot be imported, with the first cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    reason = " ".join(str(error).split())
    return f"{sys.prefix} is damaged ({reason}): delete it, {launcher()} sets it up again"


def traceback_log(error: Exception) -> str:
    """Write the traceback to a log, and return its path; where that fails, print it."""
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            *("w", -1, "utf-8"),
            prefix="rlt-internal-error-",
            suffix=".log",
            delete=False,
            errors="backslashreplace",
        ) as log:
            log.write(text)
    except OSError:
        sys.stderr.write(text)
        return "the lines above"
    return log.name

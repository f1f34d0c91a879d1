"""The Python code that a task imports, and the user's agreement to it: files that the user has
named in this project.

A run says by itself what its task is imported from, and a run may come from anybody. What a user
names (`rlt train gym:FILE.py:NAME`, `rlt evaluate RUN --task gym:MODULE:ID`) is noted outside of
all runs, by the path of the file; a run's word alone imports nothing else. An id of Gymnasium's own
needs no agreement, as it imports nothing but Gymnasium.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import sys
import warnings
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from rltools_host.build import tools
from rltools_host.build.catalog import NAMESPACE
from rltools_host.build.experiments import task_in
from rltools_host.environments.spaces import flattened
from rltools_host.environments.task import MakeEnvironment, is_task
from rltools_host.errors import RltError, UsageError, near_matches
from rltools_host.files import disk_error, write_atomically
from rltools_host.runs.task import PREFIX, Task
from rltools_host.tree import PROJECT, command_line

LONGEST_REASON = 200


def file_named_by(source: str) -> Path | None:
    """Return the file that gym:FILE.py:NAME or gym:MODULE:ID imports; None if that is nothing but
    Gymnasium.

    Nothing is imported to find it. UsageError if there is no such file.
    """
    module, colon, identity = source.removeprefix(PREFIX).rpartition(":")
    if not colon:
        return None
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise no_file(module)
        return Path(module).resolve()
    before = list(sys.path)
    look_in(Path.cwd())
    try:
        return file_of_module(module, identity)
    finally:
        sys.path[:] = before


def look_in(*folders: Path) -> None:
    """Add PYTHONPATH, which isolated processes leave out, and these folders to Python's search
    path, after what is installed."""
    own = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path += [entry for entry in (*own, *map(str, folders)) if entry not in sys.path]


def file_of_module(module: str, identity: str) -> Path:
    specification: ModuleSpec | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        try:
            if specification is None:
                specification = importlib.util.find_spec(part)
            else:
                within = specification.submodule_search_locations
                specification = PathFinder.find_spec(name, within) if within else None
        except (ImportError, ValueError):
            specification = None
        if specification is None:
            raise no_module(name, identity)
    assert specification is not None
    folders = list(specification.submodule_search_locations or [])
    origin = specification.origin if specification.has_location else next(iter(folders), None)
    if origin is None:
        raise no_module(name, identity)
    return Path(origin).resolve()


def no_file(path: str) -> UsageError:
    return UsageError(f"there is no file {path}: gym:FILE.py:NAME names a class or a function")


def no_module(module: str, identity: str) -> UsageError:
    return UsageError(
        f'there is no Python module "{module}": for {identity} start the command in its '
        "folder, or install it"
    )


def note_of(file: Path) -> Path:
    """Return the path of the note that the user has named the file."""
    return PROJECT.named_tasks / hashlib.sha256(os.fsencode(file)).hexdigest()


def unnamed_file(source: str) -> Path | None:
    """Return the file that a task imports, unless the user has named it; None if there is none."""
    file = file_named_by(source)
    return None if file is None or note_of(file).is_file() else file


def agree(source: str) -> None:
    """Note that the user has named this task: its file may be imported, now and for runs that name
    it."""
    if (file := unnamed_file(source)) is None:
        return
    note = note_of(file)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(note, error) from None
    write_atomically(note, os.fsencode(file) + b"\n")


def require_agreement(source: str) -> None:
    """Raise UsageError unless the code that a run names for its task may be imported."""
    if unnamed_file(source) is None:
        return
    train = command_line("train", source, "--resume", "RUN")
    evaluate = command_line("evaluate", "RUN", "--task", source)
    raise UsageError(
        f"the task {source} is Python code that a run names, and that you have not named here: it "
        f"was not imported; if you trust it, name it yourself, as in `{evaluate}` or `{train}`"
    )


def playable(task: Task, named: str | None) -> Task:
    """Return the task of a run or a group with its source.

    The source is what the user names, which may lie elsewhere than the run says; else (None) what
    the run says, if that may be imported.
    """
    if not task.is_named:
        return task
    if named is None:
        require_agreement(task.source)
        return task
    if not is_task(named):
        raise UsageError(f"{named} is not a task: write gym:FILE.py:NAME or gym:ID, as the run has")
    named = whole_source(named)
    (module, _, name), (own, _, same) = (
        each.removeprefix(PREFIX).rpartition(":") for each in (task.source, named)
    )
    if name != same or bool(module) != bool(own):  # Gymnasium's own task lies nowhere else
        raise UsageError(f"the run was trained on {task.source}, not on {named}")
    agree(named)
    return msgspec.structs.replace(task, source=named)


def whole_source(source: str) -> str:
    """Return gym:FILE.py:NAME with the file's absolute path."""
    file, colon, attribute = source.removeprefix(PREFIX).rpartition(":")
    if not colon or not file.endswith(".py"):
        return source
    return f"{PREFIX}{Path(file).resolve()}:{attribute}"


def one_line(error: BaseException) -> str:
    """Return the exception in one line of limited length."""
    text = " ".join(str(error).split())
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def maker_of(source: str, episode_steps: int | None = None) -> MakeEnvironment:
    """Return the function that makes the environments of gym:ID, gym:MODULE:ID or
    gym:FILE.py:NAME.

    `episode_steps` is of the longest episode that is asked for: a registered environment is made
    with it, if it is longer than the registered one.
    """
    name = source.removeprefix(PREFIX)
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        return maker_in_file(Path(file), attribute)
    if name.endswith(".py") and Path(name).is_file():
        raise UsageError(f"{source} names no class or function: name {task_in(Path(name))}")
    return lambda: make_by_id(name, episode_steps)


def maker_in_file(path: Path, attribute: str) -> MakeEnvironment:
    if not path.is_file():
        raise no_file(str(path))
    look_in(path.resolve().parent)  # for what it imports, as Python does for a script
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {one_line(error)}") from None
    make = getattr(module, attribute, None)
    if not callable(make):
        raise UsageError(
            f'{path} has nothing to call that is named "{attribute}": '
            f"{near_matches(attribute, own_callables(module))}"
        )
    found: MakeEnvironment = make
    return found


def own_callables(module: ModuleType) -> list[str]:
    """Return the names of the classes and functions that a file defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if callable(value)
        and getattr(value, "__module__", None) == module.__name__
        and not name.startswith("_")
    ]


def make_by_id(name: str, episode_steps: int | None = None) -> Any:
    import gymnasium

    if ":" in name:  # a module of the user's
        look_in(Path.cwd())
    elif name.startswith(NAMESPACE):  # an environment of the core's
        from rltools_host.environments.compiled import register

        register()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of newer versions, which the user did not ask for
            environment = gymnasium.make(name, disable_env_checker=True)
            limit = getattr(environment.spec, "max_episode_steps", None)
            if episode_steps is not None and limit is not None and episode_steps > limit:
                environment.close()
                environment = gymnasium.make(
                    name, max_episode_steps=episode_steps, disable_env_checker=True
                )
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(
            f"{name} needs a package that is not installed: {one_line(error)}; install it for "
            f"{sys.executable}"
        ) from None
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        module, colon, identity = name.rpartition(":")
        if isinstance(error, ModuleNotFoundError):
            raise no_module(error.name or module, identity or name) from None
        known = near_matches(name, gymnasium.registry)
        hint = f"; {known}" if not colon and known.startswith("did you mean") else ""
        if not colon and not isinstance(error, gymnasium.error.VersionNotFound):
            hint += of_other_package(identity)
        where = f" of module {module}" if colon else ""
        raise UsageError(
            f'gymnasium has no environment "{identity}"{where} ({one_line(error)}){hint}'
        ) from None
    if "mujoco" in sys.modules:
        silence_mujoco()
    return environment


# Packages that register environments only where they are imported, by how those are called.
PACKAGES = {
    "ALE/": "ale_py",
    "MiniGrid-": "minigrid",
    "BabyAI-": "minigrid",
    "Fetch": "gymnasium_robotics",
    "highway-": "highway_env",
}
PICTURES = (
    "; its pictures are too many numbers to observe: write a function of a file that makes it with "
    'obs_type="ram", and name gym:FILE.py:FUNCTION'
)


def of_other_package(identity: str) -> str:
    """Return a clause on the package that registers such a name."""
    for beginning, package in PACKAGES.items():
        if identity.startswith(beginning):
            pictures = PICTURES if package == "ale_py" else ""
            return (
                f"; the Python package {package} registers it: install that, and name it "
                f"{PREFIX}{package}:{identity}{pictures}"
            )
    return f"; name the Python module that registers it, as in {PREFIX}MODULE:{identity}"


def silence_mujoco() -> None:
    """Keep MuJoCo from appending warnings to a file in the user's folder, and from timing each part
    of a step.

    The timing takes a seventh of a step and more, by a function in C that set_mjcb_time() does not
    remove.
    """
    import mujoco

    mujoco.set_mju_user_warning(lambda _: None)
    with contextlib.suppress(OSError, ValueError):  # another version's names
        library = ctypes.CDLL(mujoco._callbacks.__file__)
        ctypes.c_void_p.in_dll(library, "mjcb_time").value = None


def make_first(make: MakeEnvironment, name: str) -> Any:
    """Make the first environment of a task, as made() does; raise UsageError with one sentence for
    any exception."""
    try:
        return made(make)
    except RltError:
        raise
    except Exception as error:
        remedy = ""
        if isinstance(error, TypeError) and "required" in str(error):
            remedy = (
                "; it is called without arguments: give them defaults, or write a function of the "
                "file that makes it, and name that"
            )
        if isinstance(error, OSError) and isinstance(error.filename or str(error), str):
            remedy = (
                "; the path of a file is relative to the folder of the command, "
                f"{Path.cwd()}: write one that begins with Path(__file__).parent"
            )
        raise UsageError(f"{name} cannot be made: it raised {one_line(error)}{remedy}") from None


def made(make: MakeEnvironment) -> Any:
    """Return an environment whose observations are flat, where they can be."""
    return flattened(make())


def install_what_it_needs(source: str) -> None:
    """Install the group of packages that Gymnasium's own tasks of MuJoCo need, before one is
    made."""
    if not is_task(source) or tools.group_is_installed("mujoco"):
        return
    import gymnasium  # a tenth of a second

    name = source.removeprefix(PREFIX)
    specification = gymnasium.registry.get(name)
    entry = str(specification.entry_point) if specification is not None else ""
    if entry.startswith("gymnasium.envs.mujoco"):
        tools.ensure_group("mujoco")

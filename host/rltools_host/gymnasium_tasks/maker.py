"""Makes environments: by Gymnasium's name, or by the name of something in a user's file."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

from rltools_host.errors import RltError, UnknownNameError, UsageError, near_matches
from rltools_host.gymnasium_tasks.agreement import look_in, no_file, no_module
from rltools_host.gymnasium_tasks.task import PREFIX, MakeEnvironment
from rltools_host.toolchain import tools

LONGEST_REASON = 200


def one_line(error: BaseException) -> str:
    """What was raised, in one line that is not long."""
    text = " ".join(str(error).split())
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def maker_of(source: str) -> MakeEnvironment:
    """What makes the environments of gym:ID, gym:MODULE:ID or gym:FILE.py:NAME."""
    name = source.removeprefix(PREFIX)
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        return maker_in_file(Path(file), attribute)
    return lambda: make_by_id(name)


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
        names = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise UnknownNameError(
            f'{path} has nothing to call that is named "{attribute}": '
            f"{near_matches(attribute, names)}"
        )
    found: MakeEnvironment = make
    return found


def make_by_id(name: str) -> Any:
    import gymnasium

    if ":" in name:  # a module of the user's
        look_in(Path.cwd())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of newer versions, which the user did not ask for
            environment = gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(
            f"{name} needs a package that is not installed: {one_line(error)}"
        ) from None
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        module, colon, identity = name.rpartition(":")
        if isinstance(error, ModuleNotFoundError):
            raise no_module(error.name or module, identity or name) from None
        known = near_matches(name, gymnasium.registry)
        hint = f"; {known}" if not colon and known.startswith("did you mean") else ""
        place = f" of module {module}" if colon else ""
        raise UnknownNameError(
            f'gymnasium has no environment "{identity}"{place} ({one_line(error)}){hint}'
        ) from None
    if "mujoco" in sys.modules:
        silence_mujoco()
    return environment


def silence_mujoco() -> None:
    """It would append its warnings to a file in the user's folder."""
    import mujoco

    mujoco.set_mju_user_warning(lambda _: None)


def make_first(make: MakeEnvironment, name: str) -> Any:
    """The first environment of a task: whatever it raises is one sentence."""
    try:
        return make()
    except RltError:
        raise
    except Exception as error:
        raise UsageError(f"{name} cannot be made: it raised {one_line(error)}") from None


def install_what_it_needs(source: str) -> None:
    """Before it is made: the group of packages that Gymnasium's own tasks of MuJoCo need."""
    if not source.startswith(PREFIX):
        return
    import gymnasium

    name = source.removeprefix(PREFIX)
    specification = gymnasium.registry.get(name)
    entry = str(specification.entry_point) if specification is not None else ""
    if entry.startswith("gymnasium.envs.mujoco"):
        tools.ensure_group("mujoco")

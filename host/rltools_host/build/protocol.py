"""The wire format's generated files, and its Python module."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from rltools_host.errors import BuildError
from rltools_host.project import PROJECT
from rltools_host.tree import TREE


def load_generator() -> ModuleType:
    """lib/protocol/generate.py, which is a script and not part of the package."""
    specification = importlib.util.spec_from_file_location("generate", TREE.protocol_generator)
    if specification is None or specification.loader is None:
        raise BuildError(f"{TREE.protocol_generator} is missing: restore it from git")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@cache
def generate_protocol() -> Path:
    """Brings the wire format's generated files up to date and returns their directory."""
    try:
        load_generator().generate(PROJECT.protocol)
    except SystemExit as error:
        raise BuildError(f"the wire format cannot be generated: {error}") from None
    return PROJECT.protocol


@cache
def load_dialect() -> ModuleType:
    """The wire format's Python module, generated when it is missing or out of date."""
    path = generate_protocol() / "python" / "rltools_dialect.py"
    specification = importlib.util.spec_from_file_location("rltools_dialect", path)
    if specification is None or specification.loader is None:
        raise BuildError(f"{path} cannot be loaded: delete {PROJECT.protocol}, it is made again")
    module = importlib.util.module_from_spec(specification)
    sys.modules["rltools_dialect"] = module
    specification.loader.exec_module(module)
    return module

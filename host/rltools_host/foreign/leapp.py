"""Descriptions of LEAPP (Isaac Lab's export): YAML that names a model of ONNX beside it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rltools_host.documents import shown
from rltools_host.foreign import onnx_files
from rltools_host.foreign.network import ForeignPolicy
from rltools_host.foreign.pickles import UnreadableError
from rltools_host.toolchain import tools

MOST_BYTES = 1_000_000
SUFFIXES = (".yaml", ".yml")
MODEL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}\.onnx")  # beside the description


def policy_in(content: bytes, path: Path, read: Callable[[Path], bytes]) -> ForeignPolicy:
    """The one model of the description; read: gives the content of the model's file."""
    tools.ensure_group(onnx_files.GROUP)
    import yaml

    if len(content) > MOST_BYTES:
        raise UnreadableError(f"it is a description of more than {MOST_BYTES:,} bytes")
    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, AttributeError):
        raise UnreadableError("it is no YAML") from None
    models = table(table(document, "description").get("models"), "models")
    if len(models) != 1:
        raise UnreadableError(
            f"it describes a pipeline of {len(models)} models: one model from observations to "
            "actions is taken"
        )
    model = table(next(iter(models.values())), "model")
    pipeline = document.get("pipeline")
    if isinstance(pipeline, dict) and pipeline.get("feedback_flow"):
        raise UnreadableError("its model takes back what it gave before, which is not taken")
    parameters = table(model.get("parameters"), "parameters")
    if parameters.get("backend") != "onnx":
        raise UnreadableError('its model is none of ONNX: export it with export_with="onnx"')
    name = parameters.get("model_path")
    if not isinstance(name, str) or not MODEL_NAME.fullmatch(name):
        raise UnreadableError(f"its model {shown(name)} is no file of ONNX beside it")
    described = read(path.with_name(name))
    stated = parameters.get("sha256sum")
    if stated is not None and stated != hashlib.sha256(described).hexdigest():
        raise UnreadableError(f"{shown(name)} is another file than the description was made with")
    policy = onnx_files.policy_in(described)
    return dataclasses.replace(policy, library="LEAPP")


def table(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UnreadableError(f"it is no description of LEAPP, its {what} is no table")
    return value

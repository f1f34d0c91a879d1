"""The format of a foreign file, by how it begins, and the policy in it.

Among them are descriptions of LEAPP (Isaac Lab's export): YAML that names a model of ONNX beside
it, and a contract as far as it states one. LEAPP 0.7 has names of tensors and of their elements,
and the pipeline's frequency. It has no key for units and ranges, but writes what its `extra` has
beside the others: `units`, `minimum` and `maximum` are read there, one for all elements or one for
each.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.build import tools
from rltools_host.build.description import (
    MAX_STEP_INTERVAL_US,
    is_policy_text,
)
from rltools_host.documents import shown
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.files import read_limited
from rltools_host.policies.importing import onnx_files, sbx, stable_baselines3, state_dicts
from rltools_host.policies.importing.exports import exported_policy, is_exported
from rltools_host.policies.importing.layers import listed
from rltools_host.policies.importing.network import (
    FREQUENCY,
    MAXIMUM,
    MINIMUM,
    UNITS,
    ForeignPolicy,
    Stage,
    Stated,
    Tensor,
    check_stages,
)
from rltools_host.policies.importing.pickles import (
    MAX_DIMENSIONS,
    MAX_ELEMENTS,
    Array,
    UnreadableError,
)
from rltools_host.policies.importing.state_dicts import Given
from rltools_host.policies.importing.tensor_files import (
    OLD_FORMAT,
    Archive,
    data_pickle,
    is_safetensors,
    read_safetensors,
    read_torch_and_pickle,
)

MAX_DESCRIPTION_BYTES = 1_000_000
LARGEST = float(np.finfo(np.float32).max)
ENDINGS = (".yaml", ".yml")
LONGEST_TENSOR_NAME = 200  # a channel's is shorter
LEAPP_CONFIG = "1.3"  # of 0.7
SYSTEM, VERSION = "system information", "leapp config version"
MERGE, WHOLE, REAL = (f"tag:yaml.org,2002:{kind}" for kind in ("merge", "int", "float"))
LONGEST_NUMBER = 100  # digits
MODEL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}\.onnx")  # beside the description


def described_policy(
    content: bytes, path: Path, read: Callable[[Path], bytes], output: str | None = None
) -> ForeignPolicy:
    """Return the policy of the description's one model.

    read: returns the content of the model's file. output: the name of the output that is the
    action.
    """
    tools.ensure_group(onnx_files.GROUP)
    if len(content) > MAX_DESCRIPTION_BYTES:
        raise UnreadableError(f"it is a description of more than {MAX_DESCRIPTION_BYTES:,} bytes")
    document = parse_yaml(content)
    models = table(table(document, "description").get("models"), "models")
    if len(models) != 1:
        raise UnreadableError(
            f"it describes a pipeline of {len(models)} models, {listed(list(models))}: "
            "only one model from observations to actions is supported; import the .onnx of one "
            "that is, beside it, with --contract or --environment"
        )
    model = table(next(iter(models.values())), "model")
    pipeline = document.get("pipeline")
    pipeline = pipeline if isinstance(pipeline, dict) else {}
    if pipeline.get("feedback_flow"):
        raise UnreadableError(
            "its model takes its earlier outputs as inputs, which is not supported"
        )
    parameters = table(model.get("parameters"), "parameters")
    if parameters.get("backend") != "onnx":
        raise UnreadableError('its model is not in ONNX: export it with export_with="onnx"')
    name = parameters.get("model_path")
    if not isinstance(name, str) or not MODEL_NAME.fullmatch(name):
        raise UnreadableError(f"its model {quoted(name)} is not an ONNX file beside it")
    model_content = read(path.with_name(name))
    digest = parameters.get("sha256sum")
    if digest is not None and digest != hashlib.sha256(model_content).hexdigest():
        raise UnreadableError(f"{quoted(name)} is another file than the description was made with")
    outputs = tensors(model.get("outputs"), "outputs")
    names = [each.name for each in outputs]
    name = onnx_files.chosen_output(names, output)
    # A single output may have another name in the model.
    found = onnx_files.policy_in(model_content, name if len(names) > 1 else None)
    assumed = onnx_files.assumed_output(names, name, output)
    policy = replace(
        found,
        library="LEAPP",
        assumed=(*found.assumed, *assumed),
        notes=(*found.notes, *other_version(document.get(SYSTEM))),
    )
    return with_stated(policy, stated_in(model, pipeline, policy, outputs[names.index(name)]))


def other_version(system: Any) -> tuple[str, ...]:
    """Return a note on a version of LEAPP's format that is not known here."""
    stated = system.get(VERSION) if isinstance(system, dict) else None
    if stated is None or str(stated) == LEAPP_CONFIG:
        return ()
    return (
        f"it is of LEAPP's format {quoted(stated)}, and {LEAPP_CONFIG} is known here: what else it "
        "may state was not read",
    )


def parse_yaml(content: bytes) -> Any:
    """Return the document. Raise UnreadableError where it is not YAML, or has what makes few bytes
    endless: merged tables, and numbers to the base 60."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # the package has no types
        def flatten_mapping(self, node: Any) -> None:
            if any(key.tag == MERGE for key, _ in node.value):
                raise UnreadableError("it has a table with <<, which is not supported")

        def construct_number(self, node: Any) -> Any:
            text = self.construct_scalar(node)
            if ":" in text or len(text) > LONGEST_NUMBER:
                return text  # of which no reader takes a number
            is_whole = node.tag == WHOLE
            return self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)

    for tag in (WHOLE, REAL):
        Loader.add_constructor(tag, Loader.construct_number)
    try:
        return yaml.load(content, Loader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, AttributeError):
        raise UnreadableError("it is not YAML") from None


def with_stated(policy: ForeignPolicy, stated: Stated) -> ForeignPolicy:
    """Return the policy with the description's bounds and rate, which also count where the contract
    is another."""
    bounds = []
    for tensors in (stated.inputs, stated.outputs):
        ends = [(each.minimum, each.maximum) for each in tensors]
        low, high = ([end for end in side if end is not None] for side in zip(*ends, strict=True))
        is_whole = len(low) == len(high) == len(tensors)
        bounds.append((np.concatenate(low), np.concatenate(high)) if is_whole else None)
    interval_us = None if stated.rate_hz is None else round(1e6 / stated.rate_hz)
    return replace(
        policy,
        observation_bounds=bounds[0],
        action_bounds=bounds[1],
        # With stated ranges, the outputs are in these units.
        is_normalized=policy.is_normalized if bounds[1] is None else False,
        step_interval_us=interval_us,
        # With stated ranges, a tanh says nothing.
        is_scaling_assumed=policy.is_scaling_assumed and bounds[1] is None,
        stated=stated,
    )


def stated_in(
    model: dict[Any, Any], pipeline: dict[Any, Any], policy: ForeignPolicy, output: Tensor
) -> Stated:
    order = policy.input_names
    inputs = {each.name: each for each in tensors(model.get("inputs"), "inputs")}
    if sorted(inputs) != sorted(order):
        raise UnreadableError("its inputs are called otherwise than those of its model")
    whole = sum(each.width for each in inputs.values())
    if whole != policy.observation_dim:
        raise UnreadableError(
            f"its inputs have {whole} elements, its model {policy.observation_dim}"
        )
    if output.width != policy.output_dim:
        raise UnreadableError(
            f"its first output has {output.width} elements, its model's {policy.output_dim}"
        )
    configs = pipeline.get("configs")
    rate = configs.get(FREQUENCY) if isinstance(configs, dict) else None
    if rate is not None and not (is_number(rate) and 1e6 / MAX_STEP_INTERVAL_US <= rate <= 1e6):
        raise UnreadableError(f"its frequency {quoted(rate)} is not a rate in Hz")
    return Stated(tuple(inputs[name] for name in order), (output,), None if rate is None else rate)


def tensors(value: Any, what: str) -> list[Tensor]:
    if not isinstance(value, list) or not value:
        raise UnreadableError(f"it is not a description of LEAPP: its {what} are not a list")
    found = [tensor(table(each, "tensor")) for each in value]
    if len({each.name for each in found}) != len(found):
        raise UnreadableError(f"two of its {what} have the same name")
    return found


def tensor(entry: dict[Any, Any]) -> Tensor:
    name, shape = entry.get("name"), entry.get("shape")
    if not is_policy_text(name, LONGEST_TENSOR_NAME):
        raise UnreadableError(f"its tensor {quoted(name)} is not called by a plain text")
    sizes = shape if isinstance(shape, list) else []
    if not 1 <= len(sizes) <= MAX_DIMENSIONS or not all(
        isinstance(each, int) and 1 <= each < 2**16 for each in sizes
    ):
        raise UnreadableError(f"its {name} has the shape {quoted(shape)}")
    if math.prod(sizes) != sizes[-1]:
        raise UnreadableError(f"its {name} is not a vector, but has the shape {quoted(shape)}")
    width = sizes[-1]
    units = each_of(entry.get(UNITS), width, name, UNITS, lambda x: isinstance(x, str))
    ends = [each_of(entry.get(key), width, name, key, is_number) for key in (MINIMUM, MAXIMUM)]
    # Contracts have single precision.
    low, high = (None if end is None else np.array(end, "f4").astype(float) for end in ends)
    elements = element_names(entry.get("element_names"), width, name)
    return Tensor(str(name), elements, width, None if units is None else tuple(units), low, high)


def each_of(
    value: Any, width: int, name: Any, key: str, fits: Callable[[Any], bool]
) -> list[Any] | None:
    """Return a value for each element. A single value counts for all."""
    values = value if isinstance(value, list) else [value] * width
    if value is None:
        return None
    if len(values) != width or not all(map(fits, values)):
        raise UnreadableError(f"its {name} has {quoted(value)} for {key} of {width} elements")
    return values


def element_names(value: Any, width: int, name: Any) -> tuple[str, ...] | None:
    """Return the names of a vector's elements, [x, y, z] or [[x, y, z]]."""
    if value is None:
        return None
    axes = value if isinstance(value, list) else []
    last = axes[-1] if axes else None
    names = last if isinstance(last, list) else axes
    if len(names) != width or not all(isinstance(each, str) for each in names):
        raise UnreadableError(f"its {name} has {quoted(value)} as names of {width} elements")
    return tuple(names)


def is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and -LARGEST <= value <= LARGEST


def quoted(value: Any) -> str:
    """Return a value for a message.

    An alias in YAML can make few bytes endless, or a list a part of itself.
    """
    values = value if isinstance(value, list) else [value]
    plain = [isinstance(each, str) or each is None or is_number(each) for each in values]
    return shown(value) if all(plain) else "something that is neither text nor a number"


def table(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UnreadableError(f"it is not a description of LEAPP: its {what} is not a table")
    return value


MAX_BYTES = 512_000_000
MAX_IN_FOLDER = 1000
NO_PATH = Path()
CLEANRL = ".cleanrl_model"
ZIP = b"PK\x03\x04"
KNOWN = "the .zip of Stable-Baselines3 and sbx, .pt and .pth, .safetensors, .onnx, LEAPP's .yaml"
TO_ONNX = "export the model to ONNX, with tf2onnx, and import that"
SAVED_TABLE = "save the weights as a table, with safetensors.numpy.save_file, and import that"
SAVED_STATE = "save the module's state_dict() with torch.save"
FORMATS = (  # by the first bytes
    (b"\x89HDF", f"it is a Keras model in HDF5: {TO_ONNX}"),
    (b"TFL3", f"it is a TensorFlow Lite model: {TO_ONNX} (from the model it was made of)"),
    (b"\x93NUMPY", f"it is a NumPy array: {SAVED_TABLE}"),
)
PICKLE = (
    f"it is a pickle, whose code would have to be executed: {SAVED_STATE} (a VecNormalize goes "
    "with --normalizer, beside its policy)"
)
OTHER_ENDINGS = {
    **dict.fromkeys((".pkl", ".pickle"), PICKLE),
    ".pb": f"it is a TensorFlow graph: {TO_ONNX}",
}


def unsupported(content: bytes, names: Sequence[str], ending: str) -> UnreadableError:
    """Return the error of a file or of an archive with entries of these `names` that nothing here
    reads: what it is, and the way on."""
    named = next((what for begins, what in FORMATS if begins in content[:8]), None)
    if any(name.endswith("models/model.json") for name in names):
        named = f"it is a torch.export program: {SAVED_STATE}, or export it to ONNX"
    elif "config.json" in names and "metadata.json" in names:
        named = f"it is a Keras model: {TO_ONNX}"
    elif names and all(name.endswith(".npy") for name in names):
        named = f"it has NumPy arrays without an order: {SAVED_TABLE}"
    named = named or OTHER_ENDINGS.get(ending, "its format is not supported")
    return UnreadableError(f"{named}; supported are {KNOWN}")


TABLES = (".yaml", ".yml", ".zip", ".pt", ".pth", ".safetensors", ".onnx", CLEANRL)


def in_folder(path: Path) -> str:
    """Return why a folder is not imported, and which file in it might be."""
    try:
        names = sorted(each.name for each in path.iterdir())[:MAX_IN_FOLDER]
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if "saved_model.pb" in names:
        return f"cannot be imported: it is a TensorFlow SavedModel: {TO_ONNX}"
    files = [name for name in names if Path(name).suffix in TABLES and "\n" not in name]
    if not files:
        return f"is a folder, and no file in it is a policy's; supported are {KNOWN}"
    return f"is a folder: import the policy in it, {' or '.join(map(shown, files[:4]))}"


def content_of(path: Path, within: Path | None = None) -> bytes:
    """Return a file's bytes. Raise DamagedFileError where it cannot be read.

    within: the folder out of which no link may lead.
    """
    if path.is_dir():
        raise DamagedFileError(f"{path} {in_folder(path)}")
    try:
        return read_limited(path, MAX_BYTES, within)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}") from None


def read_foreign(path: Path, content: bytes, given: Given) -> ForeignPolicy:
    """Return the policy in a file. Raise DamagedFileError, which says why it cannot be imported."""
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused
            policy = policy_in(content, given, path)
            check_stages(policy.stages)
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be imported: {error}{beside(path)}") from None
    return policy


def beside(path: Path) -> str:
    """Return words on a file of the same policy beside a program of PyTorch."""
    if path.suffix not in (".pt", ".pth", ".pt2"):
        return ""
    for ending in (*ENDINGS, ".onnx"):
        if (other := path.with_suffix(ending)).is_file():
            return f"; {shown(other.name)} beside it may be of the same policy"
    return ""


def policy_in(content: bytes, given: Given, path: Path = NO_PATH) -> ForeignPolicy:
    """Return the policy in a file's content.

    path: for formats without a signature of their own, and for files beside it.
    """
    if given.part is not None and path.suffix in (".onnx", *ENDINGS):
        raise UnreadableError("it has outputs with names, and no parts: leave --part out")
    if given.output_name is not None and path.suffix not in (".onnx", *ENDINGS):
        raise UnreadableError("it has no outputs with names: leave --output-name out")
    if content.startswith(ZIP):
        archive = Archive(content)
        if "data" in archive and "policy.pth" in archive:
            given.nothing("Stable-Baselines3 archive")
            return stable_baselines3.policy_in(archive)
        if data_pickle(archive) is not None:
            is_cleanrl = path.suffix == CLEANRL
            document, stated = read_torch_and_pickle(archive)
            if is_exported(document):  # the state_dict() of a module of `rlt export --to pytorch`
                return exported_policy(document, {}, given)
            if stable_baselines3.has_policy(document):
                return stable_baselines3.policy_in_table(document, given, stated)
            return state_dicts.policy_in(document, given, is_cleanrl=is_cleanrl)
        if "data" in archive:
            return sbx.sbx_policy_in(archive, given)
        raise unsupported(b"", archive.names, path.suffix)
    if is_safetensors(content):
        tensors, texts = read_safetensors(content)
        if is_exported(tensors):
            return exported_policy(tensors, texts, given)
        if stable_baselines3.has_policy(tensors):
            return stable_baselines3.policy_in_table(tensors, given)
        return state_dicts.policy_in(tensors, given, keeps_order=False)  # they are sorted
    if path.suffix in ENDINGS:
        given.nothing("description of LEAPP")
        read = partial(content_of, within=path.parent)
        return described_policy(content, path, read, given.output_name)
    if path.suffix == ".onnx":
        given.nothing("model of ONNX")
        return onnx_files.policy_in(content, given.output_name)
    if content.startswith(OLD_FORMAT):
        raise UnreadableError(
            "it is in PyTorch's format from before 1.6: load it and save it again with torch.save"
        )
    raise unsupported(content, (), path.suffix)


def read_normalizer(path: Path, content: bytes) -> list[Stage]:
    """Return the stages of a VecNormalize that was saved beside a policy."""
    try:
        if content.startswith(ZIP):
            raise UnreadableError(
                "it is a zip archive: give what VecNormalize.save() wrote, a .pkl of its own"
            )
        with np.errstate(all="ignore"):
            return stable_baselines3.vec_normalize(content)
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be read as a normalizer: {error}") from None


def arrays_in_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of numpy.savez by their names."""
    content = content_of(path)
    found: dict[str, Array] = {}
    left = MAX_ELEMENTS
    try:
        archive = Archive(content)
        for name in archive.names:
            if name.endswith(".npy"):
                array = npy_array(archive.read(name), left)
                found[name.removesuffix(".npy")] = array
                left -= array.size
        return found
    except UnreadableError as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from None


def npy_array(data: bytes, most: int) -> Array:
    """Return the numbers of a .npy file.

    Raise UnreadableError where it is damaged, or has other values or more than `most`.
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise UnreadableError("an array in it is not in NumPy's format 1.0")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.kind not in "fiub" or len(shape) > MAX_DIMENSIONS:
            raise UnreadableError("an array in it is not of numbers")
        if math.prod(shape) > most:
            raise UnreadableError(f"it has more than {MAX_ELEMENTS:,} numbers")
        numbers = np.frombuffer(data, dtype, math.prod(shape), file.tell())
        return numbers.reshape(shape, order="F" if is_fortran else "C").astype(np.float64)
    except (ValueError, TypeError, OverflowError, SyntaxError, EOFError):
        raise UnreadableError("an array of NumPy's in it is damaged") from None

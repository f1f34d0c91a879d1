"""Foreign files that are damaged, or made to harm: each is read as it is, or refused in one
sentence, soon, and nothing of it is executed."""

from __future__ import annotations

import base64
import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreign_files import FOLDER, needs_onnx
from rltools_host.build import tools
from rltools_host.errors import RltError
from rltools_host.policies.importing import pickles, state_dicts, tensor_files
from rltools_host.policies.importing.network import ForeignPolicy
from rltools_host.policies.importing.onnx_files import GROUP
from rltools_host.policies.importing.pickles import UnreadableError, array_of, read_pickle
from rltools_host.policies.importing.reading import (
    arrays_in_npz,
    policy_in,
    read_foreign,
    read_normalizer,
)
from rltools_host.policies.importing.state_dicts import Given

SAID = Given("relu", "tanh")
FILES = (
    "sb3_ppo.zip",
    "sb3_sac_sde.zip",
    "cleanrl_sac.cleanrl_model",
    "pytorch_gelu.pt",
    "safetensors_silu.safetensors",
    "rl_games.pth",
    "sbx_ppo.zip",
    "onnx_elu.onnx",
    "sb3_dqn_lander.zip",
    "sb3_ppo_two_gears.zip",
    "cleanrl_dqn.cleanrl_model",
    "pytorch_gru.pt",
    "rsl_rl_2_gru.pt",
    "safetensors_gru_cell.safetensors",
    "sb3_recurrent_ppo.zip",
)


def says(file: str) -> Given:
    """What has to be said of a file, so that it is read."""
    if file.startswith("rl_games"):
        return Given("elu")
    return SAID if file.startswith(("pytorch", "safetensors")) else Given()


def reads(file: str, content: bytes) -> ForeignPolicy:
    return read_foreign(Path(file), content, says(file))


def outcome(read: Callable[[], object]) -> str:
    """Empty where it was read; the sentence where it was refused."""
    try:
        read()
    except RltError as error:
        sentence = str(error)
        assert sentence.isprintable()
        assert len(sentence) < 400, sentence
        return sentence
    return ""


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content with some bytes changed, lost, doubled or moved."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8, 40))):
        place = draw.randrange(len(changed))
        what = draw.randrange(5)
        if what == 0:
            changed[place] ^= 1 << draw.randrange(8)
        elif what == 1:
            changed[place] = draw.choice((0, 0xFF, 0x7F, 0x80))
        elif what == 2:
            del changed[place : place + draw.choice((1, 4, 100))]
        elif what == 3:
            changed[place:place] = changed[place : place + draw.choice((1, 4, 100))]
        else:
            changed[place : place + 8] = struct.pack("<Q", draw.choice((2**63, 2**31, 10**9, 1)))
        if not changed:
            break
    return bytes(changed)


def members(content: bytes) -> Iterator[tuple[list[str], bytes]]:
    """Every entry of a zip archive, also of those in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            inner = archive.read(name)
            yield [name], inner
            if inner.startswith(b"PK\x03\x04"):
                for path, deeper in members(inner):
                    yield [name, *path], deeper


def with_member(content: bytes, path: list[str], member: bytes) -> bytes:
    """The archive with another entry, and the checksums that go with it."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as written:
        for name in source.namelist():
            inner = source.read(name)
            if name == path[0]:
                inner = member if len(path) == 1 else with_member(inner, path[1:], member)
            written.writestr(name, inner)
    return target.getvalue()


def damaged_file(content: bytes, draw: random.Random) -> bytes:
    """Damaged as a whole, or within an entry whose checksum is right again."""
    if not content.startswith(b"PK\x03\x04") or draw.random() < 0.2:
        return damaged(content, draw)
    path, member = draw.choice(list(members(content)))
    return with_member(content, path, damaged(member, draw))


# sbx's, whose pickles have 5,000 operations, take eight times as long.
MORE = {**dict.fromkeys(FILES, 200), "sbx_ppo.zip": 100}
MANY = {**dict.fromkeys(FILES, 1400), "sbx_ppo.zip": 600}


@pytest.mark.parametrize(
    ("file", "count"),
    [
        *((file, 20) for file in FILES),
        *(pytest.param(file, count, marks=pytest.mark.all) for file, count in MORE.items()),
        *(
            pytest.param(file, count, marks=[pytest.mark.all, pytest.mark.exhaustive])
            for file, count in MANY.items()
        ),
    ],
)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(file: str, count: int) -> None:
    if file.endswith(".onnx") and not tools.group_is_installed(GROUP):
        pytest.skip(f"the group {GROUP} of packages is not installed")
    content = (FOLDER / file).read_bytes()
    assert outcome(lambda: reads(file, content)) == ""
    draw = random.Random(count)
    sentences = []
    for _ in range(count):
        broken = damaged_file(content, draw)
        sentences.append(outcome(partial(reads, file, broken)))
    refused = [sentence for sentence in sentences if sentence]
    assert len(refused) > count / 10
    assert all(sentence.startswith(f"{file} cannot be imported: ") for sentence in refused)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"model": {"running_mean_std.running_mean": 1}}, "running_mean_std.running_var"),
        ({"fc_mean.weight": 2, "fc_logstd.weight": 2, "action_scale": 1}, "action_bias"),
    ],
)
def test_a_tensor_that_is_missing_is_named(table: dict[str, Any], said: str) -> None:
    def filled(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {name: filled(each) for name, each in entry.items()}
        return np.ones((3,) * entry)

    with pytest.raises(UnreadableError) as refused:
        state_dicts.policy_in(filled(table), Given() if "action_scale" in table else Given("elu"))
    assert f'has no "{said}"' in str(refused.value)


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.all)])
def test_a_damaged_normalizer_is_read_or_refused(count: int) -> None:
    content = (FOLDER / "sb3_ppo_vec_normalize.pkl").read_bytes()
    draw = random.Random(1)
    sentences = []
    for _ in range(count):
        broken = damaged(content, draw)
        sentences.append(outcome(partial(read_normalizer, Path("vec.pkl"), broken)))
    assert sum(map(bool, sentences)) > count / 10


# -- made to harm ----------------------------------------------------------------------------------


class Caller:
    """Whoever unpickles it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.write_text, (self.path, "executed")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_executes_nothing(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "mark"
    data = pickle.dumps({"a": Caller(mark)}, protocol)
    assert read_pickle(data)["a"].arguments[-1] == "executed"
    assert not mark.exists()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    assert outcome(lambda: reads("pytorch.pt", target.getvalue()))
    serialized = base64.b64encode(data).decode()
    content = (FOLDER / "sb3_ppo.zip").read_bytes()
    spaces = json.dumps({"observation_space": {":serialized:": serialized}}).encode()
    outcome(lambda: reads("sb3.zip", with_member(content, ["data"], spaces)))
    outcome(lambda: read_normalizer(Path("vec.pkl"), data))
    assert not mark.exists()


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i2", "<f4"])
def test_arrays_of_either_byte_order_are_the_same_numbers(kind: str) -> None:
    values = np.array([[-3, 1, 2], [4, 5, 300]], kind)
    for protocol in (2, 5):
        read = array_of(read_pickle(pickle.dumps(values, protocol)))
        np.testing.assert_array_equal(read, values)


def test_the_pickles_opcodes_are_those_of_pickle() -> None:
    """Plain values of every protocol come back as they are."""
    values = {
        "numbers": [1, -1, 300, 70000, 2**40, -(2**80), 0.5, True, False, None],
        "texts": ["", "é", "x" * 300],
        "bytes": [b"", b"x" * 300],
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "nested": {"a": {"b": [[], {}]}},
    }
    for protocol in range(2, 6):
        assert read_pickle(pickle.dumps(values, protocol))["numbers"] == values["numbers"]
        read = read_pickle(pickle.dumps(values, protocol))
        assert {key: read[key] for key in ("texts", "tuples", "nested")} == {
            key: values[key] for key in ("texts", "tuples", "nested")
        }


def zipped(*entries: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return target.getvalue()


def deep(levels: int) -> bytes:
    return b"\x80\x02" + b"(" * levels + b"l" * levels + b"."


def laughs(levels: int) -> bytes:
    """Lists of ten times the same list."""
    data = b"\x80\x02]q\x00"
    for level in range(levels):
        data += b"]q" + bytes([level + 1]) + b"(" + b"h" + bytes([level]) * 1
        data += (b"h" + bytes([level])) * 9 + b"e"
    return data + b"."


def tensor(size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0) -> bytes:
    """A pickle that names a tensor on a storage of four floats."""

    class Storage:
        pass

    class Tensor:
        def __reduce__(self) -> Any:
            return dict, (storage, offset, size, stride, False, {})

    storage = Storage()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return ("storage", float, "0", "cpu", 4) if value is storage else None

    target = io.BytesIO()
    Pickler(target, 2).dump({"0.weight": Tensor()})
    data = target.getvalue().replace(
        b"c__builtin__\ndict\n", b"ctorch._utils\n_rebuild_tensor_v2\n"
    )
    return data.replace(b"c__builtin__\nfloat\n", b"ctorch\nFloatStorage\n")


def torch_file(data: bytes) -> bytes:
    return zipped(("a/data.pkl", data), ("a/data/0", np.ones(4, "<f4").tobytes()))


def safetensors(header: dict[str, Any], payload: bytes = bytes(16)) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


SQUARE = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
HARMFUL = {
    "empty": b"",
    "text": b"import os",
    "zip of nothing": zipped(("a", b"")),
    "no data.pkl": zipped(("a/b/data.pkl", b"")),
    "names that leave the folder": zipped(("../../data.pkl", b"x"), ("/etc/passwd", b"x")),
    "deep pickle": torch_file(deep(200_000)),
    "laughing pickle": torch_file(laughs(12)),
    "negative stride": torch_file(tensor((2, 2), (-1, 1))),
    "huge tensor": torch_file(tensor((10**9, 10**9), (0, 0))),
    "repeated storage": torch_file(tensor((10_000, 4), (0, 1))),
    "tensor beyond its storage": torch_file(tensor((2, 2), (2, 1), 1)),
    "huge offset": torch_file(tensor((2, 2), (2, 1), 2**62)),
    "many dimensions": torch_file(tensor((1,) * 40, (1,) * 40)),
    "no storage": zipped(("a/data.pkl", tensor((2, 2), (2, 1)))),
    "TorchScript": zipped(("a/data.pkl", b"."), ("a/constants.pkl", b"."), ("a/code/x.py", b"")),
    "old PyTorch": tensor_files.OLD_FORMAT + bytes(100),
    "huge header": struct.pack("<Q", 10**7) + b"{" + bytes(10),
    "header of lists": struct.pack("<Q", 2000) + b"{" + b"[" * 1999,
    "overlapping": safetensors(
        {
            f"{i}.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
            for i in range(9)
        }
    ),
    "huge shape": safetensors(
        {"0.weight": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 16]}}
    ),
    "negative place": safetensors(
        {"0.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [-16, 0]}}
    ),
    "not finite": safetensors(
        {"0.weight": SQUARE},
        np.array([1, np.inf, 0, 0], "<f4").tobytes(),
    ),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_harmful_file_is_refused(name: str) -> None:
    sentence = outcome(lambda: read_foreign(Path("x.pt"), HARMFUL[name], SAID))
    assert sentence.startswith("x.pt cannot be imported: "), name


def test_a_tensor_of_the_test_is_read() -> None:
    """Else the refusals above would prove nothing."""
    content = torch_file(tensor((2, 2), (2, 1)))
    assert policy_in(content, SAID).observation_dim == 2


def test_an_archive_that_grows_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "MAX_ENTRY_BYTES", 100_000)
    bomb = zipped(("a/data.pkl", bytes(10_000_000)))
    assert len(bomb) < 20_000
    with pytest.raises(UnreadableError, match="unpacks to more than"):
        policy_in(bomb, SAID)
    many = zipped(*((f"a/{i}", b"") for i in range(tensor_files.MAX_ENTRIES + 1)))
    with pytest.raises(UnreadableError, match="more than 10,000 entries"):
        policy_in(many, SAID)
    monkeypatch.setattr(tensor_files, "MAX_BYTES", 250_000)
    archive = tensor_files.Archive(zipped(*((f"a/{i}", bytes(100_000)) for i in range(3))))
    assert [len(archive.read(f"a/{i}")) for i in range(2)] == [100_000] * 2
    with pytest.raises(UnreadableError, match="250,000 in all"):
        archive.read("a/2")


def test_a_pickles_length_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MAX_OPCODES", 1000)
    with pytest.raises(UnreadableError, match="more than 1,000 operations"):
        read_pickle(b"\x80\x02" + b"N0" * 600 + b"N.")


def test_whole_numbers_whose_hashes_collide_are_no_keys() -> None:
    keys = {number * (2**61 - 1): 1 for number in range(1, 50)}
    assert read_pickle(pickle.dumps({**keys, "a": 2}, 4)) == {"a": 2}


def test_recorded_arrays_are_read_without_unpickling(tmp_path: Path) -> None:
    path, mark = tmp_path / "recorded.npz", tmp_path / "mark"
    np.savez(path, observations=np.array([Caller(mark)], object))
    assert "cannot be read" in outcome(lambda: arrays_in_npz(path))
    assert not mark.exists()
    np.savez(path, observations=np.ones((3, 2), np.float32))
    assert arrays_in_npz(path)["observations"].shape == (3, 2)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    huge = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    path.write_bytes(zipped(("observations.npy", huge)))
    assert "cannot be read" in outcome(lambda: arrays_in_npz(path))


LEAPP = (FOLDER / "leapp.yaml").read_text()
LAUGHS = (
    "["
    + ", ".join(f"&a{i} [{', '.join([f'*a{i - 1}'] * 9 if i else ['lol'])}]" for i in range(12))
    + "]"
)
DESCRIPTIONS = {
    "no YAML": ("models:", "models: ["),
    "something else": ("models:", "nothing:"),
    "a path": ("leapp.onnx", "../foreign/leapp.onnx"),
    "an absolute path": ("leapp.onnx", "/etc/leapp.onnx"),
    "another file": ("leapp.onnx", "onnx_elu.onnx"),
    "no such file": ("leapp.onnx", "nothing.onnx"),
    "another backend": ("backend: onnx", "backend: jit"),
    "feedback": ("feedback_flow: {}", "feedback_flow: {policy: {memory: policy.memory}}"),
    "two models": ("models:\n", "models:\n  other: {}\n"),
    "another input": ("name: rate", "name: rates"),
    "a name twice": ("name: rate", "name: position"),
    "no name": ("name: rate", "name: [rate]"),
    "no vector": (
        "shape: [4]\n      type: tensor\n    - name: rate",
        "shape: [2, 2]\n    - name: rate",
    ),
    "another width": ("- name: rate", "- {name: x, shape: [2]}\n    - name: rate"),
    "no shape": (
        "shape: [4]\n      type: tensor\n    - name: rate",
        "shape: []\n    - name: rate",
    ),
    "a list in itself": ("- name: rate\n", "- name: rate\n      units: &a [*a]\n"),
    "a list without an end": ("- name: rate\n", f"- name: rate\n      units: {LAUGHS}\n"),
    "another number of units": ("- name: rate\n", "- name: rate\n      units: [m, m]\n"),
    "a minimum that is none": ("- name: rate\n", "- name: rate\n      minimum: .nan\n"),
    "a long number": ("- name: rate\n", f"- name: rate\n      maximum: 0x{'f' * 9999}\n"),
    "other elements": ("- name: rate\n", "- name: rate\n      element_names: [[x, y]]\n"),
    "no outputs": ("outputs:\n    - name: action", "outputs: []\n    x:\n    - name: action"),
    "no rate": ("pipeline:\n", "pipeline:\n  configs: {frequency: 1e999}\n"),
    "an object": ("models:", "models: !!python/object/apply:os.system [touch mark]\nx:"),
}


@needs_onnx
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_names_nothing_but_a_model_beside_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, behind = DESCRIPTIONS[name]
    assert LEAPP.count(before) == 1
    path = FOLDER / "damaged.yaml"
    changed = LEAPP.replace(before, behind).encode()
    assert outcome(lambda: read_foreign(path, changed, Given()))
    assert not (tmp_path / "mark").exists()


@needs_onnx
def test_a_models_file_is_not_a_link_to_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "leapp.yaml"
    path.write_text(LEAPP)
    (tmp_path / "leapp.onnx").symlink_to(FOLDER / "leapp.onnx")
    said = outcome(lambda: read_foreign(path, path.read_bytes(), Given()))
    assert f"leapp.onnx cannot be read: a link leads out of {tmp_path}, copy" in said


def test_tensors_come_in_one_order() -> None:
    """The package has them in another one each time."""
    begins = {name: 4 * index for index, name in enumerate("hgfedcba")}
    header = {
        name: {"dtype": "F32", "shape": [1], "data_offsets": [begin, begin + 4]}
        for name, begin in begins.items()
    }
    tensors, texts = tensor_files.read_safetensors(safetensors(header, bytes(32)))
    assert (list(tensors), texts) == (list("abcdefgh"), {})

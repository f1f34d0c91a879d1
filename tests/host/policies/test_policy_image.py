"""The host's reader of policy images, against what the core writes and what boards read."""

from __future__ import annotations

import ctypes
import json
import math
import struct
import zlib
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_files import FOLDER as FOREIGN
from policy_run import make_policy_run
from policy_samples import NETWORKS, patched, sample_images, with_crc32
from rltools_host.build.native import host_library
from rltools_host.commands import cli
from rltools_host.errors import DamagedFileError, RefusedError, RltError
from rltools_host.policies import image as image_module
from rltools_host.policies.contract import ENTRY_AT_REST, EntryEnvelope
from rltools_host.policies.core import REASONS
from rltools_host.policies.image import DamagedPolicyError, parse_policy, read_policy
from rltools_host.policies.image_writing import with_entry
from rltools_host.runs.saves import (
    state_of_policy,
)

HEADER_BYTES = 144
PENDULUM_CHANNELS = HEADER_BYTES + 3 * 8
PENDULUM_PARAMETERS = PENDULUM_CHANNELS + 4 * 48
PENDULUM_EXAMPLES = PENDULUM_PARAMETERS + 4 * 4481


def reason_of_reader(image: bytes) -> str:
    try:
        parse_policy(image)
    except DamagedPolicyError as error:
        return error.reason
    return "accepted"


def reason_of_board(image: bytes) -> str:
    native = host_library("policy")
    memory = np.frombuffer(image, np.uint8).copy()
    policy = ctypes.create_string_buffer(native.description["object_bytes"])
    where = ctypes.c_uint32()
    reason = native.functions.rlt_policy_open(
        memory.ctypes.data, memory.size, policy, ctypes.byref(where)
    )
    return REASONS[reason]


def test_an_untrained_pendulum_policy_reads_as_documented() -> None:
    image = parse_policy(sample_images()["pendulum"])
    assert image.experiment == "pendulum-td3"
    assert image.environment == "Pendulum-v1"
    assert (image.step, image.seed, image.step_interval_us) == (0, 0, 50_000)
    assert image.state_sha256 == bytes([*range(31), 255]).hex()
    assert [channel.name for channel in image.observations] == [
        "cos_angle",
        "sin_angle",
        "velocity",
    ]
    assert image.actions == (image_module.Channel("torque", "N*m", -2.0, 2.0),)
    assert image.shape == "3-64-64-1"
    assert image.parameter_count == 4481
    assert [layer.activation for layer in image.layers] == ["relu", "relu", "tanh"]
    assert image.normalizer is None
    assert len(image.examples) == 8
    image.verify()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_activation_is_reproduced_and_agrees_with_double_precision(name: str) -> None:
    image = parse_policy(sample_images()[name])
    image.verify()
    assert image.normalizer is not None
    mean, inverse_std = image.normalizer
    for example in image.examples:
        values = (example.observation.astype(float) - mean) * inverse_std
        for layer in image.layers:
            values = activation(layer.activation, values @ layer.weights + layer.bias)
        np.testing.assert_allclose(example.output, values, rtol=2e-4, atol=2e-5)
        np.testing.assert_array_equal(image.output(example.observation), example.output)
        np.testing.assert_array_equal(image.evaluate(example.observation), example.action)


def test_choices_are_read_by_their_names() -> None:
    image = parse_policy(sample_images()["choosing"])
    gear, torque, horn = image.actions
    assert (gear.choices, gear.minimum, gear.maximum) == (("low", "middle", "high"), 0, 2)
    assert (torque.choices, torque.unit) == ((), "N*m")
    assert horn.choices == ("off", "on")
    assert str(gear) == '"gear", a choice of low, middle, high'
    assert image.shape == "5-9-6"
    image.verify()
    observations = np.array([example.observation for example in image.examples])
    outputs, actions = image.output(observations), image.evaluate(observations)
    np.testing.assert_array_equal(actions[:, 0], outputs[:, :3].argmax(axis=1))
    np.testing.assert_array_equal(actions[:, 2], outputs[:, 4:].argmax(axis=1))
    assert {*actions[:, 0]} <= {0, 1, 2}
    np.testing.assert_array_equal(outputs, [example.output for example in image.examples])
    # Without a finite observation: of a contract that is none of the core's, the first choices.
    assert image.evaluate(np.full(5, math.nan)).tolist() == [0, 0.25, 0]
    assert image.contract.checksum != replace(image.contract, actions=(gear, torque)).checksum
    other = replace(gear, unit="low|middle|highest")
    assert (
        image.contract.checksum != replace(image.contract, actions=(other, torque, horn)).checksum
    )


def activation(name: str, x: np.ndarray) -> np.ndarray:
    functions = {
        "identity": lambda v: v,
        "relu": lambda v: max(v, 0.0),
        "gelu": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
        "tanh": math.tanh,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "softplus": lambda v: max(v, 0.0) + math.log1p(math.exp(-abs(v))),
        "elu": lambda v: v if v > 0 else math.expm1(v),
        "silu": lambda v: v / (1 + math.exp(-v)),
        "hardtanh": lambda v: min(max(v, -1.0), 1.0),
    }
    return np.array([functions[name](value) for value in x])


def test_the_trace_is_the_checksum_of_all_layers_outputs() -> None:
    """With exact fused multiply-adds in rational arithmetic, independent of the core's code."""
    image = parse_policy(sample_images()["relu"])
    assert image.normalizer is not None
    for example in image.examples[:2]:
        values = (example.observation - image.normalizer[0]) * image.normalizer[1]
        trace = 0
        for layer in image.layers:
            values = np.maximum(exact_dense(values, layer.weights, layer.bias), np.float32(0))
            trace = zlib.crc32(values.tobytes(), trace)
        assert trace == example.trace
        assert values.tobytes() == example.output.tobytes()


def exact_dense(inputs: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    sums = []
    for output in range(bias.size):
        total = np.float32(bias[output])
        for value, weight in zip(inputs, weights[:, output], strict=True):
            total = fused_multiply_add(value, weight, total)
        sums.append(total)
    return np.array(sums, np.float32)


def fused_multiply_add(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """a b + c rounded once: exact product, sum rounded to odd in double, then to float."""
    product = float(a) * float(b)
    total = product + float(c)
    virtual = total - product
    error = (product - (total - virtual)) + (float(c) - virtual)
    (bits,) = struct.unpack("<q", struct.pack("<d", total))
    if error != 0 and bits & 1 == 0:
        bits += 1 if (error > 0) == (total > 0) else -1
    return np.float32(struct.unpack("<d", struct.pack("<q", bits))[0])


@pytest.mark.parametrize("shape", [(4,), (5, 2)])
def test_observations_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    image = parse_policy(sample_images()["pendulum"])
    with pytest.raises(RltError, match="takes 3 observations"):
        image.evaluate(np.zeros(shape))


DAMAGE = {
    "too_short": lambda image: image[:143],
    "bad_magic": lambda image: patched(image, 0, "4s", b"RLTC"),
    "unknown_version": lambda image: patched(image, 4, "H", 3),
    "wrong_size": lambda image: image[:-4],
    "wrong_crc": lambda image: image[:5000] + bytes([image[5000] ^ 4]) + image[5001:],
    "malformed": lambda image: patched(image, 18, "H", 2),
    "not_finite": lambda image: patched(image, PENDULUM_PARAMETERS + 400, "f", math.nan),
}


def test_damage_is_named(tmp_path: Path) -> None:
    image = sample_images()["pendulum"]
    for reason, damage in DAMAGE.items():
        assert reason_of_reader(damage(image)) == reason_of_board(damage(image)) == reason
    path = tmp_path / "policy.rltp"
    path.write_bytes(DAMAGE["wrong_crc"](image))
    with pytest.raises(DamagedFileError, match=r"policy\.rltp: not a usable policy.*wrong_crc"):
        read_policy(path)


def test_an_image_that_computes_other_bits_is_refused() -> None:
    original = sample_images()["pendulum"]
    (weight,) = struct.unpack_from("<f", original, PENDULUM_PARAMETERS)
    changed = np.nextafter(np.float32(weight), np.float32(1))
    image = parse_policy(patched(original, PENDULUM_PARAMETERS, "f", changed), "policy.rltp")
    with pytest.raises(RefusedError, match=r"policy\.rltp: example \d gives other bits") as caught:
        image.verify()
    assert caught.value.exit_code == 6


def test_state_of_an_image_without_numpy() -> None:
    """Training reads the header alone; what is damaged has no state."""
    image = sample_images()["pendulum"]
    assert state_of_policy(image) == parse_policy(image).state_sha256
    for reason in ("too_short", "bad_magic", "wrong_size", "wrong_crc"):
        assert state_of_policy(DAMAGE[reason](image)) is None
    for place in (*range(HEADER_BYTES), len(image) - 1):
        damaged = image[:place] + bytes([image[place] ^ 1]) + image[place + 1 :]
        assert state_of_policy(damaged) is None


@pytest.mark.all
def test_a_file_of_an_older_writer_is_read_proven_and_pushed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 25 November 2026, when there was format 1 only."""
    data = (FOREIGN / "quadrotor.rltp").read_bytes()
    assert struct.unpack_from("<H", data, 4) == (1,)
    parse_policy(data).verify()
    assert reason_of_board(data) == "accepted"
    run = make_policy_run(tmp_path / "run", data)
    stated = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**stated, "contract": "quadrotor"}))
    assert cli.run(["push", str(run), "--board", "host", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["activated"]


@settings(max_examples=400)
@given(data=st.data())
def test_reader_and_board_refuse_for_the_same_reason(data: st.DataObject) -> None:
    """Any change, with its checksum made to match, so that the tables themselves are tested."""
    recurrent = ["recurrent_pendulum", "recurrent_quadrotor", "lstm_quadrotor"]
    names = ["pendulum", "choosing", *recurrent, *NETWORKS]
    sample = sample_images()[data.draw(st.sampled_from(names))]
    if data.draw(st.booleans()):
        sample = with_entry(parse_policy(sample), ENTRY_AT_REST).data
    image = bytearray(sample)
    tables_bytes = HEADER_BYTES + 8 * 4 + 48 * 7
    for _ in range(data.draw(st.integers(1, 3))):
        limit = data.draw(st.sampled_from([HEADER_BYTES, tables_bytes, len(image)]))
        offset = data.draw(st.integers(0, limit - 1))
        if offset in range(12, 16):
            continue
        interesting = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
        image[offset] = data.draw(st.one_of(interesting, st.integers(0, 255)))
    changed = with_crc32(bytes(image))
    assert reason_of_reader(changed) == reason_of_board(changed)


@settings(max_examples=100)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_refused(noise: bytes) -> None:
    assert reason_of_reader(noise) == reason_of_board(noise) != "accepted"


def rebuilt(image: bytes, changes: dict[int, tuple[str, int]], place: int, more: int) -> bytes:
    """With other fields, and so many bytes more (zeros) or fewer at a place; its size fits them."""
    tail = image[place:] if more >= 0 else image[place - more :]
    changed = bytearray(image[:place] + bytes(max(more, 0)) + tail)
    for offset, (layout, value) in {**changes, 8: ("I", len(changed))}.items():
        struct.pack_into(f"<{layout}", changed, offset, value)
    return with_crc32(bytes(changed))


LAYER_BYTES = 8
CHOICES = HEADER_BYTES + 2 * LAYER_BYTES + 8 * 48  # of "choosing"
# Sample, fields that change, and where bytes are put in or left out.
MALFORMED: dict[str, tuple[str, dict[int, tuple[str, int]], int, int]] = {
    "unknown flag": ("relu", {24: ("I", 0x41)}, 0, 0),
    "no envelope where there is to be one": ("relu", {24: ("I", 5)}, 0, 0),
    "a bound below zero": (
        "pendulum",
        {24: ("I", 4), PENDULUM_PARAMETERS + 4: ("f", -1e-9)},
        PENDULUM_PARAMETERS,
        24,
    ),
    "an envelope's reserved word": (
        "pendulum",
        {24: ("I", 4), PENDULUM_PARAMETERS + 20: ("I", 1)},
        PENDULUM_PARAMETERS,
        24,
    ),
    "choices where none is": ("relu", {24: ("I", 3)}, 0, 0),
    "no choices where some are": ("choosing", {24: ("I", 1)}, 0, 0),
    "a bar in a unit": ("pendulum", {PENDULUM_CHANNELS + 24: ("B", ord("|"))}, 0, 0),
    "a bar in a choice": ("choosing", {CHOICES: ("B", ord("|"))}, 0, 0),
    "a choice without a name": (
        "choosing",
        {CHOICES + 24 + 2 * i: ("H", 0) for i in range(12)},
        0,
        0,
    ),
    "a choice less": ("choosing", {}, CHOICES, -24),
    "a choice more": ("choosing", {}, CHOICES, 24),
    "reserved word": ("pendulum", {44: ("I", 1)}, 0, 0),
    "no examples": ("pendulum", {22: ("H", 0)}, PENDULUM_EXAMPLES, -8 * 4 * (3 + 1 + 2)),
    "layer wider than the one before": (
        "pendulum",
        {HEADER_BYTES + 2 * LAYER_BYTES: ("H", 128)},
        PENDULUM_EXAMPLES,
        4 * 64,
    ),
    "layer wider than the actions": (
        "pendulum",
        {HEADER_BYTES + 2 * LAYER_BYTES + 2: ("H", 2)},
        PENDULUM_EXAMPLES,
        4 * 65,
    ),
    "unknown activation": ("pendulum", {HEADER_BYTES + 4: ("B", 99)}, 0, 0),
    "reserved byte of a layer": ("pendulum", {HEADER_BYTES + 7: ("B", 1)}, 0, 0),
    "layer without outputs": (
        "pendulum",
        {HEADER_BYTES + 2: ("H", 0), HEADER_BYTES + LAYER_BYTES: ("H", 0)},
        PENDULUM_PARAMETERS,
        -4 * (4 * 64 + 64 * 64),
    ),
    "bytes behind the examples": ("pendulum", {}, PENDULUM_EXAMPLES, 4),
    "bytes missing": ("pendulum", {}, PENDULUM_EXAMPLES, -4),
    "bytes behind a text": ("pendulum", {80 + 31: ("B", 1)}, 0, 0),
    "empty text": ("pendulum", {80 + 8 * i: ("Q", 0) for i in range(4)}, 0, 0),
    "text without an end": (
        "pendulum",
        {80 + 8 * i: ("Q", int.from_bytes(b"8 bytes!", "little")) for i in range(4)},
        0,
        0,
    ),
}


NOT_FINITE_PLACES = (PENDULUM_CHANNELS + 40, PENDULUM_PARAMETERS, PENDULUM_EXAMPLES)
PATCHED: tuple[tuple[int, str, tuple[float, ...], str], ...] = (
    *(
        (place, "I", (bits,), "not_finite")
        for place in NOT_FINITE_PLACES
        for bits in (0x7FC00000, 0x7F800000, 0xFF800000)
    ),
    (PENDULUM_CHANNELS + 24, "15s", (b"choice",), "accepted"),  # of an observation: a unit
    *((28, "I", (us,), "malformed") for us in (0, 600_000_001, 2**31, 2**32 - 1)),
    (28, "I", (600_000_000,), "accepted"),  # the longest step
    *((PENDULUM_CHANNELS + 40, "ff", (2.0, end), "malformed") for end in (2.0, -2.0)),
    (PENDULUM_CHANNELS + 40, "ff", (-3e38, 3e38), "not_finite"),  # their difference
)


def test_each_rule_is_kept_by_reader_and_board() -> None:
    """One rule is broken, all others are kept."""
    samples = sample_images()
    cases = {
        fault: (rebuilt(samples[name], fields, place, more), "malformed")
        for fault, (name, fields, place, more) in MALFORMED.items()
    }
    for offset, layout, values, reason in PATCHED:
        image = patched(samples["pendulum"], offset, layout, *values)
        cases[f"{values} at {offset}"] = image, reason
    # As many layers as there is room for fit each other; the header counts more.
    layers = samples["pendulum"][:HEADER_BYTES] + 10 * struct.pack("<HHB3x", 3, 3, 1)
    cases["tables too long"] = rebuilt(layers, {20: ("H", 11)}, HEADER_BYTES, 0), "malformed"
    for value in (math.nan, math.inf):
        entry = {24: ("I", 4), PENDULUM_PARAMETERS + 16: ("f", value)}
        image = rebuilt(samples["pendulum"], entry, PENDULUM_PARAMETERS, 24)
        cases[f"a bound of {value}"] = image, "not_finite"
    for fault, (image, reason) in cases.items():
        assert reason_of_reader(image) == reason_of_board(image) == reason, fault


@pytest.mark.parametrize("name", ["choosing", "recurrent_quadrotor"])
def test_an_image_gets_what_its_policy_may_be_handed_and_stays_what_it_is(name: str) -> None:
    image = parse_policy(sample_images()[name])
    assert image.entry is None
    entry = EntryEnvelope(5.5, 2.25, float(np.float32(0.7)), 0.0, 1.75)
    stated = with_entry(image, entry)
    assert stated.entry == entry
    assert len(stated.data) == len(image.data) + 24
    stated.verify()  # the same examples, bit for bit
    assert (stated.state_sha256, stated.inputs) == (image.state_sha256, image.inputs)
    assert stated.contract.checksum == image.contract.checksum
    assert reason_of_board(stated.data) == "accepted"
    assert with_entry(stated, entry).data == stated.data
    assert with_entry(stated, ENTRY_AT_REST).entry == rounded(ENTRY_AT_REST)
    # All that is not the envelope is there, byte by byte, but for flags, length and checksum.
    place = stated.data.index(entry.record)
    left = bytearray(stated.data[:place] + stated.data[place + 24 :])
    left[8:16], left[24:28] = image.data[8:16], image.data[24:28]
    assert bytes(left) == image.data


def rounded(entry: EntryEnvelope) -> EntryEnvelope:
    return EntryEnvelope(*map(float, np.float32(astuple(entry))))

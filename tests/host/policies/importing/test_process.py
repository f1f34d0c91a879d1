"""Small files made to take memory and time: read in a process of their own, each ends soon, in
little memory, and in one sentence."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import hostile_files
from foreign_files import FOLDER
from rltools_host import confined
from rltools_host.build import tools
from rltools_host.confined import Limits
from rltools_host.errors import DamagedFileError, EnvironmentFaultError
from rltools_host.policies.importing import process
from rltools_host.policies.importing.onnx_files import GROUP
from rltools_host.policies.importing.process import Found, read_files
from rltools_host.policies.importing.state_dicts import Given

SAID = Given("relu", "tanh")
MEGABYTES, SECONDS = 400, 20  # of a process, beside 2,600 MB and hours


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The most memory of each process, in MB; none takes more than it may."""
    found: list[float] = []

    def measured(child: subprocess.Popen[bytes]) -> None:
        if child.returncode is None:
            os.kill(child.pid, signal.SIGKILL)  # child.kill() would wait for it if it has ended
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            found.append(usage.ru_maxrss / 1000)
            assert usage.ru_utime + usage.ru_stime < SECONDS

    monkeypatch.setattr(confined, "kill_child", measured)
    yield found
    # Until it is another program, a process has the memory of the one that starts it.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    assert max(found, default=0) < max(MEGABYTES, own + 1)


def read(tmp_path: Path, name: str, make: Callable[[], bytes]) -> Found:
    path = tmp_path / name
    if path.suffix in (".onnx", ".yaml") and not tools.group_is_installed(GROUP):
        pytest.skip(f"the group {GROUP} of packages is not installed")
    path.write_bytes(make())
    return read_files(path, SAID if path.suffix == ".safetensors" else Given())


@pytest.mark.parametrize(
    ("name", "make", "sentence"),
    [
        ("overlap.safetensors", hostile_files.overlapping, "its tensors overlap"),
        ("factors.safetensors", hostile_files.many_factors, "Expected `array` of length <= 8"),
        ("products.onnx", hostile_files.many_products, "more than 50,000,000 numbers"),
        ("packed.onnx", hostile_files.packed_numbers("INT4"), "a type that is not supported"),
        pytest.param(
            *("missing.onnx", hostile_files.packed_numbers("FLOAT"), "is damaged"),
            marks=pytest.mark.all,
        ),
        ("merged.yaml", hostile_files.merged_tables, "it has a table with <<"),
        ("base_60.yaml", hostile_files.base_60, "its models is not a table"),
    ],
)
def test_a_small_file_takes_little(
    name: str, make: Callable[[], bytes], sentence: str, peaks: list[float], tmp_path: Path
) -> None:
    with pytest.raises(DamagedFileError) as refused:
        read(tmp_path, name, make)
    assert str(refused.value).startswith(f"{tmp_path / name} cannot be imported: ")
    assert sentence in str(refused.value)
    assert peaks


@pytest.mark.parametrize("make", [hostile_files.shared_lists, hostile_files.nested_bytes])
def test_a_small_normalizer_takes_little(
    make: Callable[[], bytes], peaks: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "vec.pkl"
    path.write_bytes(make())
    with pytest.raises(DamagedFileError, match="has no bytes"):
        read_files(FOLDER / "sb3_sac.zip", Given(), path)
    assert peaks


@pytest.mark.parametrize(
    "make",
    [pytest.param(hostile_files.loop_beside, marks=pytest.mark.all), hostile_files.large_beside],
)
def test_what_an_action_does_not_need_is_not_computed(
    make: Callable[[], bytes], peaks: list[float], tmp_path: Path
) -> None:
    reference = read(tmp_path, "beside.onnx", make).policy.reference
    assert reference is not None
    np.testing.assert_allclose(reference(np.ones((2, 3), np.float32)), 0.3, rtol=1e-6)
    assert peaks


# -- what no reader refuses in time ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(memory_bytes=300_000_000), "that takes more than 300 MB of memory"),
        (Limits(processor_s=1), "that takes more than 1 s of a processor"),
        pytest.param(Limits(wall_s=1), "that takes more than 1 s;", marks=pytest.mark.all),
    ],
)
def test_a_process_that_takes_too_much_is_ended(
    limits: Limits, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "LIMITS", limits)
    path = tmp_path / "slow.yaml"
    with pytest.raises(DamagedFileError) as refused:
        read(tmp_path, path.name, hostile_files.slow_yaml)
    assert str(refused.value) == f"{path} cannot be read: {sentence.rstrip(';')}; {process.REMEDY}"


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    path = FOLDER / "sb3_ppo.zip"
    for limits in (Limits(numbers=100), Limits(text_bytes=100)):
        monkeypatch.setattr(confined, "LIMITS", limits)
        with pytest.raises(
            DamagedFileError, match=r"it has more than .* numbers, or too much text"
        ):
            read_files(path, Given())


def test_a_process_that_does_not_begin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PROGRAM", "rltools_host.no_such_program")
    with pytest.raises(EnvironmentFaultError, match=r"did not begin: .*no_such_program"):
        read_files(FOLDER / "sb3_ppo.zip", Given())

"""The file that is an emulated board's flash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rltools_host.boards import board_link as storage_module
from rltools_host.boards.board_link import StorageFile, create
from rltools_host.build.boards import load_board
from rltools_host.errors import DiskError, PortError, UsageError

BOARD = load_board("qemu-esp32c3")
BYTES = 32 * 1024 * 1024


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "PATIENCE_S", 0.1)


def test_a_new_file_is_erased_flash_and_an_old_one_is_left(tmp_path: Path) -> None:
    file = tmp_path / "flash"
    StorageFile(BOARD, file).close()
    assert file.read_bytes() == b"\xff" * BYTES
    with file.open("r+b") as content:
        content.write(b"policy")
    StorageFile(BOARD, file).close()
    assert file.read_bytes()[:7] == b"policy\xff"
    assert [path.name for path in tmp_path.iterdir()] == ["flash"]


def test_qemu_is_given_the_whole_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = StorageFile(BOARD, Path("one, two"))
    storage.close()
    assert storage.arguments == [
        "-drive",
        f"if=pflash,unit=1,format=raw,file={tmp_path}/one,, two",
    ]


def test_one_at_a_time_has_the_file(tmp_path: Path) -> None:
    first = StorageFile(BOARD, tmp_path / "flash")
    with pytest.raises(PortError, match="flash is in use by another board: end that one, or"):
        StorageFile(BOARD, tmp_path / "flash")
    first.close()
    StorageFile(BOARD, tmp_path / "flash").close()


def test_a_file_of_another_size_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "flash"
    file.write_bytes(b"something else")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):  # the first leaves no lock
        with pytest.raises(
            UsageError, match=r"not a storage of qemu-esp32c3: it has 14 bytes, not"
        ):
            StorageFile(BOARD, file)
    assert file.read_bytes() == b"something else"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_another_process_makes_meanwhile_is_left(tmp_path: Path) -> None:
    file = tmp_path / "flash"
    file.write_bytes(b"the other's")
    create(file, b"ours")
    assert file.read_bytes() == b"the other's"
    assert [path.name for path in tmp_path.iterdir()] == ["flash"]


def test_a_copy_has_no_name_and_is_of_a_file_that_nobody_has(tmp_path: Path) -> None:
    file = tmp_path / "flash"
    file.write_bytes(b"policies")
    with storage_module.copied(file) as copy:
        assert copy.read_bytes() == b"policies"
        assert copy.parent == Path(f"/proc/{os.getpid()}/fd")
        copy.write_bytes(b"other")
        with storage_module.copied(file) as another:  # two may read it
            assert another.read_bytes() == b"policies"
    assert not copy.exists()
    assert file.read_bytes() == b"policies"
    assert [path.name for path in tmp_path.iterdir()] == ["flash"]
    with file.open("rb") as held:
        storage_module.lock(held.fileno(), file)
        with (
            pytest.raises(PortError, match="is in use by another board"),
            storage_module.copied(file),
        ):
            pass
    with pytest.raises(DiskError, match="No such file"), storage_module.copied(tmp_path / "none"):
        pass

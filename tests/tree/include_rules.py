"""Who may include whom (docs/design.md), as a function from a tree to its violations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>|(\w+))', re.MULTILINE)

LIBRARY_LAYERS = {
    "core": {"core"},
    "nn": {"core", "nn"},
    "policy": {"core", "nn", "policy"},
    "rl": {"core", "nn", "policy", "rl"},
    "kernels": {"core", "nn", "kernels"},
    "devices": {"core", "nn", "kernels"},
    "block": {"core", "nn", "rl", "kernels"},
    "experiments": {"core", "nn", "policy", "rl"},
    "app": {"core", "nn", "rl", "policy"},
}
# Folders of firmware/: what a file of each may include of firmware/.
FIRMWARE_LAYERS = {
    "app/link": {"app/link", "board_api.h"},
    "app/services": {"app/link", "app/services", "board_api.h"},
    "app/train": {"app/link", "app/services", "app/train", "board_api.h"},
    "app/infer": {"app/link", "app/services", "app/infer", "board_api.h"},
    "processors": {"processors", "board_api.h"},
}
# What some of them never reach of the library, not even behind another header.
UNREACHABLE_LAYERS = {"app/link": {"nn", "policy", "rl"}, "app/infer": {"rl"}}
# What the core may use of the C++17 standard library: no streams, no containers.
STANDARD_HEADERS = {
    *("algorithm", "array", "cfloat", "cinttypes", "climits", "cmath", "cstddef", "cstdint"),
    *("cstring", "limits", "tuple", "type_traits", "utility"),
}
INSTRUCTION_SET_HEADERS = {
    "immintrin.h",
    "arm_neon.h",
    "arm_acle.h",
    "wasm_simd128.h",
}  # in kernels only
THREAD_HEADERS = {"atomic", "pthread.h", "sched.h", "unistd.h"}  # in kernels/threads only
# MuJoCo's tasks: nothing else includes its header.
MUJOCO_FOLDER = "rltools/rl/environments/mujoco/"
MUJOCO_HEADERS = {"mujoco/mujoco.h", "cstdio"}
# Environments that another program plays: nothing else of the library opens a socket.
EXTERNAL_FOLDER = "rltools/rl/environments/external/"
EXTERNAL_HEADERS = {
    *("cerrno", "cstdio", "cstdlib", "netinet/in.h", "netinet/tcp.h", "poll.h", "sys/socket.h"),
    *("sys/un.h", "unistd.h", "winsock2.h"),
}
# Their absence changes nothing else (test_optional_folders.py): what is not of one includes none.
OPTIONAL_FOLDERS = (
    "rltools/rl/algorithms/distillation/",
    "rltools/rl/symmetry/",
    "rltools/rl/environments/racing_car/",
    "rltools/rl/environments/foundation/",
)
# Which files include nothing of a folder, unless they lie in it: MuJoCo's tasks and what may be
# absent are for experiments, other programs' environments for what the host tools write.
CLOSED_TO = {
    MUJOCO_FOLDER: ("lib", "firmware"),
    EXTERNAL_FOLDER: ("lib", "firmware", "experiments"),
    **dict.fromkeys(OPTIONAL_FOLDERS, ("lib", "firmware", "host")),
}
PROCESS = Path("firmware/host/board.cpp")  # a board that has its link by their socket
REQUIRES = re.compile(r"^\s*//\s*requires\s*:", re.MULTILINE | re.IGNORECASE)
REQUIRES_MUJOCO = re.compile(r"^\s*//\s*requires\s*:.*\bmujoco\b", re.MULTILINE | re.IGNORECASE)
# A main of its own, doctest's, Arduino's, or the functions of a library that Python loads.
LEARNING = Path("firmware/app/train/train_step.cpp")  # compiled beside the application
HAS_MAIN = re.compile(
    r"\bint\s+main\s*\(|\bvoid\s+setup\s*\(|doctest/doctest\.h|DOCTEST_CONFIG_IMPLEMENT"
    r"|extern \"C\""
)

TESTS = ("tests/lib", "tests/firmware")
FOLDERS = ("lib/rltools", "experiments", "firmware", "host/native", *TESTS)

# Beginnings of the names of headers that only hosts compile.
HOST_ONLY = (
    *("rltools/kernels/simd/", "rltools/kernels/threads/", "rltools/devices/host"),
    *(MUJOCO_FOLDER, EXTERNAL_FOLDER),
)


def header_names(tree: Path, roots: Sequence[str]) -> list[str]:
    """Every header of the roots, as it is included, that requires nothing of a board."""
    return [
        str(path.relative_to(tree / root))
        for root in roots
        for path in sorted((tree / root).rglob("*.h"))
        if not REQUIRES.search(path.read_text(encoding="utf-8"))
    ]


def portable_headers(tree: Path, roots: Sequence[str]) -> list[str]:
    """Those that every toolchain compiles."""
    return [name for name in header_names(tree, roots) if not name.startswith(HOST_ONLY)]


@dataclass(frozen=True)
class Include:
    quoted: str | None
    system: str | None
    macro: str | None


def includes(text: str) -> Iterator[Include]:
    for quoted, system, macro in INCLUDE.findall(text):
        yield Include(quoted or None, system or None, macro or None)


def library_layer(name: str) -> str | None:
    """The layer of "rltools/<layer>/<file>"."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "rltools" else None


def layer_of(path: Path) -> str | None:
    """The layer that a file of the tree belongs to, None where only the rules for devices apply."""
    parts = path.parts
    if parts[:4] == ("lib", "rltools", "include", "rltools") and len(parts) > 5:
        # Kernels of a GPU are those of learning, too.
        is_block = parts[4:] == ("devices", "block.h") or parts[4:6] == ("kernels", "block")
        return "block" if is_block else parts[4]
    if parts[0] == "experiments":
        return "experiments"
    if parts[:2] == ("firmware", "app"):
        return "app"
    return None


def library_violations(path: Path, layer: str, text: str) -> Iterator[str]:
    """Layers below, nothing else; lib/ and experiments/ take nothing from vendors."""
    for include in includes(text):
        if include.quoted and (included := library_layer(include.quoted)):
            if included not in LIBRARY_LAYERS[layer]:
                yield f"{path}: {layer} may not include {included} ({include.quoted})"
        elif layer != "app":
            name = include.system or include.quoted or include.macro
            allowed = STANDARD_HEADERS | (INSTRUCTION_SET_HEADERS if layer == "kernels" else set())
            if layer == "kernels" and path.parent.name == "threads":
                allowed = allowed | THREAD_HEADERS
            if MUJOCO_FOLDER in path.as_posix():
                allowed = allowed | MUJOCO_HEADERS
            if EXTERNAL_FOLDER in path.as_posix():
                allowed = allowed | EXTERNAL_HEADERS
            own_experiment = layer == "experiments" and include.quoted and "/" not in include.quoted
            if name not in allowed and not own_experiment:
                yield f"{path}: {layer} may not include {name}, which is not part of the library"


def closed_violations(path: Path, text: str) -> Iterator[str]:
    """No board's program meets MuJoCo, a socket or what may be absent unasked."""
    for include in includes(text):
        for folder, roots in CLOSED_TO.items():
            name = include.quoted or ""
            if not name.startswith(folder) or folder in path.as_posix() or path == PROCESS:
                continue
            if path.parts[0] in roots:
                yield f"{path}: may not include {name}"
            elif folder == MUJOCO_FOLDER and not REQUIRES_MUJOCO.search(text):
                yield f"{path}: includes {name} without a line `// Requires: mujoco`"


def firmware_layer(name: str) -> str | None:
    """The layer of a file of firmware/, by its path there."""
    if name == "board_api.h":
        return name
    return next((layer for layer in FIRMWARE_LAYERS if name.startswith(f"{layer}/")), None)


def firmware_violations(path: Path, layer: str, text: str) -> Iterator[str]:
    """What boards share is the same on each: no vendor's header, no board's header."""
    is_app = layer.startswith("app/")
    standard = STANDARD_HEADERS | ({"rltools/mavlink.h"} if is_app else {"atomic"})
    for include in includes(text):
        if include.quoted and is_app and include.quoted.startswith("rltools/"):
            continue
        if include.quoted and firmware_layer(include.quoted) not in FIRMWARE_LAYERS[layer]:
            if include.quoted != "rlt_revision.h":
                yield f"{path}: {layer} may not include {include.quoted}"
        elif include.system and include.system not in standard:
            yield f"{path}: {layer} may not include <{include.system}>"


def reach_violations(
    path: Path, layer: str, file: Path, include_directories: Sequence[Path]
) -> Iterator[str]:
    """An inference program includes no learning, and a node knows nothing of what it serves."""
    unreachable = UNREACHABLE_LAYERS.get(layer, set())
    for text in translation_unit(file, include_directories) if unreachable else []:
        for include in includes(text):
            if include.quoted and library_layer(include.quoted) in unreachable:
                yield f"{path}: {layer} may not reach {include.quoted}"


def translation_unit(file: Path, include_directories: Sequence[Path]) -> list[str]:
    """The texts of a source file and of all the tree's headers that it reaches, devices' apart."""
    texts = []
    seen = {file}
    pending = [file]
    while pending:
        present = pending.pop()
        texts.append(present.read_text(encoding="utf-8"))
        for include in includes(texts[-1]):
            if include.quoted and library_layer(include.quoted) != "devices":
                places = [present.parent, *include_directories]
                candidates = [place / include.quoted for place in places]
                header = next((path for path in candidates if path.is_file()), None)
                if header and header not in seen:
                    seen.add(header)
                    pending.append(header)
    return texts


def device_headers(texts: Sequence[str]) -> list[str]:
    """The devices' headers that these files include."""
    found = set()
    for text in texts:
        for include in includes(text):
            if include.macro == "RLT_DEVICE_HEADER":
                found.add("RLT_DEVICE_HEADER")
            elif include.quoted and library_layer(include.quoted) == "devices":
                found.add(include.quoted)
    return sorted(found)


def device_violations(path: Path, file: Path, include_directories: Sequence[Path]) -> Iterator[str]:
    """Only a translation unit with a main, or that of learning, includes a device's header, and
    exactly one."""
    texts = translation_unit(file, include_directories)
    headers = device_headers(texts)
    if len(headers) > 1:
        yield f"{path}: includes {len(headers)} devices' headers ({', '.join(headers)})"
    elif path == LEARNING:
        return
    elif headers and not any(HAS_MAIN.search(text) for text in texts):
        yield f"{path}: has no main, so it may not include a device's header ({headers[0]})"


def violations(tree: Path) -> list[str]:
    """Every violation of the rules in the C++ folders of the tree."""
    found: list[str] = []
    include_directories = [
        tree / folder for folder in ("lib/rltools/include", "experiments", "firmware")
    ]
    # Headers of tests are included by their names alone.
    test_headers = [path for root in TESTS for path in (tree / root).rglob("*.h")]
    include_directories += sorted({path.parent for path in test_headers})
    for folder in FOLDERS:
        for file in sorted((tree / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            path = file.relative_to(tree)
            text = file.read_text(encoding="utf-8")
            layer = layer_of(path)
            if layer:
                found += library_violations(path, layer, text)
            found += closed_violations(path, text)
            in_firmware = path.parts[0] == "firmware"
            part = firmware_layer("/".join(path.parts[1:])) if in_firmware else None
            if part in FIRMWARE_LAYERS:
                found += firmware_violations(path, part, text)
                found += reach_violations(path, part, file, include_directories)
            if file.suffix == ".cpp":
                found += device_violations(path, file, include_directories)
    return found

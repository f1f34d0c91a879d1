"""The folder that is served: the page's files, the description and modules of each experiment, the
wire format, and the quadrotor's simulator.

Nothing in it needs a server of its own: any host of static files will do.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import operator
import shutil
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict

from rltools_host.boards.messages import DROP_REASONS, SLOT_ERRORS, SlotUse, State
from rltools_host.boards.session import PROTOCOL_VERSION
from rltools_host.build.boards import list_boards
from rltools_host.build.cmake import load_dialect
from rltools_host.build.description import channels, shapes
from rltools_host.build.experiments import describe, gate, list_experiments
from rltools_host.build.native import (
    FLIGHT,
    KINDS,
    build_modules,
    host_library,
    lacking_in_browsers,
    module_path,
    require_web,
)
from rltools_host.build.picture import OPERATORS, Picture, picture_of, trees_of
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.simulator import TEXTS, flight_library
from rltools_host.errors import RltError, UsageError
from rltools_host.files import read_json, replace_folder
from rltools_host.interruption import Interruption
from rltools_host.policies import POLICY_REASONS
from rltools_host.tree import TREE, near_path

PAGE = TREE.file("host/rltools_host/web/page")
NOT_SERVED = ("package.json", "states.json")  # for Node; part of site.json
MARK = "site.json"  # which lists the folder's files, those that may be replaced
SERVICE_WORKER = "service-worker.js"
SYMBOLS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.neg: "-",
    operator.pos: "+",
}
Tree = float | str | list[Any]
CONTRACT = "quadrotor"  # of what flies
# The settings that have a slider there, in this order.
SURROUNDINGS = ("wind_m_s2", "gust_m_s2", "latency_ms", "noise")  # which no table has
SLIDERS = (
    *("mass_kg", "inertia_x", "inertia_y", "inertia_z", "lag_up_s", "lag_down_s"),
    *(*SURROUNDINGS, "drag_x", "drag_y", "drag_z"),
)
ENUMS = ("MAV_CMD", "MAV_RESULT", "MAV_PARAM_TYPE", "RLT_OBSERVE")


class KnownState(TypedDict):
    """The training state in which a run ended on some devices."""

    experiment: str
    seed: int
    steps: int
    devices: list[str]
    hash: str  # SHA-256


def known_states() -> list[KnownState]:
    """Return the final states of runs on devices, which the page shows beside its own."""
    states: list[KnownState] = read_json(PAGE / "states.json")
    return states


def write_site(names: Sequence[str], folder: Path) -> Path:
    """Write the whole folder, or replace one that was written before; the page opens with the
    first experiment."""
    experiments = list(dict.fromkeys(names)) or those_for_browsers()
    require_own(folder)
    with Interruption(), replace_folder(folder) as new:
        write_page(new, experiments)
    return folder


def require_own(folder: Path) -> None:
    """Refuse a folder with other files than those that `rlt web` wrote there."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{near_path(folder)} is a file: name a folder")
    listed: set[str] = set()
    with contextlib.suppress(OSError, RltError, KeyError, TypeError, AttributeError):
        listed = {str(name) for name in read_json(folder / MARK)["files"]}
    if other := sorted(set(files_of(folder)) - listed):
        raise UsageError(
            f"{near_path(folder)} has files that `rlt web` did not write, such as "
            f"{near_path(folder / other[0])}: name another folder"
        )


def files_of(folder: Path) -> list[str]:
    """Return all paths in the folder except folders, in order."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(str(path.relative_to(folder)) for path in found)


def write_page(new: Path, experiments: Sequence[str]) -> None:
    """Write the page into a folder that is empty or does not exist yet. MARK is the last file but
    the service worker, and lists all."""
    for name in experiments:
        require_web(name)
    descriptions = {name: page_description(name) for name in experiments}
    flies = any("gate" in each for each in descriptions.values())
    build_modules([*experiments, *([FLIGHT] if flies else [])])
    new.mkdir(parents=True, exist_ok=True)
    for source in sorted(PAGE.iterdir()):
        if source.name not in NOT_SERVED and source.is_file():
            shutil.copyfile(source, new / source.name)
    for name, description in descriptions.items():
        (new / name).mkdir()
        (new / name / "description.json").write_text(compact(description), "utf-8")
        for kind in KINDS:
            shutil.copyfile(module_path(name, kind), new / name / f"{kind}.wasm")
    if flies:  # what flies a quadrotor, which experiments share
        (new / "flight.json").write_text(compact(flight_document()), "utf-8")
        for kind in KINDS:
            shutil.copyfile(module_path(FLIGHT, kind), new / f"flight-{kind}.wasm")
    (new / "dialect.json").write_text(compact(dialect_document()), "utf-8")
    states = [state for state in known_states() if state["experiment"] in experiments]
    files = sorted({*files_of(new), MARK})
    document = {
        "experiments": experiments,
        "states": states,
        "boards": boards_document(),
        "files": files,
    }
    (new / MARK).write_text(compact(document), "utf-8")
    write_service_worker(new)


def those_for_browsers() -> list[str]:
    """Return all experiments that WebAssembly can run, the one that trains fastest first."""
    found = [name for name in list_experiments() if not lacking_in_browsers(name)]
    return sorted(found, key=lambda name: (not name.startswith("pendulum-td3"), name))


def page_description(name: str) -> dict[str, object]:
    """Return the experiment's description, with the picture's expressions as trees, and with the
    gate where it flies."""
    description = describe(name)
    document = dict(description.document)
    environment = description.environment
    known = channels([*environment["observations"], *environment["actions"]])
    picture = picture_of(shapes(environment["picture"]), known)
    document["picture"] = picture and picture_document(picture)
    if environment["contract"] == CONTRACT:
        document["gate"] = gate_document(gate(name) or "hover")
    return document


def picture_document(picture: Picture) -> dict[str, object]:
    return {
        "view": picture.view,
        "shapes": [
            {
                "kind": shape.kind,
                "look": shape.look,
                "numbers": [tree_of(tree) for tree in trees_of(shape)],
            }
            for shape in picture.shapes
        ],
    }


def tree_of(tree: ast.expr) -> Tree:
    """Return an expression as the page computes it: a number, a name, or an operation with its
    trees."""
    match tree:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = SYMBOLS.get(OPERATORS[type(op)], "/")
            return [symbol, tree_of(left), tree_of(right)]
        case ast.UnaryOp(op=op, operand=operand):
            return [SYMBOLS[OPERATORS[type(op)]], tree_of(operand)]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return [name, *map(tree_of, arguments)]
    raise ValueError(ast.unparse(tree))


def compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"))


def write_service_worker(folder: Path) -> None:
    """Write the names of all files and a digest of them into the service worker."""
    files = [name for name in files_of(folder) if name != SERVICE_WORKER]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.encode() + b"\0" + (folder / file).read_bytes())
    worker = folder / SERVICE_WORKER
    text = worker.read_text(encoding="utf-8")
    text = text.replace("const FILES = [];", f"const FILES = {json.dumps(['./', *files])};")
    text = text.replace('const VERSION = "";', f'const VERSION = "{digest.hexdigest()[:16]}";')
    worker.write_text(text, encoding="utf-8")


def flight_document() -> dict[str, object]:
    """Return the description of host/native/flight_module.cpp: `reading` has offset, number and
    type of each field of a Reading, `causes` has the sentence for each cause by its number."""
    described = host_library("flight").description
    known = {setting["name"] for setting in described["settings"]}
    assert known.issuperset(SLIDERS), set(SLIDERS) - known
    return {
        "settings": described["settings"],
        "sliders": SLIDERS,
        "surroundings": SURROUNDINGS,
        "tables": described["tables"],
        "reading": {
            field["name"]: [field["offset"], field["elements"] or 1, field["type"]]
            for field in described["records"]["Reading"]["fields"]
        },
        "reading_bytes": described["records"]["Reading"]["bytes"],
        "causes": [sentence for _, sentence in TEXTS.values()],
    }


def gate_document(name: str) -> dict[str, object]:
    """Return a gate; a flight with `needed` of the `judged` last ticks within the radius is a
    success."""
    found = load_gate(name)
    ticks, judged, needed = found.rule.in_ticks(flight_library().tick_s)
    return {
        "name": found.name,
        "rule": found.rule.text,
        "settings": found.settings,
        "seed": found.seed,
        "ticks": ticks,
        "judged": judged,
        "needed": needed,
        "radius_m": found.radius_m,
    }


def boards_document() -> list[dict[str, object]]:
    """Return the boards that a browser can reach, with what their ports need."""
    return [
        {
            "name": board.name,
            "title": board.title,
            "baud": board.link.baud,
            "usb_ids": board.link.usb_ids,
        }
        for board in list_boards()
        if board.link.kind == "serial"
    ]


def dialect_document() -> dict[str, object]:
    """Return the messages by name: number, CRC_EXTRA, the payload's layout as Python's struct
    has it, and the names of its fields in that order."""
    dialect = load_dialect()
    return {
        "version": PROTOCOL_VERSION,
        "messages": {
            kind.msgname: [
                number,
                kind.crc_extra,
                kind.unpacker.format.removeprefix("<"),
                " ".join(kind.ordered_fieldnames),
            ]
            for number, kind in sorted(dialect.mavlink_map.items())
        },
        "constants": {
            entry.name: value
            for enum in ENUMS
            for value, entry in dialect.enums[enum].items()
            if not entry.name.endswith("ENUM_END")
        },
        "states": State.NAMES,
        "slot_uses": SlotUse.NAMES,
        "policy_reasons": list(POLICY_REASONS.items()),
        "slot_errors": list(SLOT_ERRORS.items()),
        "drop_reasons": list(DROP_REASONS.values()),
    }


# -- a folder, to this machine alone ---------------------------------------------------------------

MAX_PORT = 65535


class Handler(SimpleHTTPRequestHandler):
    """A request handler that does not log requests."""

    extensions_map = {  # noqa: RUF012 - as the base has it
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
    }

    def send_head(self) -> Any:
        try:
            return super().send_head()
        except ValueError:  # of a path with a zero byte
            self.send_error(HTTPStatus.NOT_FOUND)
            return None

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as the base calls it
        pass


def server_of(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of the folder; port 0 takes a free one."""
    if not 0 <= port <= MAX_PORT:
        raise UsageError(f"--port {port} is not a valid port: name one from 0 to {MAX_PORT}")
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be served: {error.strerror}: name another with --port"
        ) from None


def address_of(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the folder's address while it is served."""
    with server_of(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield address_of(server)
        finally:
            server.shutdown()

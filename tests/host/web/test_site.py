"""What `rlt web` writes: the folder, its files, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from programs import in_node
from rltools_host.build import picture
from rltools_host.build.description import Shape
from rltools_host.build.experiments import list_experiments
from rltools_host.build.native import FLIGHT
from rltools_host.errors import DiskError, UsageError
from rltools_host.web import site

KINDS = ("lanes", "exact")


page_description = site.page_description  # itself: the fixture puts another in its place


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Modules and a description that no compiler has made."""
    for kind in KINDS:
        (tmp_path / f"{kind}.wasm").write_bytes(kind.encode())
    monkeypatch.setattr(site, "build_modules", lambda _: None)
    monkeypatch.setattr(site, "module_path", lambda _, kind: tmp_path / f"{kind}.wasm")
    monkeypatch.setattr(site, "page_description", lambda name: {"name": name})


def test_the_folder_has_all_that_the_page_asks_for(tmp_path: Path) -> None:
    folder = site.write_site(["pendulum-td3", "pendulum-td3", "cartpole-ppo"], tmp_path / "web")
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {
        "index.html",
        "dialect.json",
        "main.js",
        "pendulum-td3/exact.wasm",
        "cartpole-ppo/lanes.wasm",
    } <= written
    assert not {"package.json", "states.json"} & written
    document = json.loads((folder / "site.json").read_text())
    assert document["experiments"] == ["pendulum-td3", "cartpole-ppo"]
    assert {state["experiment"] for state in document["states"]} == {"pendulum-td3", "cartpole-ppo"}
    imported: set[str] = set()
    for script in folder.glob("*.js"):
        imported |= set(re.findall(r'(?:from |import\()"\./(.+?)"', script.read_text()))
    named = set(re.findall(r'(?:src|href)="(.+?)"', (folder / "index.html").read_text()))
    assert imported | named <= written
    worker = (folder / "service-worker.js").read_text()
    found = re.search(r"const FILES = (\[.+?\]);", worker)
    assert found
    assert set(json.loads(found[1])) == {"./", *written} - {"service-worker.js"}


def test_what_flies_has_its_module_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr(site, "build_modules", built.extend)
    monkeypatch.setattr(site, "page_description", lambda name: {"name": name, "gate": {}})
    monkeypatch.setattr(site, "flight_document", lambda: {"settings": []})
    folder = site.write_site(["crazyflie-ppo", "quadrotor-ppo"], tmp_path / "web")
    assert built == ["crazyflie-ppo", "quadrotor-ppo", FLIGHT]
    files = json.loads((folder / "site.json").read_text())["files"]
    assert {"flight.json", "flight-lanes.wasm", "flight-exact.wasm"} <= set(files)
    site.write_site(["crazyflie-ppo"], folder)  # over what it wrote before
    assert FLIGHT not in list_experiments()


def test_another_content_has_another_version(tmp_path: Path) -> None:
    def version() -> str:
        folder = site.write_site(["pendulum-td3"], tmp_path / "web")
        return re.findall(r'VERSION = "(.*)"', (folder / "service-worker.js").read_text())[0]

    first = version()
    assert version() == first
    assert re.fullmatch("[0-9a-f]{16}", first)
    (tmp_path / "lanes.wasm").write_bytes(b"other")
    assert version() != first


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"did not write, such as .*notes\.txt: name another"):
        site.write_site(["pendulum-td3"], folder)
    assert (folder / "notes.txt").read_text() == "mine"
    with pytest.raises(UsageError, match=r"notes\.txt is a file: name a folder"):
        site.write_site(["pendulum-td3"], folder / "notes.txt")


@pytest.mark.parametrize("mark", ["{", "[]", '{"files": 3}', '{"files": [["CNAME"]]}'])
def test_what_somebody_added_is_not_deleted_with_it(mark: str, tmp_path: Path) -> None:
    """As a host's own files, or a repository of what is published."""
    folder = site.write_site(["pendulum-td3"], tmp_path / "web")
    assert site.write_site(["cartpole-ppo"], folder) == folder
    assert not (folder / "pendulum-td3").exists()
    (folder / "CNAME").write_text("example.org")
    with pytest.raises(UsageError, match=r"did not write, such as .*CNAME"):
        site.write_site(["pendulum-td3"], folder)
    (folder / "site.json").write_text(mark)
    with pytest.raises(UsageError, match=r"did not write, such as .*CNAME"):
        site.write_site(["pendulum-td3"], folder)
    assert (folder / "cartpole-ppo" / "lanes.wasm").exists()


def test_a_full_disk_is_one_sentence_and_the_old_page_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site.write_site(["pendulum-td3"], tmp_path / "web")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(site, "write_service_worker", full)
    with pytest.raises(DiskError, match=r"cannot write .*web: No space left on device"):
        site.write_site(["cartpole-ppo"], folder)
    assert (folder / "pendulum-td3" / "exact.wasm").exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["web"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_stopped_leaves_nothing_half_written(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "write_service_worker", lambda _: signal.raise_signal(number))
    with pytest.raises(KeyboardInterrupt):
        site.write_site(["pendulum-td3"], tmp_path / "web")
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def imported(*names: str) -> set[str]:
    """Scripts, with those that they import at once."""
    found, new = set[str](), set(names)
    while new:
        found |= new
        texts = [(site.PAGE / name).read_text() for name in new]
        new = {name for text in texts for name in re.findall(r'from "\./(.+?)"', text)} - found
    return found


def test_pages_and_shared_files_are_small() -> None:
    """With a module of 120 or 170 kB and a description of 15 kB a page stays below 300 kB; also
    with what is fetched for a board, where the module is the smaller one. What flies has a module
    and scripts besides."""
    whole = {path.name: path.stat().st_size for path in site.PAGE.iterdir()}
    at_once = imported("main.js", "worker.js")
    boards, flights = imported("board_panel.js") - at_once, imported("flight_panel.js") - at_once
    assert {"board.js", "frames.js", "policies.js"} <= boards
    assert whole.keys() >= boards | flights
    assert sum(whole[name] for name in boards) < 92_000
    assert sum(whole[name] for name in flights) < 26_000
    assert sum(whole[name] for name in whole.keys() - boards - flights) < 72_000


def test_an_expression_becomes_a_tree() -> None:
    shape = Shape("circle", "part", "-x * 2, min(x, 1) / 3 - y, +0.5")
    trees = [site.tree_of(tree) for tree in picture.trees_of(shape)]
    assert trees == [
        ["*", ["-", "x"], 2.0],
        ["-", ["/", ["min", "x", 1.0], 3.0], "y"],
        ["+", 0.5],
    ]


def test_what_the_page_is_told_of_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its description, with its picture as trees; and its gate, of what flies alone."""
    angle = {"name": "angle", "unit": "rad", "minimum": -3.0, "maximum": 3.0}
    view, circle = ("view", "", "-1, 0, 2, 3"), ("circle", "part", "angle, 0, 1")

    def described(contract: str, *shapes: tuple[str, str, str]) -> Any:
        picture = [dict(zip(("kind", "look", "numbers"), each, strict=True)) for each in shapes]
        of = {"observations": [angle], "actions": [], "picture": picture, "contract": contract}
        return SimpleNamespace(environment=of, document={"algorithm": "TD3", "picture": picture})

    monkeypatch.setattr(site, "gate_of", lambda name: f"of {name}")
    monkeypatch.setattr(site, "gate_document", lambda name: {"name": name})
    monkeypatch.setattr(site, "describe", lambda _: described("pendulum", view, circle))
    assert page_description("mine") == {
        "algorithm": "TD3",
        "picture": {
            "view": (-1, 0, 2, 3),
            "shapes": [{"kind": "circle", "look": "part", "numbers": ["angle", 0.0, 1.0]}],
        },
    }
    monkeypatch.setattr(site, "describe", lambda _: described("quadrotor"))
    gate = {"name": "of mine"}
    assert page_description("mine") == {"algorithm": "TD3", "picture": None, "gate": gate}


def test_it_is_served_to_this_machine(tmp_path: Path) -> None:
    folder = site.write_site(["pendulum-td3"], tmp_path / "web")
    with site.served(folder) as place:
        kinds = {"main.js": "text/javascript", "pendulum-td3/lanes.wasm": "application/wasm"}
        for file, kind in kinds.items():
            with urllib.request.urlopen(f"{place}{file}", timeout=30) as answer:
                assert answer.headers["Content-Type"] == kind
        with pytest.raises(UsageError, match=r"^port \d+ cannot be served: .*in use"):
            site.server_of(folder, int(place[:-1].rpartition(":")[2]))
    with pytest.raises(UsageError, match=r"^--port 70000 is not a valid port"):
        site.server_of(folder, 70000)


def test_known_states_are_whole_and_of_experiments_that_exist() -> None:
    names = site.those_for_browsers()
    assert names[0] == "pendulum-td3"
    assert "ant-ppo" not in names
    assert {"crazyflie-ppo", "racing-car-ppo"} <= set(names)
    for state in site.known_states():
        assert state["experiment"] in names
        assert re.fullmatch("[0-9a-f]{64}", state["hash"])
        assert state["devices"]


def test_an_unknown_experiment_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rltools_host.build import native

    monkeypatch.setattr(site, "build_modules", native.build_modules)
    with pytest.raises(UsageError, match="pendulum-td4"):
        site.write_site(["pendulum-td4"], tmp_path / "web")
    assert not (tmp_path / "web").exists()


def test_ports_are_opened_at_the_speed_of_the_boards_data() -> None:
    boards = site.boards_document()
    assert [board["name"] for board in boards] == ["esp32", "esp32c3", "teensy41"]
    bridge = {"usbVendorId": 0x10C4, "usbProductId": 0xEA60}
    other = {"usbVendorId": 0x1234, "usbProductId": 0x5678}
    cases = [(bridge, ""), (bridge, "teensy41"), (other, "esp32"), (other, ""), ({}, "")]
    here = Path(__file__).parent / "speed_in_node.mjs"
    found = json.loads(
        in_node(here, site.PAGE / "link.js", given={"boards": boards, "cases": cases})
    )
    assert [each["baud"] for each in found] == [460800, 115200, 460800, 115200, 115200]
    assert [bool(each["assumed"]) for each in found] == [False, False, False, True, True]
    assert "115,200 baud, as no board has USB 1234:5678" in found[3]["assumed"]

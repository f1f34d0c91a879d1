"""What `rlt web` writes: the folder, its files, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from programs import in_node
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


def test_who_is_stopped_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = lambda _: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    monkeypatch.setattr(site, "write_service_worker", stop)
    with pytest.raises(KeyboardInterrupt):
        site.write_site(["pendulum-td3"], tmp_path / "web")
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_it_is_served_to_this_machine(tmp_path: Path) -> None:
    folder = site.write_site(["pendulum-td3"], tmp_path / "web")
    with site.served(folder) as place:
        kinds = {"main.js": "text/javascript", "pendulum-td3/lanes.wasm": "application/wasm"}
        for file, kind in kinds.items():
            with urllib.request.urlopen(f"{place}{file}", timeout=30) as answer:
                assert answer.headers["Content-Type"] == kind
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{place}%00", timeout=30)
        with pytest.raises(UsageError, match=r"^port \d+ cannot be served: .*in use"):
            site.server_of(folder, int(place[:-1].rpartition(":")[2]))
    with pytest.raises(UsageError, match=r"^--port 70000 is not a valid port"):
        site.server_of(folder, 70000)


def test_an_unknown_experiment_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rltools_host.build import native

    monkeypatch.setattr(site, "build_modules", native.build_modules)
    with pytest.raises(UsageError, match="pendulum-td4"):
        site.write_site(["pendulum-td4"], tmp_path / "web")
    assert not (tmp_path / "web").exists()


SPEEDS = """
import { readFileSync } from "node:fs";
const { speedOf } = await import(process.argv[1]);
const { boards, cases } = JSON.parse(readFileSync(0));
const found = cases.map(([info, name]) => speedOf({ getInfo: () => info }, boards, name));
console.log(JSON.stringify(found));
"""


def test_ports_are_opened_at_the_speed_of_the_boards_data() -> None:
    boards = site.boards_document()
    assert [board["name"] for board in boards] == ["esp32", "esp32c3", "teensy41"]
    bridge = {"usbVendorId": 0x10C4, "usbProductId": 0xEA60}
    other = {"usbVendorId": 0x1234, "usbProductId": 0x5678}
    cases = [(bridge, ""), (bridge, "teensy41"), (other, "esp32"), (other, ""), ({}, "")]
    script = ("--input-type=module", "-e", SPEEDS, site.PAGE / "link.js")
    found = json.loads(in_node(*script, given={"boards": boards, "cases": cases}))
    assert [each["baud"] for each in found] == [460800, 115200, 460800, 115200, 115200]
    assert [bool(each["assumed"]) for each in found] == [False, False, False, True, True]
    assert "115,200 baud, as no board has USB 1234:5678" in found[3]["assumed"]


CHOOSE = """
const { chooseModule } = await import(process.argv[1]);
const has = process.argv[2];
if (has === "nothing") delete globalThis.WebAssembly;
if (has === "no SIMD") WebAssembly.validate = () => false;
const read = () => { throw new Error("it is read"); };
await chooseModule(read).catch((error) => console.log(error.message));
"""


@pytest.mark.parametrize(
    ("has", "said"),
    [
        ("all", "it is read"),
        ("no SIMD", "This browser has no SIMD in WebAssembly, or it is switched off, .* take "),
        ("nothing", "This browser has no WebAssembly, or "),
    ],
)
def test_an_engine_that_lacks_something_is_told_so(has: str, said: str) -> None:
    script = ("--input-type=module", "-e", CHOOSE)
    assert re.match(said, in_node(*script, site.PAGE / "core.js", has))


CLOSED_PORT = """
const { openSerial } = await import(process.argv[1]);
const port = { open: async () => { throw new Error("Failed to open serial port."); } };
await openSerial(port, 115200).catch((error) => console.log(error.message));
"""


def test_a_port_that_may_not_be_opened_names_the_group() -> None:
    found = in_node("--input-type=module", "-e", CLOSED_PORT, site.PAGE / "link.js")
    assert "on Linux, run `sudo usermod -aG dialout $USER`" in found

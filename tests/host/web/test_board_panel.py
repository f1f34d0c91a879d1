"""The page and a board at a serial port, in headless Chromium: a fake port that leads to programs
of the board `host` and to an emulated Cortex-M7."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boards_under_test import EMULATED, open_board, skip_without_tools
from rltools_host.boards.framing import FrameEncoder
from rltools_host.boards.transport import Link, ProcessLink
from rltools_host.build import tools
from rltools_host.build.boards import load_board
from rltools_host.build.cmake import load_dialect
from rltools_host.build.firmware import build_firmware
from rltools_host.build.native import COMPILER_GROUP
from rltools_host.runs.checkpoint import parse_image
from rltools_host.web.site import write_site
from serial_bridge import SCRIPT, SerialBridge, bridged_server

pytestmark = pytest.mark.all  # a browser, and Zig's compiler

EXPERIMENT, CONTRACT = "pendulum-td3", "pendulum"
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
WAIT_MS = 120_000


@pytest.fixture(scope="module")
def bridge() -> Iterator[SerialBridge]:
    bridge = SerialBridge()
    yield bridge
    bridge.unplug()


@pytest.fixture(scope="module")
def site(bridge: SerialBridge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page's address."""
    tools.ensure_group(COMPILER_GROUP)
    folder = write_site([EXPERIMENT], tmp_path_factory.mktemp("web") / "site")
    with bridged_server(folder, bridge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/#experiment={EXPERIMENT}&steps=300"
        bridge.release()
        server.shutdown()


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    """An open page; nothing may be said on the console but of requests that the fake port fails."""
    context = browser.new_context(accept_downloads=True)
    context.add_init_script(SCRIPT)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(site)
    page.locator("#train:enabled").wait_for()
    yield page
    context.close()
    assert [text for text in said if "409" not in text] == []


def host_board(name: str = EXPERIMENT, program: str = "train", **environment: str) -> Link:
    path = build_firmware(load_board("host"), name, program)
    return ProcessLink([str(path)], "host", environment)


def connect(page: Any) -> None:
    page.click("#board-connect")
    page.locator("#board-disconnect:visible:enabled").wait_for()


def status(page: Any, text: str) -> str:
    """What is said, once it has this text."""
    page.locator("#board-status", has_text=text).wait_for()
    return str(page.inner_text("#board-status"))


def uses(page: Any) -> list[str]:
    return list(page.locator("#board-slots tr td:nth-child(2)").all_inner_texts())


def trained_policy(page: Any) -> None:
    """The page's own policy, after a short run."""
    page.click("#train")
    page.locator("#status", has_text="Finished").wait_for()


def test_a_board_trains_to_the_hash_and_its_files_are_verified(
    page: Any, bridge: SerialBridge
) -> None:
    name = EMULATED
    skip_without_tools(load_board(name))
    bridge.plug(open_board(name, build_firmware(load_board(name), EXPERIMENT)))
    connect(page)
    identity = page.inner_text("#board-identity")
    assert name in identity
    assert EXPERIMENT in identity
    assert bridge.baud == 115_200
    page.click("#board-start")
    status(page, "The board has finished 300 steps")
    row = page.locator("#devices tr").first
    assert row.get_attribute("data-hash") == HASH_300
    assert row.locator("td").first.inner_text() == f"{name} on USB 16c0:0483"
    assert page.locator("#devices tr.same td").last.inner_text() == HASH_300
    assert page.locator("#curve .dot").count() == 1
    page.locator("#numbers", has_text="step 300").wait_for()
    page.click("#board-fetch-checkpoint")
    status(page, f"The checkpoint of step 300 is here: state {HASH_300[:12]}… verified.")
    with page.expect_download() as download:
        page.click("#board-save")
    assert download.value.suggested_filename == f"{EXPERIMENT}-300.rltc"
    image = Path(download.value.path()).read_bytes()
    assert hashlib.sha256(image[64:]).hexdigest() == HASH_300
    assert parse_image(image, "the board").step == 300
    page.click("#board-open")
    page.locator("#status", has_text="Checkpoint restored").wait_for()
    page.click("#board-fetch-policy")
    status(page, "The policy is here: its examples give this machine's bits.")
    page.click("#board-open")
    page.locator("#status", has_text=f"{EXPERIMENT}.rltp is played").wait_for()


def test_a_policy_is_pushed_verified_confirmed_and_rolled_back(
    page: Any, bridge: SerialBridge
) -> None:
    bridge.plug(host_board(CONTRACT, "infer"))
    connect(page)
    assert uses(page) == ["empty", "empty"]
    assert page.locator("#board-confirm:disabled").count() == 1
    page.click("#board-push")  # of a run without a step
    said = status(page, "in trial for 30 s")
    assert "8 examples give this machine's bits, in every layer" in said
    assert uses(page)[0].startswith("trial, ")
    page.click("#board-confirm")
    status(page, "Confirmed: active in slot 0.")
    trained_policy(page)
    page.click("#board-push")
    status(page, "in trial for 30 s")
    page.click("#board-roll-back")
    assert "acts." in status(page, "Rolled back.")
    page.click("#board-push")
    status(page, "in trial for 30 s")
    page.click("#board-confirm")
    status(page, "Confirmed: active in slot 1.")
    assert uses(page) == ["previous", "active"]
    page.click("#board-fetch-active")
    status(page, "The policy is here")
    page.click("#board-roll-back")
    status(page, "Rolled back.")
    assert uses(page) == ["active", "empty"]


def test_only_a_press_confirms(page: Any, bridge: SerialBridge) -> None:
    bridge.plug(host_board(CONTRACT, "infer"))
    connect(page)
    page.fill("#board-trial", "6")
    page.click("#board-push")
    status(page, "in trial for 6 s")
    said = status(page, "The board dropped the policy")
    assert said == "The board dropped the policy: it was not confirmed in time. No policy acts."
    assert uses(page) == ["empty", "empty"]
    page.click("#board-push")
    status(page, "in trial for 6 s")
    page.click("#board-disconnect")  # which ends the trial
    status(page, "Not connected.")
    connect(page)
    assert uses(page) == ["empty", "empty"]


def test_a_second_tab_gets_a_sentence_and_the_first_goes_on(
    page: Any, bridge: SerialBridge, site: str
) -> None:
    bridge.plug(host_board())
    connect(page)
    second = page.context.new_page()
    second.goto(site)
    second.locator("#train:enabled").wait_for()
    second.click("#board-connect")
    said = status(second, "The port cannot be opened")
    assert "another tab or program has it" in said
    second.close()
    page.click("#board-read")
    status(page, "The fields have the board's hyperparameters.")


class Silent(Link):
    """A port on which somebody says this, again and again."""

    description = "a stranger"

    def __init__(self, said: bytes = b"") -> None:
        self.said = said
        self.quiet = threading.Event()

    def read(self, timeout_s: float) -> bytes:
        self.quiet.wait(timeout_s)
        return self.said

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


def identity() -> bytes:
    """Of a board that would have its name as HTML."""
    name = b"<img src=x onerror=alert(1)>"
    fields = (1, 0, 0, 0, 3, 0, 0, name, b"<b>", b"<b>", b"<b>", [0] * 16)
    dialect: Any = load_dialect()
    message = dialect.MAVLink_rlt_identity_message(*fields)
    return FrameEncoder(dialect, 1, 191).encode(message)


def test_what_a_board_says_is_text(page: Any, bridge: SerialBridge) -> None:
    bridge.plug(Silent(identity()))
    page.click("#board-connect")
    page.locator("#board-disconnect:visible:enabled").wait_for()
    assert "<b>" in page.inner_text("#board-identity")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#board-mismatch")
    assert page.locator("#board img, #board-identity b").count() == 0
    page.click("#board-disconnect")

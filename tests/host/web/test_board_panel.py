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
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import Link, ProcessLink
from rltools_host.build import tools
from rltools_host.build.boards import load_board
from rltools_host.build.cmake import load_dialect
from rltools_host.build.experiments import describe
from rltools_host.build.firmware import build_firmware
from rltools_host.build.native import COMPILER_GROUP
from rltools_host.runs.checkpoint import parse_image
from rltools_host.web.site import write_site
from serial_bridge import SCRIPT, SerialBridge, bridged_server

pytestmark = pytest.mark.all  # a browser, and Zig's compiler

EXPERIMENT, CONTRACT = "pendulum-td3", "pendulum"
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
WAIT_MS = 120_000
LATER = """() => {
  const now = performance.now.bind(performance);
  performance.now = () => now() + 9000;
}"""


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


@pytest.mark.parametrize("name", ["host", EMULATED])
def test_a_board_trains_to_the_hash_and_its_files_are_verified(
    page: Any, bridge: SerialBridge, name: str
) -> None:
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


def test_hyperparameters_are_set_within_their_bounds_read_and_a_run_pauses_and_resumes(
    page: Any, bridge: SerialBridge
) -> None:
    bridge.plug(host_board())
    connect(page)
    page.fill("#set-gamma", "2")
    page.click("#board-set")
    assert status(page, "bounds") == "A hyperparameter is not within its bounds."
    page.fill("#set-gamma", "0.9")
    page.fill("#set-steps", "1000000")
    page.fill("#set-report_every", "50")
    page.click("#board-set")
    status(page, "The board has the hyperparameters of the fields.")
    page.fill("#set-gamma", "0.5")
    page.click("#board-read")
    status(page, "The fields have the board's hyperparameters.")
    assert page.input_value("#set-gamma") == "0.9"
    page.click("#board-start")
    page.locator("#numbers", has_text="steps/s").wait_for()
    assert page.locator("#board-start:disabled").count() == 1
    page.click("#board-pause")
    status(page, "The board is paused at step")
    page.click("#board-resume")
    status(page, "The board trains.")
    page.click("#board-pause")
    status(page, "The board is paused at step")
    page.click("#board-disconnect")
    status(page, "Not connected.")
    connect(page)
    assert "paused" in page.inner_text("#board-identity")


def test_the_pages_run_goes_on_on_the_board(page: Any, bridge: SerialBridge) -> None:
    bridge.plug(host_board())
    connect(page)
    page.fill("#set-steps", "1000000")
    page.click("#reset")
    page.click("#train")
    page.click("#board-send")
    assert status(page, "pause it") == "This page trains: pause it, then send its run."
    page.fill("#set-steps", "150")
    page.click("#reset")
    trained_policy(page)
    state = str(page.locator("#devices tr").first.get_attribute("data-hash"))
    page.click("#board-send")
    status(page, f"The board has the run at step 150: state {state[:12]}… verified.")
    row = page.locator("#devices tr").first
    assert row.locator("td").first.inner_text() == "host on USB 16c0:0483"
    assert row.get_attribute("data-hash") == state
    page.fill("#set-steps", "300")
    page.click("#board-set")
    status(page, "The board has the hyperparameters of the fields.")
    page.click("#board-resume")
    status(page, "The board has finished 300 steps")
    assert page.locator("#devices tr").first.get_attribute("data-hash") == HASH_300
    assert page.locator("#curve .dot").get_attribute("d").count("M") == 2  # the page's, the board's


def test_a_run_that_goes_on_is_joined_by_another_page(page: Any, bridge: SerialBridge) -> None:
    bridge.plug(host_board())
    connect(page)
    page.fill("#set-steps", "1000000")
    page.click("#board-start")
    page.locator("#numbers", has_text="step").wait_for()
    page.reload()
    page.locator("#train:enabled").wait_for()
    connect(page)
    status(page, "The board trains.")
    page.locator("#numbers", has_text="steps/s").wait_for()
    page.click("#board-pause")
    status(page, "The board is paused at step")


@pytest.mark.parametrize("name", ["host", EMULATED])
def test_a_policy_is_pushed_verified_confirmed_and_rolled_back(
    page: Any, bridge: SerialBridge, name: str
) -> None:
    skip_without_tools(load_board(name))
    bridge.plug(open_board(name, build_firmware(load_board(name), CONTRACT, "infer")))
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


def test_unplugged_in_a_push_and_in_a_trial_the_policy_before_acts(
    page: Any, bridge: SerialBridge, tmp_path: Path
) -> None:
    storage = {"RLT_POLICY_STORAGE": str(tmp_path / "flash.bin")}
    bridge.plug(host_board(CONTRACT, "infer", **storage))
    connect(page)
    page.click("#board-push")
    status(page, "in trial")
    page.click("#board-confirm")
    status(page, "Confirmed")
    trained_policy(page)
    bridge.unplug_after = bridge.written + 9000
    page.click("#board-push")
    status(page, "Lost the board on USB 16c0:0483: unplugged, or without power")
    page.locator("#board-connect:visible:enabled").wait_for()
    bridge.plug(host_board(CONTRACT, "infer", **storage))
    connect(page)
    assert uses(page) == ["active", "empty"]
    page.click("#board-push")
    status(page, "in trial")
    bridge.unplug()
    said = status(page, "Lost the board")
    assert said.endswith("it drops the policy in trial in time.")
    bridge.plug(host_board(CONTRACT, "infer", **storage))
    connect(page)
    assert uses(page) == ["active", "empty"]
    page.click("#board-push")
    status(page, "in trial")
    page.click("#board-confirm")
    status(page, "Confirmed: active in slot 1.")


def test_a_board_of_another_experiment_is_named(page: Any, bridge: SerialBridge) -> None:
    bridge.plug(host_board("cartpole-ppo"))
    connect(page)
    assert 'runs experiment "cartpole-ppo", not "pendulum-td3"' in page.inner_text(
        "#board-mismatch"
    )
    assert page.locator("#board-start:disabled").count() == 1


def test_a_run_of_another_experiment_can_be_paused(page: Any, bridge: SerialBridge) -> None:
    link = host_board("cartpole-ppo")
    session, _ = BoardSession.connect(link, load_dialect())
    steps = describe("cartpole-ppo").hyperparameter("steps")
    session.parameters.set({"steps": steps}, {"steps": 1_000_000_000})
    session.training.start()
    bridge.plug(link)
    connect(page)
    assert page.locator("#board-read:disabled").count() == 1
    page.click("#board-pause")
    status(page, "The board is paused at step")
    page.locator("#board-pause:disabled").wait_for()


def test_by_keyboard_alone(page: Any, bridge: SerialBridge) -> None:
    """The focus stays, and a second press of Enter never confirms."""

    def focused() -> str:
        return str(page.evaluate("() => document.activeElement.id"))

    bridge.plug(host_board(CONTRACT, "infer"))
    page.focus("#board-connect")
    page.keyboard.press("Enter")
    page.locator("#board-push:enabled").wait_for()
    assert focused() == "board-disconnect"
    for name in ("board-trial", "board-push"):
        page.keyboard.press("Tab")
        assert focused() == name
    page.keyboard.press("Enter")
    status(page, "is in trial for 30 s")
    page.locator("#board-confirm:enabled").wait_for()
    assert focused() == "board-disconnect"
    for _ in range(2):
        page.keyboard.press("Tab")
    assert focused() == "board-confirm"
    page.keyboard.press("Enter")
    status(page, "Confirmed: active in slot 0.")
    announced = page.locator("#board-status[role=status][aria-live=polite]")
    assert announced.count() == 1


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


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"", "No board answers on USB 16c0:0483 within 10 s"),
        (b"<img src=x onerror=alert(1)>\r\n", "The board on USB 16c0:0483 runs other firmware"),
    ],
)
def test_a_port_that_is_not_ours_gets_one_sentence(
    page: Any, bridge: SerialBridge, said: bytes, expected: str
) -> None:
    """By the page's clock, of which nine seconds pass at once when the board has been asked."""
    bridge.plug(Silent(said))
    page.click("#board-connect")
    while bridge.written == 0:
        page.wait_for_timeout(20)
    page.evaluate(LATER)
    assert status(page, expected)
    assert page.locator("#board img").count() == 0
    page.locator("#board-connect:visible:enabled").wait_for()
    bridge.plug(host_board())
    connect(page)


def test_no_port_that_is_chosen_is_no_error(page: Any) -> None:
    page.evaluate("() => { window.choosesNoPort = true; }")
    page.click("#board-connect")
    assert status(page, "No port was chosen.")


def test_without_webserial_the_panel_names_the_browsers(browser: Any, site: str) -> None:
    context = browser.new_context()
    context.add_init_script('Object.defineProperty(navigator, "serial", { value: undefined });')
    page = context.new_page()
    page.goto(site)
    said = status(page, "This browser has no WebSerial")
    assert "Chrome and Edge" in said
    assert "Firefox since 151" in said
    assert page.locator("#board-connect").is_hidden()
    context.close()

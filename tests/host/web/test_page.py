"""The page that `rlt web` writes, in headless Chromium."""

from __future__ import annotations

import base64
import random
import re
from pathlib import Path
from typing import Any

import pytest

from rltools_host.policies.image import parse_policy
from rltools_host.runs.checkpoint import from_safetensors
from web_page import open_file, open_page

pytestmark = pytest.mark.all  # a browser, and Zig's compiler

EXPERIMENT = "pendulum-td3"
WAIT_MS = 120_000
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
DAMAGED = 1000


def train(page: Any) -> str:
    """Until the run has finished; the state's hash."""
    page.click("#train")
    page.locator("#status", has_text="Finished").wait_for()
    return str(page.locator("#devices tr").first.get_attribute("data-hash"))


def downloaded(page: Any, button: str) -> bytes:
    with page.expect_download() as download:
        page.click(button)
    return Path(download.value.path()).read_bytes()


def test_a_whole_run_is_paused_resumed_and_watched(site: str, page: Any) -> None:
    open_page(page, site)
    page.click("#train")
    page.locator("#numbers", has_text="steps/s").wait_for()
    page.click("#train")  # pause
    page.locator("#status", has_text="Paused").wait_for()
    assert train(page).startswith("cb477b641fdc")
    assert page.locator("#curve .dot").get_attribute("d").count("M") == 10
    before = page.locator("#picture .body").get_attribute("x2")
    page.wait_for_timeout(500)
    page.click("#again")
    page.wait_for_timeout(300)
    assert page.locator("#picture .body").get_attribute("x2") != before


def test_a_slider_changes_its_field_and_the_link_restores_it(site: str, page: Any) -> None:
    open_page(page, site)
    slider = page.locator("input[type=range][aria-label='gamma, slider']")
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    gamma = page.input_value("#set-gamma")
    assert 0.9 < float(gamma) < 0.99
    assert slider.get_attribute("aria-valuetext") == gamma
    page.fill("#set-seed", "7")
    page.fill("#set-steps", "300")
    page.click("#reset")
    address = page.evaluate("() => location.href")
    assert address == f"{site}#experiment={EXPERIMENT}&seed=7&steps=300&gamma={gamma}"
    first = train(page)
    open_page(page, address)
    assert page.input_value("#set-gamma") == gamma
    page.locator("#status", has_text="The run of before").wait_for()
    page.click("#reset")
    page.locator("#status", has_text="Reset").wait_for()
    assert train(page) == first != HASH_300


def test_a_run_is_kept_continued_and_asked_for(site: str, page: Any) -> None:
    """Over a reload and other addresses; to more steps, with the bits of a run that never ended."""
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    begun = f"{site}#experiment={EXPERIMENT}&steps=300"
    open_page(page, begun)
    assert train(page) == HASH_300
    page.wait_for_timeout(300)  # it is written
    for address in (begun, site):
        open_page(page, address)
        page.locator("#status", has_text="The run of before, at step 300").wait_for()
        assert page.locator("#devices tr").first.get_attribute("data-hash") == HASH_300
        assert page.locator("#curve .dot").get_attribute("d").count("M") == 1
        assert page.locator("#train").is_disabled()
    open_page(page, f"{site}#experiment={EXPERIMENT}&seed=7")
    page.locator("#kept", has_text="Continue the run of 300 steps").click()
    page.locator("#status", has_text="The run of before, at step 300").wait_for()
    page.fill("#set-steps", "500")
    assert page.inner_text("#settings-note") == "Train continues to step 500."
    continued = train(page)
    assert asked == []
    page.click("#reset")
    assert asked == ["Drop the run of 500 steps? No file holds it."]
    page.fill("#set-steps", "500")
    assert train(page) == continued
    downloaded(page, "#save-checkpoint")
    assert f"--resume {EXPERIMENT}-500.safetensors" in page.inner_text("#commands")
    page.click("#reset")
    assert len(asked) == 1  # a file holds it


def test_the_verdict_is_of_what_ran(site: str, page: Any) -> None:
    """Fields that are edited meanwhile, or later, neither turn it red nor silence it; the link has
    what ran, and the fields say that they are not in force."""
    open_page(page, f"{site}#experiment={EXPERIMENT}&steps=300&seed=0")
    ran = f"{site}#experiment={EXPERIMENT}&steps=300"
    page.evaluate(
        """() => {
          document.getElementById("train").click();
          for (const [name, value] of [["seed", "7"], ["gamma", "0.9"], ["steps", ""]]) {
            const field = document.getElementById(`set-${name}`);
            field.value = value;
            field.dispatchEvent(new Event("input"));
          }
        }"""
    )
    page.locator("#status", has_text="Finished").wait_for()
    assert page.locator("#devices tr").first.get_attribute("data-hash") == HASH_300
    assert "the bits of the devices below" in page.inner_text("#status")
    assert page.locator("#devices tr.same td").last.inner_text() == HASH_300
    page.click("#share")
    page.locator("#status", has_text="as the run has it, not as the fields say").wait_for()
    assert page.evaluate("() => location.href") == ran
    assert page.locator(".not-in-force").count() == 3
    note = page.locator("#settings-note")
    assert note.inner_text().startswith("Not what the run has: seed, steps, gamma are edited.")
    assert note.get_attribute("role") == "status"
    described = page.get_attribute("#set-gamma", "aria-describedby")
    assert described.split()[0] == "notice-set-gamma"
    assert page.inner_text("#notice-set-gamma") == "Not in force: the run has 0.99."
    page.fill("#set-gamma", "0.99")
    page.fill("#set-seed", "0")
    page.fill("#set-steps", "300")
    assert page.locator(".not-in-force").count() == 0
    page.fill("#set-gamma", "0.9")
    page.click("#reset")
    assert page.locator(".not-in-force").count() == 0
    assert train(page) != HASH_300
    assert page.locator("#devices tr.same, #devices tr.other").count() == 0
    page.fill("#set-gamma", "0.99")  # of that run nothing is known, whatever the field says
    page.click("#share")
    assert page.evaluate("() => location.href") == f"{ran}&gamma=0.9"


@pytest.mark.parametrize(
    ("fragment", "named"),
    [("gamma=2", "gamma"), ("<img src=x onerror=alert(1)>=1", "<img src")],
)
def test_a_link_that_does_not_fit_is_named(site: str, page: Any, fragment: str, named: str) -> None:
    open_page(page, f"{site}#experiment={EXPERIMENT}&{fragment}")
    expected = f"The link's {named} cannot be set; the rest is."
    assert page.inner_text("#status") == expected
    assert page.locator("#status img").count() == 0


def test_what_is_downloaded_is_read_here_and_there(site: str, page: Any) -> None:
    open_page(page, f"{site}#experiment={EXPERIMENT}&steps=300&gamma=0.9")
    state = train(page)
    checkpoint = downloaded(page, "#save-checkpoint")
    image = downloaded(page, "#save-policy")
    read, _ = from_safetensors(checkpoint, "the page")
    assert (read.step, read.state_sha256, read.experiment) == (300, state, EXPERIMENT)
    assert read.hyperparameters["gamma"] == 0.9
    assert parse_policy(image, "the page").experiment == EXPERIMENT
    open_page(page, site)
    open_file(page, "mine.safetensors", checkpoint)
    page.locator("#status", has_text="Checkpoint restored").wait_for()
    assert page.locator("#devices tr").first.get_attribute("data-hash") == state
    assert page.input_value("#set-gamma") == "0.9"
    open_file(page, "mine.rltp", image)
    page.locator("#status", has_text="mine.rltp is played").wait_for()


# Offers each file to what the page's own worker and player have, and counts what is taken.
OFFER = """
async ({ content, damages, name }) => {
  const { Core, Refused, chooseModule } = await import("./core.js");
  const { checkpointOf } = await import("./checkpoint.js");
  const description = await (await fetch(`${name}/description.json`)).json();
  const read = async (kind) => (await fetch(`${name}/${kind}.wasm`)).arrayBuffer();
  const core = new Core((await chooseModule(read)).module);
  const reasons = [];
  const whole = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  for (const { length, place, bytes } of damages) {
    const file = new Uint8Array(length);
    file.set(whole.subarray(0, length));
    bytes.forEach((byte, index) => (file[place + index] ^= byte));
    try {
      if (String.fromCharCode(...file.subarray(0, 4)) === "RLTP") core.openPolicy(file);
      else core.restore(checkpointOf(core, description, file).image);
      reasons.push("taken");
    } catch (error) {
      reasons.push(error instanceof Refused ? error.message : `not refused: ${error}`);
    }
  }
  return reasons;
}
"""


def test_a_thousand_damaged_files_of_each_kind_are_refused(site: str, page: Any) -> None:
    open_page(page, f"{site}#experiment={EXPERIMENT}&steps=300")
    train(page)
    whole = [downloaded(page, "#save-checkpoint"), downloaded(page, "#save-policy")]
    draws = random.Random(26)
    for content in whole:
        damages = [damage(len(content), draws) for _ in range(DAMAGED)]
        text = base64.b64encode(content).decode()
        offered = {"content": text, "damages": damages, "name": EXPERIMENT}
        reasons = page.evaluate(OFFER, offered)
        wrong = [reason for reason in reasons if reason == "taken" or "not refused" in reason]
        assert (len(reasons), wrong) == (DAMAGED, [])
        assert all(reasons)
    damaged_checkpoint = bytearray(whole[0])
    damaged_checkpoint[-1] ^= 1
    open_file(page, "<b>damaged</b>.safetensors", bytes(damaged_checkpoint))
    page.locator("#status", has_text="refused: its SHA-256 does not match").wait_for()
    assert page.locator("#status b").count() == 0
    assert page.locator("#devices tr").first.get_attribute("data-hash") == HASH_300


def damage(length: int, draws: random.Random) -> dict[str, Any]:
    """A bit or some bytes changed, the end cut off, or bytes behind it: the new length, and what
    the bytes from a place on are changed by."""
    kind = draws.randrange(4)
    place = draws.randrange(length)
    if kind == 0:
        return {"length": length, "place": place, "bytes": [1 << draws.randrange(8)]}
    if kind == 1:
        count = min(16, length - place)
        changes = [draws.randrange(1, 256) for _ in range(count)]
        return {"length": length, "place": place, "bytes": changes}
    if kind == 2:
        return {"length": place, "place": 0, "bytes": []}
    more = [draws.randrange(256) for _ in range(draws.randrange(1, 64))]
    return {"length": length + len(more), "place": length, "bytes": more}


OLD_CACHES = """const old = `rlt-web ${new URL(".", location)} 0123`;
    for (const name of ["another page's", old]) caches.open(name);"""
CACHES = """async (opened) => {
    const { active } = await navigator.serviceWorker.ready;
    while (active.state !== "activated" || !(await caches.match(opened))) {
        await new Promise((done) => setTimeout(done, 20));
    }
    return caches.keys();
}"""
MODULES = """async (name) => {
    const kept = await (await caches.open(name)).keys();
    return kept.map(({ url }) => url).filter((url) => url.endsWith(".wasm"));
}"""


def test_it_works_without_a_network_once_loaded(site: str, browser: Any) -> None:
    """What another page of the same host has stored stays."""
    context = browser.new_context()
    context.add_init_script(OLD_CACHES)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    open_page(page, site)
    opened = f"{EXPERIMENT}/description.json"
    ours, other = sorted(page.evaluate(CACHES, opened), reverse=True)
    assert other == "another page's"
    assert re.fullmatch(r"rlt-web http://\S+/ [0-9a-f]{16}", ours)
    (module,) = page.evaluate(MODULES, ours)  # what was opened, and no other experiment
    assert module.startswith(f"{site}{EXPERIMENT}/")
    context.set_offline(True)
    open_page(page, f"{site}#experiment={EXPERIMENT}&steps=300")
    assert train(page) == HASH_300
    context.close()

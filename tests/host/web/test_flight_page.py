"""A quadrotor that flies in the page: drawn, pushed, changed, paused, and tried in its gate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.web import DRONE
from quadrotor_policies import constant_policy, controller
from rltools_host.web.site import SLIDERS
from web_page import open_file, open_page

pytestmark = pytest.mark.all  # a browser, and Zig's compiler

# Pixels of the canvas that are not empty.
DRAWN = """() => {
  const canvas = document.getElementById("scene");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 3; i < data.length; i += 4) found += data[i] > 0;
  return found;
}"""


def fly(page: Any, site: str, image: bytes | None = None) -> None:
    """The page with a policy that flies."""
    open_page(page, f"{site}#experiment={DRONE}")
    page.locator("#scene").wait_for()
    open_file(page, "hand.rltp", image or controller())
    page.locator("#status", has_text="hand.rltp is played").wait_for()


def distance(page: Any) -> float:
    found = re.match(r"([0-9.]+) m from the target", page.inner_text("#channels"))
    assert found
    return float(found[1])


def wait_until(page: Any, holds: Callable[[], bool], seconds: float = 60) -> None:
    for _ in range(int(10 * seconds)):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError(page.inner_text("#channels"))


def set_field(page: Any, name: str, value: float) -> None:
    page.fill(f"#drone-{name}", str(value))


def test_a_policy_from_a_file_hovers_and_comes_back_from_a_push(site: str, page: Any) -> None:
    fly(page, site)
    assert page.evaluate(DRAWN) > 1000
    assert not page.locator("#picture").is_visible()
    wait_until(page, lambda: distance(page) < 0.15)
    page.focus("#scene")
    page.keyboard.press("ArrowRight")
    page.locator("#flight", has_text="Pushed to the right by 1.0 m/s.").wait_for()
    page.locator("#flight", has_text=re.compile(r"At the target \d+\.\d s after")).wait_for()
    assert page.inner_text("#status") == "hand.rltp is played."  # not overwritten
    page.get_by_role("button", name="up", exact=True).click()
    page.locator("#flight", has_text="Pushed up by 1.0 m/s.").wait_for()


def test_the_drone_and_its_wind_change_while_it_flies(site: str, page: Any) -> None:
    fly(page, site)
    wait_until(page, lambda: distance(page) < 0.15)
    set_field(page, "wind_m_s2", 3)
    wait_until(page, lambda: distance(page) > 0.3)
    assert re.search(r"wind [23]\.\d m/s²", page.inner_text("#channels"))
    page.click("#drone-reset")
    assert page.input_value("#drone-wind_m_s2") == "0"
    wait_until(page, lambda: distance(page) < 0.2)
    slider = page.locator("#drone-settings").get_by_label("mass_kg, slider")
    slider.focus()
    page.keyboard.press("End")  # of its bounds
    assert page.input_value("#drone-mass_kg") == "20"
    ended = "The flight ended: the limit of the "
    page.locator("#flight", has_text=ended).wait_for()
    page.select_option("#airframe", label="crazyflie-cf2x")
    assert page.input_value("#drone-mass_kg") == "0.027"
    assert page.input_value("#drone-inertia_z") == "21.7"
    set_field(page, "mass_kg", 1000)  # beyond them: nothing changes
    assert page.evaluate("() => document.querySelector('#drone-mass_kg').validity.rangeOverflow")


def test_a_link_restores_the_drone_and_a_reset_of_the_run_leaves_it(site: str, page: Any) -> None:
    fly(page, site)
    page.select_option("#airframe", label="iris")
    set_field(page, "wind_m_s2", 2.5)
    set_field(page, "mass_kg", 1.75)
    set_field(page, "noise", -1)  # beyond its bounds: the others count
    page.fill("#set-seed", "7")
    page.click("#reset")
    page.locator("#status", has_text="Reset: no step done.").wait_for()
    drone = {name: page.input_value(f"#drone-{name}") for name in SLIDERS}
    assert (drone["wind_m_s2"], drone["mass_kg"]) == ("2.5", "1.75")
    table = page.input_value("#airframe")
    address = page.evaluate("() => location.href")
    words = f"drone.airframe={table}&drone.mass_kg=1.75&drone.wind_m_s2=2.5"
    assert address == f"{site}#experiment={DRONE}&seed=7&{words}"
    open_page(page, address)
    page.locator("#drone-mass_kg").wait_for()
    assert {name: page.input_value(f"#drone-{name}") for name in SLIDERS} == drone
    assert page.input_value("#airframe") == table
    wait_until(page, lambda: bool(re.search(r"wind [23]\.\d m/s²", page.inner_text("#channels"))))
    set_field(page, "drag_x", 0.5)
    page.wait_for_function("() => location.hash.includes('drone.drag_x=0.5')")
    page.select_option("#airframe", value="0")  # the run's; the wind goes on
    assert page.input_value("#drone-drag_x") == "0"
    page.wait_for_function("() => location.hash.endsWith('&seed=7&drone.wind_m_s2=2.5')")
    page.click("#drone-reset")
    page.wait_for_function("() => location.hash.endsWith('&seed=7')")


def test_each_policy_is_tried_in_the_gate(site: str, page: Any) -> None:
    fly(page, site)
    tried = page.locator("#trials", has_text="flights of the gate hover-nominal succeed")
    tried.wait_for()
    first = page.inner_text("#trials")
    assert re.match(r"This file's policy: \d+ of 10 flights", first)
    open_file(page, "falls.rltp", constant_policy(0, 0, 0, 0))
    page.locator("#trials", has_text="This file's policy: 0 of 10").wait_for()
    damaged = bytearray(controller())
    damaged[-1] ^= 1
    open_file(page, "<b>damaged</b>.rltp", bytes(damaged))
    page.locator("#status", has_text="damaged</b>.rltp: ").wait_for()
    assert "is played" not in page.inner_text("#status")
    assert "Played: falls.rltp" in page.inner_text("#shown")


def test_a_second_of_frames_is_a_second_of_ticks(site: str, page: Any) -> None:
    """At the contract's 500 Hz, at any rate of frames, and in free fall where no rotor turns."""
    fly(page, site, constant_policy(0, 0, 0, 0))
    ticks, fallen = page.evaluate(
        """async ([name, image]) => {
          const { FlightPlayer, loadFlight } = await import("./flight_panel.js");
          const description = await (await fetch(`${name}/description.json`)).json();
          const places = { words: document.createElement("p") };
          const player = new FlightPlayer(await loadFlight(), description, places, () => {});
          Object.assign(player.gate.settings, { start_share: 0, gust_m_s2: 0, noise: 0 });
          player.open(Uint8Array.from(image));
          player.begin(0, 0, { mass_kg: 20, airframe: 0 });
          for (let frame = 0; frame < 24; frame++) player.advance(1 / 60, false);
          for (let frame = 0; frame < 12; frame++) player.advance(1 / 20, false);
          return [player.flight.read().tick[0], player.flight.read().position_m[2]];
        }""",
        [DRONE, list(constant_policy(0, 0, 0, 0))],
    )
    assert abs(ticks - 500) <= 1
    assert fallen == pytest.approx(-9.81 / 2, rel=0.1)

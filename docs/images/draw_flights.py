"""Draws the paths and distances of a gate's flights, as a run's report shows them: the picture in
the README. Needs Chromium, which `./rlt test --all` installs with Playwright.

./rlt train crazyflie-ppo --seed 200 --out RUN
./rlt evaluate RUN --gate hover-nominal; ./rlt report RUN
.venv/bin/python docs/images/draw_flights.py RUN/report.html docs/images/flights.webp
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TOP, HEIGHT, LEFT, WIDTH = 385, 647, 36, 930  # below the section's heading, in pixels


def main(report: str, image: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1000, "height": 760})
        page.goto(Path(report).resolve().as_uri())
        heading = page.get_by_role("heading", name="Flights", exact=True).bounding_box()
        assert heading is not None
        box = (LEFT, heading["y"] + TOP, LEFT + WIDTH, heading["y"] + TOP + HEIGHT)
        drawn = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        drawn.crop(tuple(map(round, box))).save(image, quality=80, method=6)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The browser in which pages are tried."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from rltools_host.toolchain import tools


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    tools.ensure_group("browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()

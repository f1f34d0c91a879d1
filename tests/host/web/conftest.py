"""The page of `rlt web`, served, and a headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.web import DRONE, PENDULUM, chromium, opened_site
from rltools_host.build import tools
from rltools_host.build.native import COMPILER_GROUP

WAIT_MS = 120_000


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with an experiment of each kind."""
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    tools.ensure_group(COMPILER_GROUP)
    with opened_site(tmp_path_factory.mktemp("web") / "site", PENDULUM, DRONE) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of its own; nothing may be said on the console."""
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    said: list[str] = []
    page.on("dialog", lambda dialog: dialog.accept())  # a run is dropped
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert said == []

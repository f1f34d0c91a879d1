"""The page by Lighthouse: accessibility and best practices; and by axe, which Lighthouse has in it,
while a drone flies. Both come from npm (tests/host/web/lighthouse), and need no network then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.web import DRONE, PENDULUM
from quadrotor_policies import controller
from rltools_host.build import tools
from rltools_host.tree import PROJECT, TREE
from web_page import open_file, open_page

pytestmark = pytest.mark.all

STATED = TREE.root / "tests" / "host" / "web" / "lighthouse"
FILES = ("package.json", "package-lock.json")
LEAST_SCORE = 0.95
LIMIT_S = 300
# What is wrong, by axe's rules of WCAG 2.2 A and AA and its best practices.
AUDIT = """async () => (await axe.run()).violations.map(
  ({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])"""


@pytest.fixture(scope="module")
def packages() -> Path:
    """Where Lighthouse is installed."""
    for name in ("node", "chromium"):
        if tools.missing_names((name,)):
            pytest.skip(f"not installed (rlt doctor): {name}")
    if shutil.which("npm") is None:
        pytest.skip("not installed: npm")
    folder = PROJECT.build / "lighthouse"
    folder.mkdir(parents=True, exist_ok=True)
    stated = {name: (STATED / name).read_bytes() for name in FILES}
    mark = folder / "installed"
    if mark.exists() and all((folder / name).read_bytes() == stated[name] for name in FILES):
        return folder / "node_modules"
    mark.unlink(missing_ok=True)
    for name, content in stated.items():
        (folder / name).write_bytes(content)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        pytest.skip(f"npm did not install Lighthouse: {done.stderr[-300:]}")
    mark.touch()
    return folder / "node_modules"


def test_lighthouse_finds_the_page_accessible_and_well_made(
    site: str, packages: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    command = [
        *("node", str(packages / "lighthouse" / "cli" / "index.js")),
        f"{site}#experiment={DRONE}",
        *("--only-categories=accessibility,best-practices", "--preset=desktop", "--quiet"),
        *("--output=json", f"--output-path={report}", "--no-enable-error-reporting"),
        "--chrome-flags=--headless=new" + (" --no-sandbox" if os.geteuid() == 0 else ""),
    ]
    chromium = str(shutil.which("chromium"))
    done = subprocess.run(
        command,
        env={**os.environ, "CHROME_PATH": chromium, "CI": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    assert "runtimeError" not in found
    scores = {name: category["score"] for name, category in found["categories"].items()}
    failed = [
        reference["id"]
        for category in found["categories"].values()
        for reference in category["auditRefs"]
        if found["audits"][reference["id"]]["score"] == 0
    ]
    assert set(scores) == {"accessibility", "best-practices"}
    assert min(scores.values()) >= LEAST_SCORE, (scores, failed)


@pytest.mark.parametrize(("experiment", "scheme"), [(PENDULUM, "light"), (DRONE, "dark")])
def test_axe_finds_nothing_wrong_on_a_phone(
    site: str, packages: Path, browser: Any, experiment: str, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    open_page(page, f"{site}#experiment={experiment}")
    if experiment == DRONE:
        page.locator("#scene").wait_for()
        open_file(page, "hand.rltp", controller())
        page.locator("#trials", has_text="of 10 flights").wait_for()
    page.add_script_tag(path=str(packages / "axe-core" / "axe.min.js"))
    assert page.evaluate(AUDIT) == []
    context.close()

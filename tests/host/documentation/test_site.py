"""The site: built whole, with every tutorial executed, and each of its links followed."""

from __future__ import annotations

import errno
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from benchmarks.web import PENDULUM, chromium
from rltools_host.documentation import site
from rltools_host.errors import BuildError, DiskError, UsageError
from rltools_host.files import write_changed
from rltools_host.toolchain import tools
from rltools_host.tree import TREE
from rltools_host.web.site import MARK, in_place_of_own, served
from rltools_host.web.site import write_site as write_page_of_web

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
WHOLE_S = 3000  # all tutorials, where the processors are shared


class Page(HTMLParser):
    """Its anchors, where it links to, and what a browser fetches for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if found.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.loaded += [found[LOADED[tag]]] if LOADED.get(tag) in found else []


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.write_site(tmp_path_factory.mktemp("site") / "docs")


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is staged; in the place of pages, so that Sphinx has nothing to do."""
    monkeypatch.setattr(site, "work_folder", lambda: tmp_path / "work")
    monkeypatch.setattr(site, "run_sphinx", lambda folder, _: folder)
    monkeypatch.setattr(site, "kept_folder", lambda: tmp_path)
    monkeypatch.setattr(site, "GROUPS", ())
    monkeypatch.setattr(site.core_api, "write_pages", lambda _: [])
    return tmp_path


def test_a_full_disk_is_one_sentence(staged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(site.shutil, "copyfile", full)
    with pytest.raises(DiskError) as caught:
        site.write_site(staged / "site")
    assert re.fullmatch(r"cannot write .*site: No space left on device; free .*", str(caught.value))
    assert [path.name for path in staged.iterdir()] == ["work"]


@pytest.mark.all
def test_the_page_is_part_of_the_site(staged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    monkeypatch.setattr(site, "those_for_browsers", lambda: [PENDULUM])
    folder = site.write_site(staged / "site", with_page=True)
    document = (folder / "docs" / "web.md").read_text(encoding="utf-8")
    (folder / "docs" / "web.html").write_text(document[document.index("<iframe") :])
    with served(folder) as address, chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address}docs/web.html")
        live = page.frame_locator("iframe.live")
        live.locator("#train:enabled").click()
        live.locator("#numbers", has_text="steps/s").wait_for()
        page.get_by_role("link", name="The page alone").click()
        page.locator("#train:enabled").wait_for()


@pytest.mark.all
@pytest.mark.timeout(WHOLE_S)
def test_tutorials_hold_what_they_state(built: Path) -> None:
    for name in sorted((TREE.root / "docs" / "tutorials").glob("*.md")):
        text = (built / "docs" / "tutorials" / f"{name.stem}.html").read_text(encoding="utf-8")
        assert ("cell_output" in text) == (name.stem != "index"), name
    first = (built / "docs" / "tutorials" / "first_policy.html").read_text(encoding="utf-8")
    assert "cb477b641fdc5db74abfdc2ec59bfb24e667cdc3f7451f199255d22773aea9dc" in first
    assert "<svg" in first or "image/svg" in first or ".svg" in first


@pytest.mark.all
@pytest.mark.timeout(WHOLE_S)
def test_nothing_is_written_beside_the_site(built: Path) -> None:
    assert [path.name for path in built.parent.iterdir()] == ["docs"]


@pytest.mark.all
@pytest.mark.timeout(WHOLE_S)
def test_links_lead_somewhere_and_nothing_is_fetched_from_elsewhere(built: Path) -> None:
    pages = {path: Page(path) for path in built.rglob("*.html")}
    assert len(pages) > 100
    faults = []
    for path, page in pages.items():
        faults += [f"{path}: fetches {url}" for url in page.loaded if urlsplit(url).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                faults.append(f"{path}: no {link}")
            elif parts.fragment and target in pages and target.suffix == ".html":
                known = pages[target].ids
                faults += [] if unquote(parts.fragment) in known else [f"{path}: no {link}"]
    assert not faults, "\n".join(faults[:20])
    assert "<math" in (built / "docs" / "algorithms" / "td3.html").read_text(encoding="utf-8")


@pytest.mark.all
@pytest.mark.timeout(WHOLE_S)
def test_nothing_names_this_machine(built: Path) -> None:
    for path in built.rglob("*.html"):
        assert str(TREE.root) not in path.read_text(encoding="utf-8"), path


@pytest.mark.all
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n\n[b](#nothing)\n\n[d](c.md)\n", ("nothing", "c.md")),
        (
            "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n# A\n\n"
            "```{code-cell} ipython3\n1 / 0\n```\n",
            ("ZeroDivisionError",),
        ),
    ],
)
def test_a_fault_fails_the_build(
    text: str, said: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for group in site.GROUPS:
        tools.ensure_group(group)
    folder = tmp_path / "stage"
    write_changed(folder / f"{site.ROOT}.md", text)
    write_changed(folder / site.SOURCES, json.dumps([]))
    configuration = (TREE.root / "docs" / site.CONFIGURATION).read_text(encoding="utf-8")
    write_changed(folder / site.CONFIGURATION, configuration)
    with pytest.raises(BuildError, match="faults: see above"):
        site.run_sphinx(folder, tmp_path / "kept")
    shown = capfd.readouterr().err
    assert all(word in shown for word in said)
    assert re.search(r"^docs/index\.md", shown, re.MULTILINE)


@pytest.mark.parametrize("code", [0, 2])
def test_what_sphinx_is_told_and_says(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a shell in its place; files are named as the tree has them."""
    asked: list[str] = []
    start = site.start_child

    def start_child(command: list[str], **options: Any) -> Any:
        asked.extend(command)
        assert options["environment"] == {"OWN": "1"}
        said = f"echo {tmp_path}/stage/docs/a.md: $OWN; echo other >&2; exit {code}"
        return start(["sh", "-c", said], **options)

    monkeypatch.setattr(site, "start_child", start_child)
    monkeypatch.setattr(site, "surroundings", lambda: {"OWN": "1"})
    pages = tmp_path / "kept" / "pages"
    (pages / "gone").mkdir(parents=True)
    if code:
        with pytest.raises(BuildError, match=r"^the documentation has faults: see above$"):
            site.run_sphinx(tmp_path / "stage", tmp_path / "kept")
    else:
        assert site.run_sphinx(tmp_path / "stage", tmp_path / "kept") == pages
    assert not pages.exists()
    assert capsys.readouterr().err == "docs/a.md: 1\nother\n"
    kept = ["-d", f"{tmp_path}/kept/doctrees"]
    kept += ["-D", f"nb_execution_cache_path={tmp_path}/kept/executed"]
    assert asked[1:] == [
        *("-m", "sphinx", "-b", "html", "-q", "-a", "-W", "--no-color", *kept),
        *(f"{tmp_path}/stage", str(pages)),
    ]


def test_tutorials_begin_in_a_project_without_what_earlier_ones_wrote(staged: Path) -> None:
    for _ in range(2):
        variables = site.surroundings()
        project = Path(variables["RLT_PROJECT"])
        (project / "runs").mkdir(exist_ok=True)
        (project / "notes.txt").touch()
        (project / "build").mkdir(exist_ok=True)
    site.surroundings()
    assert sorted(path.name for path in project.iterdir()) == ["build", "rlt.toml"]
    settings = Path(variables["IPYTHONDIR"])
    assert {project.parent, settings.parent} == {staged / "work"}
    kernel = settings / "profile_default/ipython_kernel_config.py"
    assert kernel.read_text() == "c.IPKernelApp.log_level = 40\n"


def test_what_is_kept_is_of_the_sources_that_tutorials_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        *("host/rltools_host/documentation/cells.py", "host/rltools_host/documentation/site.py"),
        *("lib/a.h", "lib/notes.md", "host/rltools_host/web/site.py", "examples/b.h"),
    )
    for name in names:
        write_changed(tmp_path / "tree" / name, "a")
    monkeypatch.setattr(TREE, "root", tmp_path / "tree")
    monkeypatch.setattr(site, "work_folder", lambda: tmp_path / "work")
    used = [names[0], names[2]]
    assert sorted(site.executed_files()) == used
    first = site.kept_folder()
    first.mkdir(parents=True)
    assert re.fullmatch("kept-[0-9a-f]{12}", first.name)
    write_changed(tmp_path / "tree" / names[1], "b")
    assert site.kept_folder() == first
    assert first.exists()
    write_changed(tmp_path / "tree" / names[0], "b")
    assert site.kept_folder() != first
    assert not first.exists()


def test_foreign_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="files that `rlt docs` did not write"):
        site.write_site(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_each_command_replaces_its_own_site(tmp_path: Path) -> None:
    with in_place_of_own(tmp_path / "site", site.COMMAND) as new:
        files = {"command": site.COMMAND, "files": ["a.html", MARK]}
        (new / "a.html").touch()
        (new / MARK).write_text(json.dumps(files))
    with pytest.raises(UsageError, match="files that `rlt web` did not write"):
        write_page_of_web(["pendulum-td3"], tmp_path / "site")
    with in_place_of_own(tmp_path / "site", site.COMMAND):
        pass
    assert list((tmp_path / "site").iterdir()) == []

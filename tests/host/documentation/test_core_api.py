"""The pages about the core: what Doxygen finds, with the comments of the headers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rltools_host.documentation import core_api, stage
from rltools_host.toolchain import tools
from rltools_host.tree import TREE


@pytest.mark.all
def test_every_header_is_in_a_page(tmp_path: Path) -> None:
    if not shutil.which("doxygen"):
        pytest.skip("no doxygen")
    pages = core_api.write_pages(tmp_path)
    text = "\n".join((tmp_path / page).read_text(encoding="utf-8") for page in pages)
    place = TREE.include / "rltools"
    for header in place.rglob("*.h"):
        assert f"\n## {header.relative_to(place)}\n" in text or header.parent == place
    assert (
        "### `dense_forward`\n\n```cpp\ntemplate <Activation A, int Batch, int In, int Out" in text
    )
    assert "Each element starts at its bias and accumulates over the inputs in order." in text
    assert "detail::" not in text


def test_without_doxygen_the_page_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "missing_names", lambda names: list(names))
    (page,) = core_api.write_pages(tmp_path)
    assert "apt-get install doxygen" in (tmp_path / page).read_text(encoding="utf-8")
    stage.write_stage(tmp_path, [page])  # no document links to another page of the core


def test_comments_are_text_and_what_is_set_in_stays() -> None:
    lines = ("a<b> is `c_d` and e_f:", "  x = y * z", "[end]")
    assert list(core_api.shown(lines)) == [
        "a\\<b\\> is `c_d` and e\\_f:",
        *("", "```text", "x = y * z", "```", ""),
        "\\[end\\]",
    ]

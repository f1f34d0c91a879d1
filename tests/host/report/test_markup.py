"""Tables and texts as HTML, and times in words."""

from __future__ import annotations

from rltools_host.report.markup import Html, number, text, tile


def test_texts() -> None:
    assert text("<a b='\"'>&") == "&lt;a b=&#x27;&quot;&#x27;&gt;&amp;"
    assert text(Html("<b>")) == "<b>"
    assert text("\ud800") == "?"
    assert (number(None), number(1234.56), number(0.005, 2)) == ("\N{EN DASH}", "1,235", "0.01")
    assert tile("a", "1", "b") == (
        '<div class="tile"><div class="name">a</div><div class="value">1</div>'
        '<div class="note">b</div></div>\n'
    )

"""Tables and texts as HTML, and times in words."""

from __future__ import annotations

from rltools_host.report.markup import Html, number, table, text, tile


def test_texts() -> None:
    assert text("<a b='\"'>&") == "&lt;a b=&#x27;&quot;&#x27;&gt;&amp;"
    assert text(Html("<b>")) == "<b>"
    assert text("\ud800") == "?"
    assert (number(None), number(1234.56), number(0.005, 2)) == ("\N{EN DASH}", "1,235", "0.01")
    assert tile("a", "1", "b") == (
        '<div class="tile"><div class="name">a</div><div class="value">1</div>'
        '<div class="note">b</div></div>\n'
    )


def test_tables() -> None:
    rows = [("<a>", "1", "2"), ("b", "3", Html("<i>"))]
    assert table(("", "x", "y"), rows) == (
        "<table><thead><tr><th></th><th>x</th><th>y</th></tr></thead><tbody>"
        '<tr><th>&lt;a&gt;</th><td class="number">1</td><td class="number">2</td></tr>'
        '<tr><th>b</th><td class="number">3</td><td class="number"><i></td></tr>'
        "</tbody></table>"
    )
    assert table((), rows[:1], "wide", ("", "mono")) == (
        '<table class="wide"><tbody><tr><th>&lt;a&gt;</th><td>1</td><td class="mono">2</td></tr>'
        "</tbody></table>"
    )
    assert table((), rows[:1], columns=("",)).count('<td class="number">2</td>') == 1

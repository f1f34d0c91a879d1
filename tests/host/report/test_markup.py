"""Tables and texts as HTML, and times in words."""

from __future__ import annotations

import pytest

from rltools_host.report.markup import Html, Section, document, duration, number, table, text, tile


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (2.5, "2.5 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (60.0, "1 min 0 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7325.0, "2 h 2 min"),
    ],
)
def test_times_in_words(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


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


def test_a_page_by_default_is_of_the_command_report() -> None:
    parts = [Section("One", "lead", "body", ".one{}\n"), Section("Two", "", "")]
    page = document(
        title="t", kicker="k", heading="h", verdict="v", tiles="x", sections=parts, folder="<f>"
    )
    assert page.startswith("<!doctype html>\n")
    assert ".one{}\n</style>" in page
    assert (
        '<p class="kicker">k</p>\n<h1>h</h1>\n<p class="verdict">v</p>\n</header>\n'
        '<div class="tiles">\nx\n</div>\n'
        "<section>\n<h2>One</h2>\n<p>lead</p>\nbody\n</section>\n"
        "<section>\n<h2>Two</h2>\n<p></p>\n\n</section>\n\n"
        "<footer>Written by <code>rlt report</code> from the run folder\n<code>&lt;f&gt;</code>."
    ) in page

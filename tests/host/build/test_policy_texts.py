"""Texts of policies: what they may be, and how C++ and sentences have them."""

from __future__ import annotations

import pytest

from rltools_host.build.description import (
    comment_text,
    described,
    is_policy_text,
    is_subject_name,
    string_literal,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((text, True) for text in ("a", "a" * 5, "ää", "a b", "|", "'")),
        *((text, False) for text in ("", "a" * 6, "äää", 'a"', "a\\", "a?", "a\n", "\x7f")),
        *((value, False) for value in (None, 5, b"a")),
    ],
)
def test_texts_of_up_to_five_bytes(value: object, expected: bool) -> None:
    assert is_policy_text(value, 5) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((text, True) for text in ("a", "7", "gym-servo.v1_b+c", "a" * 31)),
        *((text, False) for text in ("", "-a", ".a", "a b", "a/b", "ä", "a" * 32)),
        *((value, False) for value in (None, 7)),
    ],
)
def test_names_of_experiments(value: object, expected: bool) -> None:
    assert is_subject_name(value) is expected


def test_in_sources_and_sentences() -> None:
    assert described(23) == 'plain text of 1 to 23 bytes, without ", \\ and ?'
    assert string_literal(' ~a"\\?\x1f\x7fé') == r'" ~a\042\134\077\037\177\303\251"'
    assert comment_text("a\\\n\x1bé?") == "a___é_"

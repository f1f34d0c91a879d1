"""Texts of others in C++ that is written here: they stay what they are, in quotes or a comment."""

from __future__ import annotations


def string_literal(text: str) -> str:
    """A C string literal; whatever is not plain ASCII is escaped."""
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def comment_text(text: str) -> str:
    """Text that cannot end a comment's line, and cannot go on in the next one."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)

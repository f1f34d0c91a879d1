"""What the tests of `rlt web`'s page do with it."""

from __future__ import annotations

from typing import Any


def open_page(page: Any, address: str) -> None:
    page.goto("about:blank")
    page.goto(address)
    page.locator("#reset:enabled").wait_for()  # #train is not, where a finished run was kept


def open_file(page: Any, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.set_input_files("#open", file)

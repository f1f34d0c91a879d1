"""docs/protocol.md names every text that the firmware can send."""

from __future__ import annotations

import re

from rltools_host import paths

APPLICATION = paths.REPOSITORY / "firmware" / "app"
TEXT = re.compile(r'"((?:training stopped|\w+ refused|there is)[^"]*)"')


def test_every_text_is_documented() -> None:
    document = (paths.REPOSITORY / "docs" / "protocol.md").read_text()
    files = sorted(APPLICATION.rglob("*.h")) + sorted(APPLICATION.rglob("*.cpp"))
    texts = {text for file in files for text in TEXT.findall(file.read_text())}
    assert len(texts) > 12
    for text in texts:
        # For the compiler: reasons without a text.
        if text not in ("checkpoint refused", "training refused: arithmetic fails"):
            assert f"`{text}`" in document, text
            assert len(text) <= 50, text


def test_every_documented_text_exists() -> None:
    document = (paths.REPOSITORY / "docs" / "protocol.md").read_text()
    code = "".join(file.read_text() for file in sorted(APPLICATION.rglob("*.h")))
    listed = re.findall(r"^- `([^`]+)`", document, re.MULTILINE)
    assert len(listed) > 12
    for text in listed:
        if not text.startswith("fault at"):
            assert f'"{text}"' in code, text

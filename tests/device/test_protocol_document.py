"""docs/protocol.md names every text that the firmware can send, and what the dialect defines."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from rltools_host.boards.messages import DROP_REASONS, SLOT_ERRORS
from rltools_host.tree import TREE

APPLICATION = TREE.root / "firmware" / "app"
TEXT = re.compile(r'"((?:training stopped|\w+ (?:refused|dropped)|there is)[^"]*)"')


def test_every_text_is_documented() -> None:
    document = (TREE.root / "docs" / "protocol.md").read_text()
    files = sorted(APPLICATION.rglob("*.h")) + sorted(APPLICATION.rglob("*.cpp"))
    texts = {text for file in files for text in TEXT.findall(file.read_text())}
    assert len(texts) > 12
    for text in texts:
        # For the compiler: reasons without a text.
        if text not in ("checkpoint refused", "training refused: arithmetic fails"):
            assert f"`{text}`" in document, text
            assert len(text) <= 50, text


def test_every_documented_text_exists() -> None:
    document = (TREE.root / "docs" / "protocol.md").read_text()
    code = "".join(file.read_text() for file in sorted(APPLICATION.rglob("*.h")))
    listed = re.findall(r"^- `([^`]+)`", document, re.MULTILINE)
    assert len(listed) > 12
    for text in listed:
        if not text.startswith("fault at"):
            assert f'"{text}"' in code, text


def test_messages_and_commands_of_the_dialect_are_documented() -> None:
    """Each by its name, commands with their numbers, and the table of each slot's use."""
    document = (TREE.root / "docs" / "protocol.md").read_text()
    dialect = ElementTree.parse(TREE.protocol_generator.with_name("rltools.xml"))
    messages = [entry.get("name") for entry in dialect.iter("message")]
    assert len(messages) > 8
    for name in messages:
        assert f"`{name}`" in document, name
    enums = {str(enum.get("name")): enum for enum in dialect.iter("enum")}
    for entry in enums["MAV_CMD"].findall("entry"):
        assert f"`{entry.get('name')}` ({entry.get('value')})" in document, entry.get("name")
    for name in ("RLT_STATE", "RLT_SLOT_USE"):
        for entry in enums[name].findall("entry"):
            short = str(entry.get("name")).removeprefix(f"{name}_")
            assert f"| {entry.get('value')} {short} |" in document, short


def test_numbers_of_slots_are_documented() -> None:
    document = (TREE.root / "docs" / "protocol.md").read_text()
    section = document.partition("## Policies")[2].partition("## Checkpoint")[0]
    numbers = re.findall(r"^\| (\d) \|([^|]*)\|", section, re.MULTILINE)
    rows = [number for number, _ in numbers]
    assert rows == [str(number) for number in range(len(SLOT_ERRORS))]
    drops = [text.strip() for _, text in numbers if text.strip()]
    assert drops[1:] == list(DROP_REASONS.values())[1:]

"""docs/protocol.md names what the dialect defines, and the numbers of the slots."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from rltools_host.boards.messages import DROP_REASONS, SLOT_ERRORS
from rltools_host.tree import TREE


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

"""What lies in the board's memories."""

from __future__ import annotations

from rltools_host.report.markup import Section, number, text
from rltools_host.report.memory_map import memory_map
from rltools_host.report.run_data import RunData


def section(data: RunData) -> Section | None:
    regions = memory_map(data.metadata, len(data.image.data) if data.image else 0)
    if not regions:
        return None
    bars = []
    for region in regions:
        spans, items = [], []
        for part in region.parts:
            share = 100 * part.bytes / region.bytes
            spans.append(
                f'<span class="part-{text(part.kind)}" style="width:{share:.3f}%" '
                f'title="{text(part.name)}: {number(part.bytes)} bytes"></span>'
            )
            items.append(
                f'<li><i class="part-{text(part.kind)}"></i>{text(part.name)} '
                f"<b>{number(part.bytes)}</b></li>"
            )
        used = region.bytes - sum(part.bytes for part in region.parts if part.kind == "free")
        bars.append(
            f"<h3>{text(region.name)} · {number(used)} of {number(region.bytes)} bytes "
            f"({100 * used / region.bytes:.1f} %)</h3>"
            f'<div class="bar">{"".join(spans)}</div><ul class="parts">{"".join(items)}</ul>'
        )
    lead = (
        "What the linker placed where, in bytes. The board has no other memory: what does not fit "
        "fails the build."
    )
    return Section("Memory", lead, "".join(bars))

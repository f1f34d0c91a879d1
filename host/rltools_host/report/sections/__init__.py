"""The page's sections, in their order; a section is a function of a run's data.

A section without anything to show returns None.
"""

from collections.abc import Callable

from rltools_host.report.markup import Section
from rltools_host.report.run_data import RunData
from rltools_host.report.sections import board, episodes, flights, fly, learning, provenance

SECTIONS: tuple[Callable[[RunData], Section | None], ...] = (
    learning.returns,
    episodes.one_episode,
    episodes.all_episodes,
    flights.section,
    fly.over_boards,
    fly.with_px4,
    provenance.same_bits,
    board.memory,
    board.timings,
    board.hardware_in_loop,
    learning.metrics,
    provenance.hyperparameters,
    provenance.provenance,
)

"""The page's sections, one module each; a section is a function of a run's data.

Its order on the page is that of SECTIONS. A section without anything to show returns None.
"""

from collections.abc import Callable

from rltools_host.report.markup import Section
from rltools_host.report.run_data import RunData
from rltools_host.report.sections import (
    benchmark,
    benchmark_ppo,
    board_flights,
    episode,
    flights,
    hardware_in_loop,
    hyperparameters,
    learning,
    memory,
    metrics,
    provenance,
    px4_flight,
    returns,
    same_bits,
    timings,
)

SECTIONS: tuple[Callable[[RunData], Section | None], ...] = (
    learning.section,
    episode.section,
    returns.section,
    flights.section,
    board_flights.section,
    px4_flight.section,
    same_bits.section,
    memory.section,
    timings.section,
    hardware_in_loop.section,
    benchmark.section,
    benchmark_ppo.section,
    metrics.section,
    hyperparameters.section,
    provenance.section,
)

"""Which tests run: those marked slow, exhaustive or hil only when asked for."""

from __future__ import annotations

import signal

import pytest

OPT_IN = {
    "slow": "takes minutes: full training runs on the emulated board",
    "exhaustive": "goes through all floats, or through many seeds",
    "hil": "needs a real board, connected",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, description in OPT_IN.items():
        parser.addoption(
            f"--{marker}",
            action="store_true",
            help=f"also run tests marked {marker}: {description}",
        )


def pytest_configure(config: pytest.Config) -> None:
    for marker, description in OPT_IN.items():
        config.addinivalue_line("markers", f"{marker}: {description}; only with --{marker}")
    config.addinivalue_line("markers", "device: trains or runs on an emulated board")
    # Tests press Ctrl-C. A shell that starts them in the background ignores it, and so would they.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker in OPT_IN:
        if config.getoption(f"--{marker}"):
            continue
        skip = pytest.mark.skip(reason=f"only with --{marker}")
        for item in items:
            if marker in item.keywords:
                item.add_marker(skip)

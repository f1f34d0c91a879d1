"""The airframes that `rlt fit` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import fit
from rltools_host.errors import UsageError


@pytest.mark.parametrize("given", [(None, None), (20.0, (1.0, 1.0)), (1e-6, (0.02, 0.03))])
def test_airframes_at_their_bounds(given: tuple[Any, Any]) -> None:
    fit.require_airframe(*given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((0.0, None), "--mass 0: choose a number above 0, to 20 kg"),
        ((float("nan"), None), "--mass nan: choose a number above 0, to 20 kg"),
        ((1.0, (1.01, 0.1)), "--rotors 1.01: choose a number above 0, to 1 m"),
    ],
)
def test_airframes_that_make_no_sense(given: tuple[Any, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        fit.require_airframe(*given)
    assert str(caught.value).startswith(sentence)


def test_a_file_needs_mass_and_places() -> None:
    for mass_kg, rotors_m in ((None, (0.1, 0.1)), (1.0, None)):
        with pytest.raises(UsageError, match=r"^--out needs --mass and --rotors: "):
            fit.run(Path("x.csv"), mass_kg, rotors_m, Path("out.json"))

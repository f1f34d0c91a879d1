"""The airframes that `rlt fit` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.commands import fit
from rltools_host.errors import UsageError


@pytest.mark.parametrize("given", [(None, None, None), (20.0, 1.0, 1.0), (1e-6, 0.02, 0.03)])
def test_airframes_at_their_bounds(given: tuple[float | None, ...]) -> None:
    fit.require_airframe(*given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((0.0, None, None), "--mass 0: choose a number above 0, to 20 kg"),
        ((float("nan"), None, None), "--mass nan: choose a number above 0, to 20 kg"),
        ((1.0, 1.01, 0.1), "--rotor-x 1.01: choose a number above 0, to 1 m"),
        ((1.0, 0.1, None), "--rotor-x and --rotor-y go together"),
        ((1.0, None, 0.1), "--rotor-x and --rotor-y go together"),
    ],
)
def test_airframes_that_make_no_sense(given: tuple[float | None, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        fit.require_airframe(*given)
    assert str(caught.value).startswith(sentence)


def test_a_file_needs_mass_and_places() -> None:
    for mass_kg, rotor_m in ((None, 0.1), (1.0, None)):
        with pytest.raises(UsageError, match=r"^--out needs --mass, --rotor-x and --rotor-y: "):
            fit.run(Path("x.csv"), mass_kg, rotor_m, rotor_m, Path("out.json"))

"""The environments of the core and of a project, and their settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import catalog
from rltools_host.build.catalog import find_environment, list_environments
from rltools_host.build.description import Parameter
from rltools_host.environments import library
from rltools_host.errors import BuildError, UsageError

PENDULUM = find_environment("Pendulum-v1")


def test_a_new_header_appears_by_itself(project: Path) -> None:
    folder = project / "environments"
    folder.mkdir()
    (folder / "motors").mkdir()
    (folder / "motors" / "brushed_motor.h").write_text(
        "// Requires: hosted\n"
        "struct BrushedMotor {\n"
        '  static constexpr const char* kName = "Motor-v0";\n'
        "  static constexpr int kEpisodeSteps = 30;\n};\n"
    )
    (folder / "cart.h").write_text('  static constexpr const char* kName = "Cart-v0";\n')
    (folder / "shared.h").write_text("// What kName is: a name.\n")
    assert {PENDULUM.name, "Cart-v0", "Motor-v0"} < {known.name for known in list_environments()}
    cart, motor = find_environment("Cart-v0"), find_environment("Motor-v0")
    assert (cart.name, cart.episode_steps, cart.requirements) == ("Cart-v0", None, ())
    assert (motor.name, motor.episode_steps) == ("Motor-v0", 30)
    assert (motor.library, motor.requirements) == ("environment-brushed-motor", ("hosted",))


def test_a_header_that_says_what_is_not_compiled_is_refused() -> None:
    other = catalog.Environment("Pendulum-v1", PENDULUM.header, 300)
    with pytest.raises(BuildError, match="with 300 steps an episode, and its compiled code"):
        library.loaded(other, False)


SETTINGS = (
    Parameter("mass_kg", "F32", 1.0, 0.25, 4.0, "kg", "Of the body."),
    Parameter("table", "U32", 2.0, 0.0, 7.0, "", "Which airframe."),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mass_kg", 0.25), ("mass_kg", 4.0), ("table", 0.0), ("table", 7.0), ("mass_kg", 1)],
)
def test_settings_reach_their_bounds(name: str, value: float) -> None:
    bits = library.setting_bits("a drone", SETTINGS, {name: value})
    given = {"mass_kg": 1.0, "table": 2.0, name: value}
    assert bits[:1].view("f4")[0] == given["mass_kg"]
    assert bits[1] == given["table"]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("mass_kg", 0.2499, r"mass_kg=0.2499 is out of bounds: choose a number from 0.25 to 4 kg"),
        ("tabel", 1, r'unknown setting of a drone "tabel": did you mean table'),
    ],
)
def test_a_setting_beyond_them_is_one_sentence(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        library.setting_bits("a drone", SETTINGS, {name: value})

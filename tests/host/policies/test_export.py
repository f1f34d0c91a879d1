"""Exported policies: the header compiles alone, strictly, and gives the bits of the image."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_run import make_policy_run
from policy_samples import patched, sample_images
from programs import output_of
from rltools_host.commands.export import run as export_run
from rltools_host.errors import DamagedFileError, RefusedError
from rltools_host.policies import export, folders
from rltools_host.policies.core import float_literal
from rltools_host.policies.image import PolicyImage, parse_policy

STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wdouble-promotion", "-Wconversion", "-Werror"]
# Of C and C++, the oldest and a newer one each, with all that its writers may warn of.
LANGUAGES = {
    "c99": ["gcc", "-xc", "-std=c99"],
    "c11": ["gcc", "-xc", "-std=c11"],
    "c++11": ["g++", "-xc++", "-std=c++11", "-Wold-style-cast"],
    "c++17": ["g++", "-xc++", "-std=c++17", "-Wold-style-cast"],
}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion"]
CORTEX_M7 = ["-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"]
CORTEX_M3 = ["-mcpu=cortex-m3", "-mthumb"]

# Reads observations from stdin, writes both kinds of action; exit code 1 unless verified.
PROGRAM = """
#include <cstdio>
#include "policy.h"
namespace policy = {name};
int main() {{
  float observation[policy::kObservationDim];
  float output[policy::kOutputDim], action[policy::kActionDim];
  while (std::fread(observation, sizeof(observation), 1, stdin) == 1) {{
    const bool acts = policy::evaluate_normalized(observation, output);
    if (policy::evaluate(observation, action) != acts) return 2;
    std::fwrite(output, sizeof(output), 1, stdout);
    std::fwrite(action, sizeof(action), 1, stdout);
  }}
  return policy::verify() ? 0 : 1;
}}
"""


# The same in C.
C_PROGRAM = """
#include <stdio.h>
#include "policy.h"
int main(void) {{
  float observation[{guard}_OBSERVATION_DIM];
  float output[{guard}_OUTPUT_DIM], action[{guard}_ACTION_DIM];
  while (fread(observation, sizeof(observation), 1, stdin) == 1) {{
    {name}_evaluate_normalized(observation, output);
    {name}_evaluate(observation, action);
    fwrite(output, sizeof(output), 1, stdout);
    fwrite(action, sizeof(action), 1, stdout);
  }}
  return {name}_verify() ? 0 : 1;
}}
"""


def compile_header(image: PolicyImage, folder: Path, *flags: str) -> Path:
    (folder / "policy.h").write_text(export.c_header(image))
    name = export.identifier(image.experiment) + "_policy"
    (folder / "program.cpp").write_text(PROGRAM.format(name=name))
    program = folder / "program"
    output_of("g++", *STRICT, *flags, folder / "program.cpp", "-o", program)
    return program


def run_program(
    program: Path, image: PolicyImage, observations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and actions."""
    result = subprocess.run(
        [program], input=observations.astype("<f4").tobytes(), capture_output=True, timeout=60
    )
    assert result.returncode == 0, "verify() is false"
    values = np.frombuffer(result.stdout, "<f4").reshape(len(observations), -1)
    return values[:, : -len(image.actions)], values[:, -len(image.actions) :]


def observations_of(image: PolicyImage, count: int) -> np.ndarray:
    minimum = np.array([channel.minimum for channel in image.observations])
    maximum = np.array([channel.maximum for channel in image.observations])
    center, span = (minimum + maximum) / 2, maximum - minimum
    draws = np.random.default_rng(5).uniform(-1.5, 1.5, (count, len(minimum)))
    return (center + span * draws).astype(np.float32)


@pytest.mark.parametrize("name", ["choosing", "masked", "remembering_quadrotor_4"])
def test_the_header_gives_the_bits_of_the_image(name: str, tmp_path: Path) -> None:
    """And the safe action where an observation is not finite."""
    image = parse_policy(sample_images()[name])
    # contraction and the machine's vectors, which must change nothing
    program = compile_header(image, tmp_path, "-O3", "-march=native", "-ffp-contract=fast")
    observations = observations_of(image, 300)
    broken = np.repeat(observations[:3], observations.shape[1], axis=0)
    broken[range(len(broken)), np.arange(len(broken)) % observations.shape[1]] = np.repeat(
        np.float32([np.nan, np.inf, -np.inf]), observations.shape[1]
    )
    results = run_program(program, image, np.concatenate([observations, broken]))
    np.testing.assert_array_equal(results[0][:300], image.output(observations))
    np.testing.assert_array_equal(results[1][:300], image.evaluate(observations))
    safe = image.runner.safe_action()[0]
    assert (image.evaluate(broken) == safe).all()
    assert (results[1][300:] == safe).all()
    assert (results[0][300:] == export.safe_output(image)).all()


def test_the_safe_action_is_that_of_the_images_contract() -> None:
    """A quadrotor's rotors stand still; the middle of their ranges would be half its thrust."""
    quadrotor = parse_policy(sample_images()["remembering_quadrotor_4"])
    action, output = quadrotor.runner.safe_action()
    assert (action.tolist(), output.tolist()) == ([0.0] * 4, [-1.0] * 4)
    assert export.safe_output(quadrotor).tolist() == [-1.0] * 4
    zeros = "{0.0f, 0.0f, 0.0f, 0.0f}"
    data = folders.data_header(quadrotor)
    assert f"constexpr float kSafeAction[] = {zeros};" in data
    header = folders.policy_header(quadrotor)
    assert f"static const float remembering_safe_action[] = {zeros};" in header
    action, output = parse_policy(sample_images()["relu"]).runner.safe_action()
    assert (action.tolist(), output.tolist()) == ([0.5, 0.25], [0.0, 0.0])


def test_the_header_needs_no_optimization_and_no_fma_instruction(tmp_path: Path) -> None:
    image = parse_policy(sample_images()["pendulum"])
    program = compile_header(image, tmp_path, "-O0", *(["-march=x86-64"] if is_x86() else []))
    observations = observations_of(image, 50)
    results = run_program(program, image, observations)
    np.testing.assert_array_equal(results[1], image.evaluate(observations))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_header_is_c99_and_cpp11(language: str, tmp_path: Path) -> None:
    image = parse_policy(sample_images()["masked"])
    prefix = export.identifier(image.experiment) + "_policy"
    (tmp_path / "policy.h").write_text(export.c_header(image))
    source = tmp_path / "program.c"
    source.write_text(C_PROGRAM.format(name=prefix, guard=prefix.upper()))
    flags = ["-O1", "-Werror", *WARNINGS, str(source), "-o", str(tmp_path / "program")]
    subprocess.run([*LANGUAGES[language], *flags], check=True, timeout=120)
    observations = observations_of(image, 50)
    results = run_program(tmp_path / "program", image, observations)
    np.testing.assert_array_equal(results[0], image.output(observations))
    np.testing.assert_array_equal(results[1], image.evaluate(observations))


def is_x86() -> bool:
    result = subprocess.run(["g++", "-dumpmachine"], capture_output=True, text=True, check=True)
    return result.stdout.startswith("x86_64")


def test_the_header_compiles_for_cortex_m7(tmp_path: Path) -> None:
    needed = symbols_needed(parse_policy(sample_images()["gelu"]), tmp_path, CORTEX_M7)
    assert needed <= {"memcpy", "memcmp", "memset"}


def test_the_header_trusts_no_library_fmaf_on_cortex_m3(tmp_path: Path) -> None:
    needed = symbols_needed(parse_policy(sample_images()["pendulum"]), tmp_path, CORTEX_M3)
    assert "__aeabi_fadd" in needed
    assert "fmaf" not in needed


def symbols_needed(image: PolicyImage, folder: Path, processor: list[str]) -> set[str]:
    """What firmware with the policy takes from libraries."""
    if shutil.which("arm-none-eabi-g++") is None:
        pytest.skip("arm-none-eabi-g++ is not installed")
    (folder / "policy.h").write_text(export.c_header(image))
    source = folder / "firmware.cpp"
    namespace = export.identifier(image.experiment) + "_policy"
    source.write_text(
        '#include "policy.h"\n'
        f"void control(const float* o, float* a) {{ {namespace}::evaluate(o, a); }}\n"
        f"bool check() {{ return {namespace}::verify(); }}\n"
    )
    flags = ["-O2", "-fno-exceptions", "-fno-rtti", *STRICT, *processor]
    command = ["arm-none-eabi-g++", *flags, "-c", str(source), "-o", str(folder / "firmware.o")]
    subprocess.run(command, check=True, timeout=120)
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-u", folder / "firmware.o"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return set(symbols) - {"U"}


def test_fast_math_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy.h").write_text(export.c_header(parse_policy(sample_images()["relu"])))
    result = subprocess.run(
        ["g++", "-std=c++17", "-ffast-math", "-fsyntax-only", "-x", "c++", tmp_path / "policy.h"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode != 0
    assert "without -ffast-math" in result.stderr


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_literals_are_exact(value: float) -> None:
    literal = float_literal(value)
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?f", literal)
    assert re.search(r"[.e]", literal)  # 1f is none
    assert np.float32(literal[:-1]).tobytes() == np.float32(value).tobytes()


def test_texts_cannot_leave_their_literals() -> None:
    image = parse_policy(sample_images()["relu"])
    hostile = patched(image.data, 80, "32s", b'"; system("x"); //\n\\??/')
    text = export.c_header(parse_policy(hostile))
    assert '_EXPERIMENT "\\042; system(\\042x\\042); //\\012\\134\\077\\077/"\n' in text
    assert "// Policy of " in text.splitlines()[0]
    assert "system" in text.splitlines()[0]
    assert text.splitlines()[1].startswith("// Written by")


def test_an_image_is_copied_byte_for_byte(tmp_path: Path) -> None:
    image = sample_images()["pendulum"]
    run = make_policy_run(tmp_path / "run", image)
    path = export_run(str(run), "image", tmp_path / "copy.rltp")
    assert path.read_bytes() == image
    assert export_run(str(run), "c", tmp_path) == tmp_path / "pendulum_td3_policy.h"


LENGTH = len(sample_images()["pendulum"])


@pytest.mark.parametrize(
    ("offset", "value", "error", "sentence"),
    [
        (
            144 + 24 + 192 + 4 * 300,
            math.nan,
            DamagedFileError,
            r"not_finite.*layer 1 is infinite or not a number",
        ),
        (LENGTH - 4, 0.5, RefusedError, "example 7 gives other bits"),
        (0, None, RefusedError, "comes from another training state"),
    ],
)
def test_what_is_not_exported(
    tmp_path: Path, offset: int, value: float | None, error: type[Exception], sentence: str
) -> None:
    run = make_policy_run(tmp_path / "run")
    if value is None:
        (run / "run.json").write_text(json.dumps({"state_sha256": "00" * 32}))
    else:
        (run / "policy.rltp").write_bytes(patched(sample_images()["pendulum"], offset, "f", value))
    with pytest.raises(error, match=sentence):
        export_run(str(run), "c", tmp_path / "policy.h")
    assert not (tmp_path / "policy.h").exists()


def test_an_array_has_the_name_of_its_file(tmp_path: Path) -> None:
    image = sample_images()["pendulum"]
    run = make_policy_run(tmp_path / "run", image)
    path = export_run(str(run), "c-image", tmp_path / "2 hover.h")
    array = export.identifier(path.stem)
    program = f'#include "{path.name}"\nstatic_assert(sizeof({array}) == {len(image)});\n'
    (tmp_path / "program.cpp").write_text(program)
    flags = ["-std=c++17", "-fsyntax-only", "-Wno-unused-variable"]
    subprocess.run(["g++", *flags, str(tmp_path / "program.cpp")], check=True, timeout=60)

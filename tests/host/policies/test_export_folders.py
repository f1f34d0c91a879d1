"""Exports that are folders: they stand alone, compile as their platforms do, and give every bit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from policy_run import make_policy_run
from policy_samples import sample_images
from programs import output_of
from rltools_host.build.description import ranges_of
from rltools_host.build.firmware import platformio_environment
from rltools_host.build.tools import missing_names
from rltools_host.commands.export import run as export_run
from rltools_host.errors import UsageError
from rltools_host.policies import export, folders
from rltools_host.policies.acting import HiddenState, History, history_values
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.tree import TREE

INTERFACE = (
    f"-I{TREE.root / 'tests/host/policies/arduino_interface'}",
    f"-I{TREE.root / 'tests/lib/core'}",
)
# As cores of Arduino compile; none of them forbids contraction, which the library does by itself.
ARDUINO_FLAGS = (
    *("-std=gnu++17", "-Os", "-ffunction-sections", "-fdata-sections", "-fno-exceptions"),
    *("-fno-rtti", "-fno-threadsafe-statics", "-ffp-contract=fast"),
)
STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Wdouble-promotion", "-Werror")
FPU = ("-mthumb", "-mfloat-abi=hard")
PROCESSORS = {
    "Teensy 4": ("arm-none-eabi-g++", "-mcpu=cortex-m7", *FPU, "-mfpu=fpv5-d16", "-D__IMXRT1062__"),
    "Cortex-M7": ("arm-none-eabi-g++", "-mcpu=cortex-m7", *FPU, "-mfpu=fpv5-d16"),
    "Cortex-M0+": ("arm-none-eabi-g++", "-mcpu=cortex-m0plus", "-mthumb"),
    "rv32imc": ("riscv64-unknown-elf-g++", "-march=rv32imc", "-mabi=ilp32"),
}
RISCV = (*("--specs=picolibc.specs", "-isystem", str(TREE.root / "lib" / "freestanding")),)
# Reads observations; writes what begin() returned, then what step() returned and each action.
PROGRAM = """
#include <cstdio>
#include <cstring>
#include <{name}.h>
int main() {{
  const unsigned char accepted = {name}.begin();
  std::fwrite(&accepted, 1, 1, stdout);
  float observation[{name}Class::kObservationDim], action[{name}Class::kActionDim];
  unsigned now_us = 0xfffff000u;
  while (std::fread(observation, sizeof(observation), 1, stdin) == 1) {{
    now_us += {name}Class::kStepInterval_us;
    const unsigned char acted = {name}.step(now_us, observation, action);
    // Before the next tick the action is held, and with it whether it is the safe one.
    float held[{name}Class::kActionDim];
    if ({name}.step(now_us + 1, observation, held) != (acted == 1)) return 1;
    if (std::memcmp(held, action, sizeof(action)) != 0) return 1;
    std::fwrite(&acted, 1, 1, stdout);
    std::fwrite(action, sizeof(action), 1, stdout);
  }}
}}
"""


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, result.stdout + result.stderr
    return result  # type: ignore[no-any-return]


def sample(name: str) -> PolicyImage:
    return parse_policy(sample_images()[name])


def arduino_library(image: PolicyImage, folder: Path) -> Path:
    """Written to a path with a space, as Arduino's own folders have."""
    name, files = folders.arduino_library(image)
    library = folder / "My libraries" / name
    folders.write_folder(library, files, folders.ARDUINO_MARK)
    return library


def compile_for(processor: str, source: Path, target: Path, *flags: str) -> str:
    compiler, *own = PROCESSORS[processor]
    is_riscv = compiler.startswith("riscv")
    if missing_names([compiler, *(["picolibc"] if is_riscv else [])]):
        pytest.skip(f"no compiler for {processor} is installed")
    command = [compiler, *own, *(RISCV if is_riscv else ()), *ARDUINO_FLAGS, *STRICT, *flags]
    return run(*command, "-c", source, "-o", target).stderr


@pytest.mark.parametrize(
    "processor",
    [
        name if name in ("Cortex-M7", "rv32imc") else pytest.param(name, marks=pytest.mark.all)
        for name in PROCESSORS
    ],
)
def test_the_arduino_library_compiles_alone(processor: str, tmp_path: Path) -> None:
    library = arduino_library(sample("pendulum"), tmp_path)
    name = library.name
    include = f"-I{library / 'src'}"
    target = tmp_path / "library.o"
    compile_for(processor, library / "src" / f"{name}.cpp", target, include)
    prefix = PROCESSORS[processor][0].removesuffix("g++")
    headers = run(f"{prefix}objdump", "-h", target).stdout
    image_bytes = len(sample_images()["pendulum"])
    sizes = {
        name: int(size, 16)
        for name, size in re.findall(r"^ *\d+ (\S+) +(\w+)", headers, re.MULTILINE)
    }
    # The image is a constant; on a Teensy 4 one that stays in flash.
    place = ".progmem" if processor == "Teensy 4" else ".rodata"
    assert any(section.startswith(place) and size >= image_bytes for section, size in sizes.items())
    written = sum(size for section, size in sizes.items() if re.match(r"\.(data|bss)", section))
    assert written < 2048
    # The sketch, as the builder compiles it: behind Arduino.h, and with C++'s suffix.
    sketch = tmp_path / "sketch.cpp"
    text = (library / "examples/Control/Control.ino").read_text()
    sketch.write_text(f"#include <Arduino.h>\n{text}")
    compile_for(processor, sketch, tmp_path / "sketch.o", include, *INTERFACE)


@pytest.mark.parametrize(
    "network",
    [
        *("choosing", "summing_quadrotor", "lstm_quadrotor"),
        *(
            pytest.param(name, marks=pytest.mark.all)
            for name in ("remembering_quadrotor_4", "gelu")
        ),
    ],
)
def test_the_arduino_library_gives_the_bits_of_the_run(network: str, tmp_path: Path) -> None:
    image = sample(network)
    library = arduino_library(image, tmp_path)
    program = tmp_path / "program"
    (tmp_path / "program.cpp").write_text(PROGRAM.format(name=library.name))
    sources = (library / "src" / f"{library.name}.cpp", tmp_path / "program.cpp")
    output_of(
        "g++", *ARDUINO_FLAGS, "-march=native", f"-I{library / 'src'}", *sources, "-o", program
    )
    minimum = np.array([channel.minimum for channel in image.contract.observations])
    maximum = np.array([channel.maximum for channel in image.contract.observations])
    draws = np.random.default_rng(5).uniform(0, 1, (100, len(minimum)))
    observations = (minimum + (maximum - minimum) * draws).astype("<f4")
    observations[50, 0] = np.nan
    result = subprocess.run(
        [program], input=observations.tobytes(), capture_output=True, timeout=60, check=True
    ).stdout
    assert result[0] == 1
    row = np.dtype([("acted", "u1"), ("action", "<f4", (len(image.actions),))])
    rows = np.frombuffer(result[1:], row)
    assert len(rows) == 100
    history = History(image.added_inputs, len(image.actions))
    state = HiddenState(image)
    expected = np.empty((100, len(image.actions)), np.float32)
    for index, observation in enumerate(observations):
        if index == 50:
            actions, kept = (each[None] for each in image.runner.safe_action())
            state.fail("observation_not_finite")
        else:
            now_us = (index + 1) * image.step_interval_us
            outputs, actions = state.run(now_us, history.inputs(observation))
            kept = history_values(outputs, actions, image.actions)
        history.add(kept, acted_on=observation)
        expected[index] = actions[0]
    assert rows["acted"].tolist() == [*[1] * 50, 0, *[1] * 49]
    assert rows["action"].tobytes() == expected.tobytes()


# A board whose clock runs 7 us between two looks at it, and turns around soon; what its pins read
# comes from a file, and ends the program with it. A number is printed with the time.
BOARD = """
#include <cstdio>
#include <cstdlib>
#include <Arduino.h>
static uint32_t now_us = 0xffff0000u;
TestSerial Serial;
unsigned long micros() { return now_us += 7; }
int analogRead(unsigned char pin) {
  int expected, value;
  if (std::scanf("%d %d", &expected, &value) != 2) std::exit(0);
  if (expected + A0 != pin) std::exit(1);
  return value;
}
void TestSerial::begin(unsigned long baud) { std::printf("%lu baud\\n", baud); }
void TestSerial::println(float value) {
  std::printf("%lu %.9g\\n", static_cast<unsigned long>(now_us), static_cast<double>(value));
}
void TestSerial::println(const char* text) { std::printf("%s\\n", text); }
int main() {
  setup();
  for (;;) loop();
}
"""


def flip_last_byte(data: Path) -> None:
    literals = re.findall(r"0x[0-9a-f]{2},", data.read_text())
    head, _, tail = data.read_text().rpartition(literals[-1])
    data.write_text(f"{head}0x{int(literals[-1][:-1], 16) ^ 1:02x},{tail}")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_sketch_acts_at_the_contracts_rate_if_the_bits_are_right(
    is_damaged: bool, tmp_path: Path
) -> None:
    image = sample("pendulum")
    library = arduino_library(image, tmp_path)
    if is_damaged:
        flip_last_byte(library / "src" / f"{library.name}_data.h")
    sketch, board = tmp_path / "sketch.cpp", tmp_path / "board.cpp"
    text = (library / "examples/Control/Control.ino").read_text()
    sketch.write_text(f"#include <Arduino.h>\n{text}")
    board.write_text(BOARD)
    sources = (library / "src" / f"{library.name}.cpp", sketch, board)
    include, program = f"-I{library / 'src'}", tmp_path / "program"
    output_of("g++", *ARDUINO_FLAGS, *STRICT, include, *INTERFACE, *sources, "-o", program)
    readings = np.random.default_rng(7).integers(0, 1023, (21, 3))
    readings[5] = (0, 1023, 4095)  # of boards that read up to 4095, the last is beyond the range
    rows = "\n".join(f"{pin} {value}" for row in readings for pin, value in enumerate(row))
    result = subprocess.run([program], input=rows, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    baud, *lines = result.stdout.splitlines()
    assert baud == "115200 baud"
    low, high = (end.astype("f4") for end in ranges_of(image.observations))
    part = np.minimum(readings.astype("f4") / np.float32(1023), np.float32(1))
    seen = low + part * (high - low)
    # loop() asks first within the interval of setup()'s step, whose action is held.
    acted = np.delete(image.evaluate(seen)[:, 0], 1)
    if is_damaged:
        assert lines.pop(0).endswith("other bits than those of training: there is no policy")
        states, lines = lines[::2], lines[1::2]
        assert len({*states}) == 1
        acted = np.full(len(seen), image.runner.safe_action()[0][0])
    else:
        assert lines.pop(0).startswith("this board gives the bits of training; microseconds of a s")
        assert [float(lines.pop(0).split()[1]) for _ in range(2)] == [7, 50_000]
    times, actions = zip(*(map(float, line.split()) for line in lines), strict=True)
    assert np.array(actions, "f4").tobytes() == acted.astype("f4").tobytes()
    late = np.diff(np.array(times, np.uint32)).astype(int) - 50_000
    assert np.abs(late).max() <= 7  # a look at the clock
    assert abs(late.sum()) <= 7  # which do not add up


@pytest.mark.all
def test_platformio_packs_the_arduino_library(tmp_path: Path) -> None:
    if find_spec("platformio") is None:
        pytest.skip("PlatformIO is not installed")
    library = arduino_library(sample("pendulum"), tmp_path)
    # With a license it asks the registry for the list of them.
    manifest = json.loads((library / "library.json").read_text())
    assert manifest.pop("license") == "MIT"
    (library / "library.json").write_text(json.dumps(manifest))
    command = (sys.executable, "-m", "platformio", "pkg", "pack", library, "-o", tmp_path)
    environment = platformio_environment("pendulum-td3")
    run(*command, env={**environment, "PLATFORMIO_CORE_DIR": str(tmp_path / "core")})
    (archive,) = tmp_path.glob("*.tar.gz")
    members = run("tar", "-tzf", archive).stdout.split("\n")
    assert f"src/{library.name}.cpp" in {member.removeprefix("./") for member in members}


def component(folder: Path, network: str = "pendulum") -> Path:
    name, files = folders.esp_idf_component(sample(network))
    folders.write_folder(folder / name, files, folders.ESP_IDF_MARK)
    return folder / name


def test_the_esp_idf_component_stands_alone(tmp_path: Path) -> None:
    """Its sources and its policy's header, in C and C++, with its own headers only."""
    if missing_names(["riscv64-unknown-elf-g++", "picolibc"]):
        pytest.skip("no compiler for RISC-V is installed")
    folder = component(tmp_path / "clean")
    includes = [
        *(f"-I{folder / 'include'}", *RISCV, "-march=rv32imc", "-mabi=ilp32"),
        f"-I{TREE.root / 'tests/integrations/esp_idf/interface'}",
    ]
    compiler = ["riscv64-unknown-elf-g++", "-std=gnu++2b", "-fno-exceptions", "-fno-rtti", *STRICT]
    source = folder / "src/rlt_policy.cpp"
    output_of(*compiler, "-Os", *includes, "-c", source, "-o", tmp_path / "component.o")
    image = sample("pendulum")
    name = export.identifier(image.experiment)
    text = (
        f'#include "{name}_policy.h"\nesp_err_t start(void);\nesp_err_t start(void) {{\n'
        f'  const rlt_policy_config_t config = {{&{name}_contract, "policies", {{0}}, '
        f"{name}_image, sizeof({name}_image)}};\n  return rlt_policy_init(&config);\n}}\n"
    )
    for suffix, standard in (("c", "gnu17"), ("cpp", "gnu++2b")):
        program = tmp_path / f"main.{suffix}"
        program.write_text(text)
        driver = "riscv64-unknown-elf-gcc" if suffix == "c" else "riscv64-unknown-elf-g++"
        strict = [flag for flag in STRICT if flag != "-Wextra"]  # {0} for all the limits
        output_of(
            driver, f"-std={standard}", *strict, *includes, "-c", program, "-o", tmp_path / "m.o"
        )
    assert (folder / folders.EMBEDDED).read_bytes() == image.data


@pytest.mark.all
def test_espressifs_component_manager_packs_it(tmp_path: Path) -> None:
    if find_spec("idf_component_manager") is None:
        pytest.skip("idf-component-manager is not installed")
    folder = component(tmp_path)
    compote = Path(sys.executable).with_name("compote")
    options = ("--project-dir", folder, "--name", folder.name, "--dest-dir", tmp_path / "dist")
    run(
        compote, "component", "pack", *options, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    )
    (archive,) = (tmp_path / "dist").glob("rlt_policy_*.tgz")
    members = {name.removeprefix("./") for name in run("tar", "-tzf", archive).stdout.split()}
    packed = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert packed <= members


@pytest.mark.parametrize(
    ("to", "name"), [("arduino", "PendulumTd3Policy"), ("esp-idf", "rlt_policy")]
)
def test_the_command_writes_a_folder_and_replaces_its_own(
    to: str, name: str, tmp_path: Path
) -> None:
    source = make_policy_run(tmp_path / "run")
    folder = export_run(str(source), to=to, output=tmp_path / "new" / "libraries")
    assert folder == tmp_path / "new" / "libraries" / name
    written = next(folder.rglob("LICENSE"))
    written.write_text("of an earlier export")
    assert export_run(str(source), to=to, output=folder.parent) == folder
    assert written.read_text() != "of an earlier export"
    assert [path.name for path in folder.parent.iterdir()] == [name]
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine").write_text("")
    with pytest.raises(UsageError, match="is there already"):
        export_run(str(source), to=to, output=folder.parent)
    assert (folder / "mine").exists()


def test_what_a_user_put_into_an_exported_folder_stays(tmp_path: Path) -> None:
    library = arduino_library(sample("pendulum"), tmp_path)
    own = {"examples/mine/mine.ino": "mine", "notes.txt": "mine"}
    for name, text in own.items():
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text(text)
    gone = next(library.rglob("rltools")) / "gone.h"  # of an earlier library
    gone.write_text("")
    (library / "keywords.txt").write_text("of an earlier export")
    again = arduino_library(sample("pendulum"), tmp_path)
    assert {name: (again / name).read_text() for name in own} == own
    assert not gone.exists()
    fresh = arduino_library(sample("pendulum"), tmp_path / "fresh")
    written = {path.relative_to(fresh): path.read_bytes() for path in fresh.rglob("*.h")}
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*.h")} == written
    assert sorted(path.name for path in library.parent.iterdir()) == [library.name]

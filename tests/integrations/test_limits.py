"""What each export holds (docs/policy_image.md): policies at its limits and beyond, compiled for
this machine with stand-ins for the firmwares, and run."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from programs import output_of
from rltools_host.build.description import Channel
from rltools_host.policies import export, folders
from rltools_host.policies.acting import HiddenState, History, history_values
from rltools_host.policies.contract import GATES, LSTM, Contract, Layer
from rltools_host.policies.core import activations
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.policies.image_writing import Network, Origin, sampled, write_image
from rltools_host.tree import TREE

ESP_IDF = TREE.root / "tests/integrations/esp_idf"
COMPONENT = TREE.root / "integrations/esp_idf/rlt_policy"
KCONFIG = r"config (RLT_POLICY_\w+)\n(?:.*\n)*? +default (\S+)"
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
DRAWS = np.random.default_rng(9)
STEP_US = 10_000
BEYOND = "needs more memory than there is"


def layer(taken: int, given: int, activation: str = "relu", kind: int = 0) -> Layer:
    columns = GATES.get(kind, 1) * given
    rows = [taken, given] if kind else [taken]
    parts = []
    for count in rows:
        parts.append(DRAWS.normal(0, count**-0.5, (count, columns)).astype("f4"))
        parts.append(DRAWS.normal(0, 0.1, columns).astype("f4"))
    hidden = (parts[2], parts[3]) if kind else None
    return Layer("identity" if kind else activation, parts[0], parts[1], hidden)


def image_of(
    name: str,
    layers: list[Layer],
    actions: tuple[Channel, ...],
    added: tuple[Channel, ...] = (),
) -> PolicyImage:
    count = len(layers[0].weights) - len(added)
    seen = tuple(Channel(f"seen_{i}", "m", -1, 1) for i in range(count))
    contract = Contract((*seen, *added), actions, STEP_US)
    second = {"second": 10} if any(each.hidden for each in layers) else {}
    rows = sampled(contract, 16 if second else 8)
    origin = Origin(name, "Drawn", 1, 1, "00" * 32)
    return parse_policy(write_image(Network(None, layers), contract, origin, rows, **second))


def motors(count: int) -> tuple[Channel, ...]:
    return tuple(Channel(f"motor_{i}", "1", -1, 1) for i in range(count))


def remembering(ticks: int = 64, actions: int = 4) -> PolicyImage:
    added = (
        Channel("seen_0_sum", "m s", -2, 2),
        *(
            Channel(f"motor_{i}_t-{t}", "1", -1, 1)
            for t in (*range(1, 9), ticks)
            for i in range(actions)
        ),
    )
    width = 4 + len(added)
    layers = [layer(width, 24, "silu"), layer(24, 12, "sigmoid"), layer(12, actions, "tanh")]
    return image_of("remembering", layers, motors(actions), added)


def limits() -> dict[str, PolicyImage]:
    """A policy for each row of the table, beyond what ESP-IDF's component has of itself."""
    functions = [*activations()]
    each = [layer(6, 6, name) for name in functions]
    return {
        "wide": image_of(
            "wide", [layer(90, 256, "elu"), layer(256, 256), layer(256, 17, "tanh")], motors(17)
        ),
        "lstm": image_of("lstm", [layer(6, 40, kind=LSTM), layer(40, 2, "tanh")], motors(2)),
        "remembering": remembering(),
        "every_activation": image_of("every_activation", [*each, layer(6, 3, "tanh")], motors(3)),
    }


def acted(image: PolicyImage, rows: np.ndarray) -> np.ndarray:
    """This machine's actions, a step after the other."""
    history = History(image.added_inputs, len(image.actions))
    state = HiddenState(image)
    found = []
    for index, observation in enumerate(rows):
        inputs = history.inputs(observation)
        outputs, actions = state.run((index + 1) * image.step_interval_us, inputs)
        history.add(history_values(outputs, actions, image.actions), acted_on=observation)
        found.append(actions[0])
    return np.array(found)


def observed(width: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(-0.9, 0.9, (80, width)).astype("<f4")


def require_same_bits(program: Path, rows: np.ndarray, expected: np.ndarray) -> None:
    result = subprocess.run([program], input=rows.tobytes(), capture_output=True, timeout=60)
    assert result.returncode == 0, result.stdout
    assert result.stdout == expected.astype("<f4").tobytes()


IN_C = """\
#include <stdio.h>
#include "{name}_policy.h"
int main(void) {{
  static float observation[{guard}_POLICY_OBSERVATION_DIM], action[{guard}_POLICY_ACTION_DIM];
  {state}
  if (!{name}_policy_verify()) return 1;
  while (fread(observation, sizeof(observation), 1, stdin) == 1) {{
    if (!{name}_policy_evaluate(observation, {argument}action)) return 2;
    fwrite(action, sizeof(action), 1, stdout);
  }}
  return 0;
}}
"""


def run_in_c(image: PolicyImage, folder: Path) -> None:
    """What it sees of before is its caller's."""
    name, guard = image.experiment, image.experiment.upper()
    (folder / f"{name}_policy.h").write_text(export.c_header(image))
    is_recurrent = image.recurrence is not None
    state = f"static float state[{guard}_POLICY_STATE_DIM];" if is_recurrent else ""
    argument = "state, " if is_recurrent else ""
    source = folder / "main.c"
    source.write_text(IN_C.format(name=name, guard=guard, state=state, argument=argument))
    flags = ("-std=c99", "-O1", "-ffp-contract=off", "-march=native", *STRICT)
    output_of("gcc", *flags, "-Wno-unused-function", source, "-o", folder / "program")
    rows = observed(len(image.observations))
    states = image.runner.begin()
    expected = [image.runner.run(row[None], states)[1][0] for row in rows]
    require_same_bits(folder / "program", rows, np.array(expected))


IN_ARDUINO = """\
#include <cstdio>
#include <{name}.h>
int main() {{
  static float observation[{name}Class::kObservationDim], action[{name}Class::kActionDim];
  if (!{name}.begin()) return 1;
  unsigned now_us = 0;
  while (std::fread(observation, sizeof(observation), 1, stdin) == 1) {{
    if (!{name}.step(now_us += {name}Class::kStepInterval_us, observation, action)) return 2;
    std::fwrite(action, sizeof(action), 1, stdout);
  }}
}}
"""


def run_in_arduino(image: PolicyImage, folder: Path) -> None:
    name, files = folders.arduino_library(image)
    folders.write_folder(folder / name, files, folders.ARDUINO_MARK)
    source = folder / "main.cpp"
    source.write_text(IN_ARDUINO.format(name=name))
    root = folder / name / "src"
    flags = ("-std=gnu++17", "-O1", "-march=native", "-ffp-contract=off", f"-I{root}")
    output_of("g++", *flags, root / f"{name}.cpp", source, "-o", folder / "program")
    rows = observed(len(image.contract.observations))
    require_same_bits(folder / "program", rows, acted(image, rows))


# A header says whether the policy fits; without it the component itself does.
IN_ESP_IDF = """\
#include <cstdio>
#include "esp_idf_flash.h"
#include "{name}_policy.h"
#include "rlt_policy.cpp"
static float sensors[{observation_dim}], motors[{action_dim}];
int main() {{
  const rlt_policy_config_t config = {{&{name}_contract, "policies", {{}}, {name}_image,
                                      sizeof({name}_image)}};
  if (const esp_err_t error = rlt_policy_init(&config); error != ESP_OK) {{
    std::printf("%s", rlt_policy_error_text(error));
    return 1;
  }}
  for (unsigned now_us = {step}; std::fread(sensors, sizeof(sensors), 1, stdin) == 1;) {{
    if (rlt_policy_is_fault(rlt_policy_step(now_us, sensors, now_us, motors))) return 2;
    std::fwrite(motors, sizeof(motors), 1, stdout);
    now_us += {step};
  }}
  return 0;
}}
"""


def compile_component(
    image: PolicyImage, folder: Path, settings: Path, asserts: bool = True
) -> subprocess.CompletedProcess[str]:
    """With the defaults of the Kconfig at `settings`."""
    root = folder / "rlt_policy"
    if not root.exists():
        name, files = folders.esp_idf_component(image)
        folders.write_folder(root, files, folders.ESP_IDF_MARK)
    name = export.identifier(image.experiment)
    source = folder / "main.cpp"
    source.write_text(
        IN_ESP_IDF.format(
            name=name,
            observation_dim=len(image.contract.observations),
            action_dim=len(image.actions),
            step=image.step_interval_us,
        )
    )
    defaults = dict(re.findall(KCONFIG, (settings / "Kconfig").read_text()))
    assert len(defaults) == 4
    flags = [f"-DCONFIG_{key}={value}" for key, value in defaults.items()]
    flags.append(f"-DRLT_ACTIVATIONS={defaults['RLT_POLICY_ACTIVATIONS']}")
    flags += [] if asserts else ["-Dstatic_assert(...)="]
    includes = [root / "include", root / "src", ESP_IDF / "interface", ESP_IDF]
    includes += [TREE.root / "tests/lib/policy"]
    command = ["g++", "-std=gnu++2b", "-O1", "-ffp-contract=off", "-march=native", *flags]
    command += [f"-I{each}" for each in includes]
    command += ["-idirafter", TREE.include, source, "-o", folder / "program"]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)


def run_in_esp_idf(image: PolicyImage, folder: Path) -> None:
    result = compile_component(image, folder, folder / "rlt_policy")
    assert result.returncode == 0, result.stderr
    rows = observed(len(image.contract.observations))
    require_same_bits(folder / "program", rows, acted(image, rows))


EXPORTS = {"c": run_in_c, "arduino": run_in_arduino, "esp-idf": run_in_esp_idf}


@pytest.mark.all
@pytest.mark.parametrize("to", EXPORTS)
@pytest.mark.parametrize("name", limits())
def test_an_export_holds_its_policy(name: str, to: str, tmp_path: Path) -> None:
    EXPORTS[to](limits()[name], tmp_path)


def test_the_table_says_what_the_code_does() -> None:
    """Defaults of Kconfig, and constants of the core."""
    document = (TREE.root / "docs/policy_image.md").read_text(encoding="utf-8")
    section = document.partition("### What an export holds")[2].partition("\n## ")[0]
    rows = {
        cells[0]: cells[1:]
        for line in section.splitlines()
        if line.startswith("| ") and len(cells := [c.strip() for c in line.split("|")[1:-1]]) == 4
    }
    number = {what: re.findall(r"\d+", cells[-1]) for what, cells in rows.items()}
    defaults = dict(re.findall(KCONFIG, (COMPONENT / "Kconfig").read_text()))
    assert number["widest layer, observations included"] == [defaults["RLT_POLICY_WIDEST_LAYER"]]
    assert number["actions"] == [defaults["RLT_POLICY_MAX_ACTIONS"]]
    assert number["recurrent units"] == [defaults["RLT_POLICY_RECURRENT_UNITS"]]
    bits = int(defaults["RLT_POLICY_ACTIVATIONS"], 16)
    named = [name for place, name in enumerate(activations()) if bits >> place & 1]
    words = re.findall(r"identity|ReLU|tanh", rows["activations"][-1])
    assert named == [word.lower() for word in words]
    constants = {}
    for name, file in (("kHistoryTicks", "action_history"), ("kMaxSums", "observation_sum")):
        text = (TREE.include / "rltools/policy" / f"{file}.h").read_text()
        constants[name] = re.search(rf"{name} = (\d+);", text)[1]  # type: ignore[index]
    assert number["past actions"] == [constants["kHistoryTicks"]]
    assert rows["sums"] == ["the caller's", constants["kMaxSums"], constants["kMaxSums"]]


@pytest.mark.all
@pytest.mark.parametrize(
    ("name", "setting", "reason"),
    [
        ("wide", "MAX_ACTIONS", "more than Kconfig says"),
        ("lstm", "RECURRENT_UNITS", BEYOND),
        ("broad", "WIDEST_LAYER", BEYOND),
        ("every_activation", "ACTIVATIONS", "a table contradicts itself"),
    ],
)
def test_settings_that_a_policy_does_not_fit_are_named(
    name: str, setting: str, reason: str, tmp_path: Path
) -> None:
    """By the compiler; and without the export's header by the component's start."""
    broad = image_of("broad", [layer(5, 200), layer(200, 2)], motors(2))
    image = {**limits(), "broad": broad}[name]
    refused = compile_component(image, tmp_path, COMPONENT)
    assert refused.returncode != 0
    assert f"the policy needs CONFIG_RLT_POLICY_{setting} " in refused.stderr
    assert compile_component(image, tmp_path, COMPONENT, asserts=False).returncode == 0
    result = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, reason in result.stdout) == (1, True), result.stdout


def test_an_exported_example_follows_from_its_policy() -> None:
    """Contract, slots of the partition, and a flash that holds all of it."""
    for widths in ((8,), (256, 256), (600, 500)):
        sizes = [9, *widths, 3]
        image = image_of("sized", [layer(*pair) for pair in pairwise(sizes)], motors(3))
        files = folders.esp_idf_component(image)[1]
        example = f"{folders.EXAMPLE}/main/main.cpp"
        assert b"&sized_contract" in files[example]
        assert b"kContract" not in files[example]
        table = {}
        for line in files[f"{folders.EXAMPLE}/partitions.csv"].decode().splitlines():
            if not line.startswith("#"):
                cells = [cell.strip() for cell in line.split(",")]
                table[cells[0]] = int(cells[4].removesuffix("K")) * 1024
        assert (table["policies"] // 4096 - 2) // 2 * 4096 >= len(image.data)
        assert table["factory"] >= (1 << 20) + len(image.data) * (len(image.data) > 65_536)
        options = files[f"{folders.EXAMPLE}/sdkconfig.defaults"].decode()
        found = re.search(r"FLASHSIZE_(\d+)MB=y", options)
        flash = int(found[1]) << 20 if found else 2 << 20
        assert 0x10000 + table["factory"] + table["policies"] <= flash


def test_the_stack_of_zephyrs_sample_holds_a_step(tmp_path: Path) -> None:
    """What the compiler says that main() takes and what it calls, one of evaluate() and verify() at
    a time, on a processor of 64 bits."""
    image = limits()["wide"]
    name, files = folders.zephyr_module(image)
    folders.write_folder(tmp_path / name, files, folders.ZEPHYR_MARK)
    root = tmp_path / name
    (stack,) = re.findall(r"MAIN_STACK_SIZE=(\d+)", (root / "samples/control/prj.conf").read_text())
    interface = TREE.root / "tests/host/policies/zephyr_interface"
    flags = ("-std=c99", "-Os", "-fstack-usage", f"-I{root / 'include'}", f"-I{interface}")
    target = tmp_path / "main.o"
    output_of("gcc", *flags, "-c", root / "samples/control/src/main.c", "-o", target)
    lines = target.with_suffix(".su").read_text().splitlines()
    taken = {line.split("	")[0].rpartition(":")[2]: int(line.split("	")[1]) for line in lines}
    entries = [taken[key] for key in taken if re.search("_(evaluate|verify)\\b", key)]
    assert len(entries) == 2
    usage = sum(taken.values()) - min(entries)
    assert 1000 < usage + 512 <= int(stack)

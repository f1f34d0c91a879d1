"""Files of a component for ESP-IDF that depend on its policy: Kconfig's sizes, the example's
partitions and task, and static assertions for settings that are too small."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rltools_host.errors import BuildError
from rltools_host.policies.contract import DENSE
from rltools_host.policies.core import activations
from rltools_host.policies.export import identifier
from rltools_host.policies.image import PolicyImage

EXAMPLE = "examples/policy_task"
EMBEDDED = f"{EXAMPLE}/main/policy.rltp"
MAIN = f"{EXAMPLE}/main/main.cpp"
PREFIX = "RLT_POLICY_"
SECTOR, RECORDS = 4096, 2  # bytes; sectors of a partition besides its two slots
SHIPPED_PARTITION, SHIPPED_APP = 64 * 1024, 1024 * 1024
FIRST_OFFSET, ALIGNMENT = 0x10000, 0x10000  # of the app, behind bootloader and table
FLASH_SIZES = (2, 4, 8, 16, 32)  # MB that ESP-IDF supports; 2 is its default


def needs(image: PolicyImage) -> dict[str, int]:
    """Return the minimum of each setting of Kconfig that the policy needs.

    ACTIVATIONS has a bit for each.
    """
    names = list(activations())
    widest = max(len(image.observations), *(layer.width for layer in image.layers))
    units = sum(layer.width for layer in image.layers if layer.kind != DENSE)
    used = 0
    for layer in image.layers:
        used |= 1 << names.index(layer.activation)
    return {
        "MAX_ACTIONS": len(image.actions),
        "WIDEST_LAYER": widest,
        "RECURRENT_UNITS": units,
        "ACTIVATIONS": used,
    }


def fitted(image: PolicyImage, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the component's files with settings and partitions that hold this policy."""
    found = dict(files)
    found["Kconfig"] = kconfig(image, files["Kconfig"].decode()).encode()
    table, options = partitions(image)
    path = f"{EXAMPLE}/partitions.csv"
    found[path] = with_sizes(files[path].decode(), table).encode()
    path = f"{EXAMPLE}/sdkconfig.defaults"
    found[path] = files[path] + options.encode()
    found[MAIN] = main_source(image, files[MAIN].decode()).encode()
    return found


def kconfig(image: PolicyImage, text: str) -> str:
    for name, least in needs(image).items():
        line = re.compile(rf"(config {PREFIX}{name}\n(?:.*\n)*? +default )(\S+)")
        stated = line.search(text)
        if stated is None:
            raise BuildError(f"Kconfig has no {PREFIX}{name}: restore it from git")
        value = int(stated[2], 0)
        shown = f"{value | least:#04x}" if name == "ACTIVATIONS" else str(max(value, least))
        text = f"{text[: stated.start(2)]}{shown}{text[stated.end(2) :]}"
    return text


def partitions(image: PolicyImage) -> tuple[dict[str, int], str]:
    """Return the example's partitions that grow with the image, in KB, and lines of
    sdkconfig.defaults for a flash that holds them."""
    size = len(image.data)
    policies = max(SHIPPED_PARTITION, (RECORDS + 2 * -(-size // SECTOR)) * SECTOR)
    app = -(-(SHIPPED_APP + size) // ALIGNMENT) * ALIGNMENT if size > SHIPPED_PARTITION else 0
    app = max(app, SHIPPED_APP)
    needed = FIRST_OFFSET + app + policies
    megabytes = next((each for each in FLASH_SIZES if each << 20 >= needed), FLASH_SIZES[-1])
    options = f"CONFIG_ESPTOOLPY_FLASHSIZE_{megabytes}MB=y\n" if megabytes > 2 else ""
    return {"factory": app // 1024, "policies": policies // 1024}, options


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Return a table of partitions with these sizes, in KB."""
    lines = []
    for line in text.splitlines():
        name = line.split(",")[0]
        if name in sizes:
            line = f"{line.rpartition(',')[0]},       {sizes[name]}K"
        lines.append(line if not line.startswith("# two slots") else "# two slots")
    return "\n".join(lines) + "\n"


# Valid in C11 and C++.
ASSERTS = """\
#include <assert.h>

#include "rlt_policy.h"
#include "sdkconfig.h"

{asserts}"""


def asserts(image: PolicyImage) -> str:
    """Return static assertions for <experiment>_policy.h that the settings of Kconfig hold this
    policy."""
    lines = []
    for name, least in needs(image).items():
        if not least:
            continue
        config = f"CONFIG_{PREFIX}{name}"
        of_bits = f"({config} & {least:#x}) == {least:#x}", f"with {least:#04x}"
        of_number = f"{config} >= {least}", f"of {least} at least"
        condition, asked = of_bits if name == "ACTIVATIONS" else of_number
        lines.append(
            f"static_assert({condition},\n"
            f'              "the policy needs {config} {asked}: "\n'
            f'              "idf.py menuconfig, Policy");'
        )
    return ASSERTS.format(asserts="\n".join(lines))


TASK = """\
static void control(void*) {{
  static float sensors[{observation_dim}], motors[{action_dim}];
  const TickType_t ticks = pdMS_TO_TICKS({name}_contract.step_interval_us / 1000);
  TickType_t woken = xTaskGetTickCount();
  for (int i = 0;; i++) {{
    for (int k = 0; k < {observation_dim}; k++) {{  // your sensors: here the middle of each range
      const rlt_channel_t& channel = {name}_observations[k];
      sensors[k] = channel.minimum + (channel.maximum - channel.minimum) / 2;
    }}
    const rlt_policy_status_t status = rlt_policy_step(now_us(), sensors, now_us(), motors);
    // Your motors: here the first action is printed.
    if (i % {steps_of_a_second} == 0) {{
      printf("%.3g: %s\\n", static_cast<double>(motors[0]), rlt_policy_status_text(status));
    }}
    vTaskDelayUntil(&woken, ticks > 0 ? ticks : 1);
  }}
}}
"""
PART = r"// {0}\b.*?\n(.*?)// END {0}\n"


def main_source(image: PolicyImage, text: str) -> str:
    """Return the example's program for this policy's contract. A pendulum's keeps its model."""
    name = identifier(image.experiment)
    observations, actions = image.contract.observations, image.actions
    of_contract = f"{{{image.step_interval_us}, {len(observations)}, {len(actions)}, kSensors"
    names = [f'{{"{channel.name}", "{channel.unit}"' for channel in (*observations, *actions)]
    if all(word in text for word in (of_contract, *names)):
        return re.sub("// (?:END )?(?:CONTRACT|TASK).*\n", "", text)
    task = TASK.format(
        name=name,
        observation_dim=len(observations),
        action_dim=len(actions),
        steps_of_a_second=max(1, 1_000_000 // image.step_interval_us),
    )
    text = text.replace('#include "rlt_policy.h"\n', f'#include "{name}_policy.h"\n')
    text = text.replace("&kContract", f"&{name}_contract")
    text = re.sub(PART.format("CONTRACT") + "\n", "", text, flags=re.DOTALL)
    text = re.sub(PART.format("TASK"), lambda _: task, text, flags=re.DOTALL)
    first = text.index("#include <stdio.h>")
    return (
        f"// The policy of {name}: a control task acts, the main task receives policies. In place\n"
        "// of a link it takes the one that is embedded.\n" + text[first:]
    )

"""The module for Zephyr: what its build looks for, and the sample against declarations of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from policy_samples import patched, sample_images
from rltools_host.build.description import ranges_of
from rltools_host.policies import folders
from rltools_host.policies.acting import HiddenState
from rltools_host.policies.image import PolicyImage, parse_policy

INTERFACE = Path(__file__).with_name("zephyr_interface")
FLAGS = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror")
PROCESSORS = {
    "this machine": ("gcc",),
    "Cortex-M7": ("arm-none-eabi-gcc", "-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
    "Cortex-M3": ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"),
}
# A clock of 2 MHz; the third tick of the timer is the last.
KERNEL = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
void printk(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
}
static uint32_t cycles;
uint32_t k_cycle_get_32(void) { return cycles += 124; }
uint32_t k_cyc_to_us_ceil32(uint32_t count) { return count / 2; }
void k_timer_init(struct k_timer* timer, k_timer_expiry_t expiry, k_timer_stop_t stop) {
  if (expiry == NULL && stop == NULL) timer->period_us = 0;
}
void k_timer_start(struct k_timer* timer, k_timeout_t duration, k_timeout_t period) {
  if (duration.us == period.us) timer->period_us = period.us;
}
uint32_t k_timer_status_sync(struct k_timer* timer) {
  static int count;
  if (++count == 3) {
    printf("ticks of %d us\\n", (int)timer->period_us);
    exit(0);
  }
  return 1;
}
"""


def sample(network: str) -> PolicyImage:
    return parse_policy(sample_images()[network])


def module(folder: Path, network: str | PolicyImage = "pendulum") -> Path:
    image = network if isinstance(network, PolicyImage) else sample(network)
    name, files = folders.zephyr_module(image)
    folders.write_folder(folder / name, files, folders.ZEPHYR_MARK)
    return folder / name


def compile_sample(processor: str, root: Path, *more: object) -> None:
    if shutil.which(PROCESSORS[processor][0]) is None:
        pytest.skip(f"no compiler for {processor} is installed")
    source = root / "samples/control/src/main.c"
    includes = (f"-I{root / 'include'}", f"-I{INTERFACE}")
    command = [*PROCESSORS[processor], *FLAGS, *includes, str(source), *map(str, more)]
    subprocess.run(command, check=True, timeout=120)


@pytest.mark.parametrize("processor", list(PROCESSORS)[1:])
def test_the_sample_compiles(processor: str, tmp_path: Path) -> None:
    root = module(tmp_path, "recurrent_quadrotor")
    compile_sample(processor, root, "-c", "-o", tmp_path / "main.o")


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_sample_acts_at_the_contracts_rate_if_the_bits_are_right(
    is_damaged: bool, tmp_path: Path
) -> None:
    root = module(tmp_path)
    header = root / "include/pendulum_td3_policy.h"
    if is_damaged:
        text, count = re.subn(
            r"(_image\[\d+\].* = \{\n +)\S+,", r"\g<1>0x00000007,", header.read_text()
        )
        assert count == 1
        header.write_text(text)
    kernel = tmp_path / "kernel.c"
    kernel.write_text(KERNEL)
    compile_sample("this machine", root, kernel, "-o", tmp_path / "program")
    result = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=60)
    if is_damaged:
        assert (result.returncode, result.stdout.count("there is no policy")) == (1, 1)
    else:
        assert result.stdout.splitlines() == [
            "this board gives the bits of training; a step takes 62 us of 50000",
            "ticks of 50000 us",
        ]


STEPS = 60
PAUSE = 40  # the step before which the timer has run out several times
# What a user puts in for sensors and motors: they come from a file, and go to another.
SENSORS = "  if (fread(observation, sizeof(observation), 1, stdin) != 1) exit(0);\n"
MOTORS = "  fwrite(action, sizeof(action), 1, stdout);\n"
TIMER = """
uint32_t k_timer_status_sync(struct k_timer* timer) {
  static int count;
  return count++ == %d ? %du : timer->period_us > 0;
}
"""


@pytest.mark.parametrize(
    ("network", "reset_at"), [("lstm_quadrotor", 15), ("recurrent_quadrotor", 1)]
)
def test_the_sample_keeps_the_state_as_the_executor_does(
    network: str, reset_at: int, tmp_path: Path
) -> None:
    image = parse_policy(patched(sample(network).data, 144 + 10, "H", reset_at))
    assert image.recurrence is not None
    root = module(tmp_path, image)
    main = root / "samples/control/src/main.c"
    text, count = re.subn(
        r"(read_sensors\(void\) \{\n)[^}]*|(drive_motors\(void\) \{\n)[^}]*",
        lambda match: match[1] + SENSORS if match[1] else match[2] + MOTORS,
        main.read_text().replace("printk(", "fprintf(stderr, "),
    )
    assert count == 2
    main.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{text}")
    missed = 1 + image.recurrence.max_pause_us // image.step_interval_us
    head, _, _ = KERNEL.partition("uint32_t k_timer_status_sync")
    kernel = tmp_path / "kernel.c"
    kernel.write_text(head + TIMER % (PAUSE, missed))
    compile_sample("this machine", root, kernel, "-o", tmp_path / "program")
    low, high = ranges_of(image.observations)
    rows = np.random.default_rng(3).uniform(low, high, (STEPS + 1, low.size)).astype("<f4")
    rows[21, 0] = np.nan  # the first is that of the sample's measurement
    result = subprocess.run(
        [tmp_path / "program"], input=rows.tobytes(), capture_output=True, timeout=60, check=True
    )
    assert result.stderr.count(b"not finite") == 1
    found = np.frombuffer(result.stdout, "<f4").reshape(STEPS, -1)
    state, now_us = HiddenState(image), 0
    for step, row in enumerate(rows[1:]):
        now_us += image.step_interval_us * (missed if step == PAUSE else 1)
        if step == 20:
            state.fail("observation_not_finite")
            expected = image.runner.safe_action()[0]
        else:
            expected = state.run(now_us, row[None])[1][0]
        assert found[step].tobytes() == expected.tobytes(), step

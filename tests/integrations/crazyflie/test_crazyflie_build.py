"""The Crazyflie's app: against declarations of the firmware's interface, with its flags."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from programs import needed_symbols, output_of
from quadrotor_policies import recurrent_policy
from rltools_host.build.tools import missing_tools
from rltools_host.drones.flight.loop import HostPilot
from rltools_host.policies import export
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

APP = TREE.root / "integrations/crazyflie/src"
TESTS = Path(__file__).parent
# As the firmware's kbuild calls the compilers (its version of 2026-08, CONFIG_DEBUG off).
COMMON_FLAGS = (
    *("-D__firmware__", "-fno-exceptions", "-Wall", "-Wmissing-braces", "-fno-strict-aliasing"),
    *("-ffunction-sections", "-fdata-sections", "-Wdouble-promotion", "-DCRAZYFLIE_FW"),
    *(
        "-fno-delete-null-pointer-checks",
        "-Wno-unused-but-set-variable",
        "-Wno-unused-const-variable",
    ),
    *("-fomit-frame-pointer", "-fno-var-tracking-assignments", "-fno-strict-overflow"),
    *("-fconserve-stack", "-Werror=date-time", "-fno-math-errno", "-DARM_MATH_CM4"),
    *("-D__FPU_PRESENT=1", "-mfp16-format=ieee", "-Wno-array-bounds", "-Wno-stringop-overread"),
    *("-Wno-stringop-overflow", "-Os", "-Werror"),
)
PROCESSOR = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
C_FLAGS = ("-std=gnu11", "-Wno-pointer-sign", "-Werror=implicit-int")
INTERFACE = (f"-I{TESTS / 'interface'}", f"-I{APP}", f"-I{APP / 'policy'}")
LIBRARY = (f"-I{TREE.include}",)
LINK = ("-nostartfiles", "--specs=nosys.specs")
SEMIHOSTING = ("-semihosting-config", "enable=on,target=native")
# Bytes: what the stock firmware leaves is 34 KB of memory.
MAX_RAM = 33 * 1024
MAX_TEXT = 18 * 1024
STABILIZER_STACK = 1800
MAX_STACK = 1300  # of it, for the controller
# From the stabilizer's loop to the innermost kernel.
DEEPEST_CALLS = (
    *("controllerOutOfTree", "rlt_decide", "::continue_flight", "PolicyDeployment<", "Executor<"),
    *("dense_forward_at_run_time", "accumulate_terms"),
)


def policy_flags() -> list[str]:
    """Those of src/policy/Kbuild, without a policy that is compiled in."""
    text = (APP / "policy/Kbuild").read_text().partition("ifneq")[0]
    lines = [line.partition("+=")[2] for line in text.splitlines() if line.startswith("ccflags-y")]
    return [word.replace("$(OOT)", str(APP.parent)) for word in " ".join(lines).split()]


def build(folder: Path, *flags: str) -> list[Path]:
    if missing_tools(["arm-none-eabi-g++"]):
        pytest.skip("arm-none-eabi-g++ is not installed")
    calls = {
        "crazyflie_os.c": ["arm-none-eabi-gcc", *C_FLAGS],
        "policy/policy_controller.cpp": ["arm-none-eabi-g++", *policy_flags()],
    }
    objects = []
    for source, (compiler, *own) in calls.items():
        target = folder / Path(source).with_suffix(".o").name
        command = [compiler, *COMMON_FLAGS, *PROCESSOR, *own, *flags, *INTERFACE]
        output_of(*command, "-fstack-usage", "-c", APP / source, "-o", target)
        objects.append(target)
    return objects


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(tmp_path_factory.mktemp("crazyflie"))


def test_it_compiles_with_the_firmwares_flags_and_fits(objects: list[Path]) -> None:
    sizes = [line.split() for line in output_of("arm-none-eabi-size", *objects).splitlines()[1:]]
    assert sum(int(size[1]) + int(size[2]) for size in sizes) <= MAX_RAM
    assert sum(int(size[0]) for size in sizes) <= MAX_TEXT


def test_it_needs_nothing_but_the_interface(objects: list[Path]) -> None:
    """No heap, no exceptions, no constructors of globals: the firmware runs none."""
    declared = (TESTS / "interface/crazyflie_interface.h").read_text()
    needed = needed_symbols("arm-none-eabi-nm", *objects)
    others = {name for name in needed if f"{name}(" not in declared}
    assert others <= {"memcpy", "memset", "memcmp", "strlen", "__aeabi_uldivmod"}
    assert "init_array" not in output_of("arm-none-eabi-objdump", "-h", *objects)


def test_the_stabilizers_stack_suffices(objects: list[Path]) -> None:
    reports = [path.with_suffix(".su").read_text() for path in objects]
    frames = [line.split("\t") for report in reports for line in report.splitlines()]
    used = 0
    for call in DEEPEST_CALLS:
        sizes = [int(size) for name, size, _ in frames if call in name]
        assert sizes, call
        used += max(sizes)
    # The loop itself, and what an interrupt and a change of tasks push: with the FPU's registers.
    assert used + 96 + 204 <= STABILIZER_STACK


def dense_policy(folder: Path) -> bytes:
    program = folder / "image"
    flags = ("-std=c++17", "-O1", "-ffp-contract=off", "-march=native", *INTERFACE, *LIBRARY)
    output_of("g++", *flags, TESTS / "crazyflie_image.cpp", "-o", program)
    return subprocess.run([program], check=True, capture_output=True, timeout=60).stdout


def run_on_cortex_m4(folder: Path, objects: list[Path]) -> list[int]:
    """The numbers that it prints by semihosting."""
    program = folder / "program"
    script = TESTS / "crazyflie_on_cortex_m4.ld"
    source = TESTS / "crazyflie_on_cortex_m4.cpp"
    flags = ("-std=gnu++17", "-Os", "-fno-exceptions", *PROCESSOR, *INTERFACE)
    output_of("arm-none-eabi-g++", *flags, *LINK, f"-T{script}", source, *objects, "-o", program)
    machine = ("-M", "mps2-an386", "-icount", "shift=5", "-display", "none", "-monitor", "none")
    result = subprocess.run(
        ["qemu-system-arm", *machine, *SEMIHOSTING, "-kernel", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [int(word, 16) for word in (result.stdout + result.stderr).split()]


@pytest.mark.parametrize("is_recurrent", [False, pytest.param(True, marks=pytest.mark.all)])
def test_the_compiled_in_policy_flies_on_an_emulated_cortex_m4(
    is_recurrent: bool, tmp_path: Path
) -> None:
    """The object that the firmware would link: the same bits, within its stack and its time."""
    if missing_tools(["qemu-system-arm"]):
        pytest.skip("qemu-system-arm is not installed")
    image = parse_policy(recurrent_policy() if is_recurrent else dense_policy(tmp_path))
    name = export.identifier(image.experiment)
    (tmp_path / f"{name}_image.h").write_bytes(export.encode_array(image))
    objects = build(tmp_path, f"-DRLT_POLICY_IMAGE={name}_image", f"-I{tmp_path}")
    accepted, pilot, *thrusts, tick, held, stack = run_on_cortex_m4(tmp_path, objects[1:])
    assert (accepted, pilot) == (1, 1)
    turning = np.float32(10) * np.float32(0.017453292519943295)
    observation = np.array([0.0625, 0.125, 0.1875, 0, 0, 0, 1, 0, 0, 0, *[turning] * 3], np.float32)
    here = HostPilot(image, in_trial=False)
    for now_us in range(2000, 24001, 2000):
        expected = here.act(now_us, now_us, observation).action
    assert thrusts == expected.view(np.uint32).tolist()
    # 1.25 instructions a tick of the counter: 8,200 where 13-64-64-4 acts, 700 where it is held.
    assert tick * 1.25 < 10_000
    assert held * 1.25 < 1_000
    assert stack < MAX_STACK


def test_the_operating_systems_side(doctest_main: Path, tmp_path: Path) -> None:
    """Its C, with the interface played by a program of this machine."""
    sanitizers = "-fsanitize=address,undefined"
    target, program = tmp_path / "os.o", tmp_path / "program"
    flags = ("-O1", sanitizers, "-Wall", "-Wextra", "-Werror", *INTERFACE)
    output_of("gcc", *C_FLAGS, *flags, "-c", APP / "crazyflie_os.c", "-o", target)
    source = TESTS / "crazyflie_os_program.cpp"
    program_object = tmp_path / "program.o"
    output_of("g++", "-std=c++17", "-O0", *INTERFACE, "-c", source, "-o", program_object)
    output_of("g++", sanitizers, program_object, doctest_main, target, "-o", program)
    output_of(program)

"""The program of a GPU, as NVIDIA's assembler takes it for five architectures: two blocks of it fit
into the registers of a multiprocessor, and one into its shared memory. None of them has run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.build.gpu import MOST_SHARED_BYTES, REGISTERS, build_ptx

pytestmark = pytest.mark.all

KB = 1024
SHARED = {  # that a block may have
    "sm_75": 64 * KB,
    "sm_86": 99 * KB,
    "sm_90": MOST_SHARED_BYTES,
    "sm_100": MOST_SHARED_BYTES,
    "sm_120": 99 * KB,
}
WARPS, SCHEDULERS, REGISTERS_OF_A_SCHEDULER, REGISTERS_AT_ONCE = 2 * 9, 4, 16384, 256
# By a kernel itself, which the leader alone runs. The other threads run functions, for which the
# assembler counts the registers that they save for who calls them.
SPILLED_BYTES = 96
KERNELS = {
    *("initialize_agents", "train_agents"),
    *("read_states", "write_states", "read_policies"),
}
KERNEL = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers.*?(\d+) bytes smem",
    re.DOTALL,
)


def assembler() -> str:
    tools.ensure_group("ptxas")
    packages = [Path(path) for path in sys.path]
    found = [path for folder in packages for path in folder.glob("nvidia/*/bin/ptxas")]
    path = found[0] if found else shutil.which("ptxas")
    if path is None:
        pytest.skip("ptxas is not for this system")
    return str(path)


@pytest.mark.parametrize(
    ("experiment", "architectures"),
    [
        ("pendulum-td3", ("sm_75", "sm_90", "sm_120")),
        *(
            pytest.param(name, tuple(SHARED), marks=pytest.mark.slow)
            for name in (
                *(
                    "pendulum-td3",
                    "pendulum-sac",
                    "pendulum-ppo",
                    "cartpole-ppo",
                    "cartpole-dqn",
                    "acrobot-ppo",
                ),
                *("acrobot-dqn", "quadrotor-td3", "quadrotor-sac", "quadrotor-ppo"),
                *("crazyflie-ppo", "racing-car-sac"),
            )
        ),
    ],
)
def test_a_program_for_each_architecture(
    experiment: str, architectures: tuple[str, ...], tmp_path: Path
) -> None:
    for architecture in architectures:
        shared = SHARED[architecture]
        ptx = build_ptx(experiment, shared)
        made = subprocess.run(
            [
                *(assembler(), "-v", f"-arch={architecture}", f"-maxrregcount={REGISTERS}"),
                *(str(ptx), "-o", str(tmp_path / "cubin")),
            ],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        kernels = {name: tuple(map(int, rest)) for name, *rest in KERNEL.findall(made.stderr)}
        assert kernels.keys() == KERNELS
        for stores, loads, registers, of_threads in kernels.values():
            assert max(stores, loads) <= SPILLED_BYTES
            of_warp = -(-32 * registers // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
            assert SCHEDULERS * (REGISTERS_OF_A_SCHEDULER // of_warp) >= WARPS
            assert of_threads < 16 * KB  # beside the agent's scratch memory
        scratch = re.search(r"shared_bytes = (\d+);", ptx.read_text())
        assert scratch is None or int(scratch[1]) + of_threads <= shared

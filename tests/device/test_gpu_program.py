"""The program of a GPU, as NVIDIA's assembler takes it for five architectures: two blocks of it fit
into the registers of a multiprocessor, and one into its shared memory. None of them has run."""

from __future__ import annotations

import pytest

from benchmarks import gpu
from rltools_host.build import tools

pytestmark = pytest.mark.all

BLOCKS = 2
# By a kernel itself, which the leader alone runs. The other threads run functions, for which the
# assembler counts the registers that they save for who calls them.
SPILLED_BYTES = 96
COMMON_BYTES = 16 * 1024
KERNELS = {
    *("initialize_agents", "train_agents"),
    *("read_states", "write_states", "read_policies"),
}


def assembler() -> str:
    tools.ensure_group("ptxas")
    path = gpu.find_ptxas()
    if path is None:
        pytest.skip("ptxas is not for this system")
    return path


@pytest.mark.parametrize(
    ("experiment", "architectures"),
    [
        ("pendulum-td3", ("sm_75", "sm_90", "sm_120")),
        *(
            pytest.param(name, tuple(gpu.SHARED), marks=pytest.mark.slow)
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
                *("crazyflie-ppo", "racing-car-sac", "pendulum-xqc", "pendulum-ppo-masked"),
            )
        ),
    ],
)
def test_a_program_for_each_architecture(experiment: str, architectures: tuple[str, ...]) -> None:
    for architecture in architectures:
        row = gpu.assembly(assembler(), experiment, architecture)
        assert "error" not in row, row["error"]
        assert set(row["kernels"]) == KERNELS
        assert row["spilled_bytes"] <= SPILLED_BYTES
        assert row["blocks_by_registers"] >= BLOCKS
        assert row["common_bytes"] <= COMMON_BYTES
        assert row["shared_bytes"] + row["common_bytes"] <= gpu.SHARED[architecture]

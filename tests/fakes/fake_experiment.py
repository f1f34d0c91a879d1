"""The experiment of the fake board, as `build/host/describe-EXPERIMENT` would describe it."""

from __future__ import annotations

from rltools_host.build.description import (
    ExperimentDescription,
    Metric,
    Parameter,
    StateTensor,
)

FINGERPRINT = 0x1234ABCD
TENSORS = (
    StateTensor("actor/weights", "F32", (8, 16), 0),
    StateTensor("replay/observation", "F32", (400, 3), 512),
    StateTensor("replay/flags", "U8", (401, 1), 5312),
    StateTensor("progress/step", "U32", (1, 1), 5713),
)
STATE_BYTES = 5717


LARGEST = 4294967295.0
HYPERPARAMETERS = (
    Parameter("seed", "U32", 0, 0, LARGEST, "", "Seed."),
    Parameter("steps", "U32", 1000, 1, LARGEST, "steps", "Steps in all."),
    Parameter("eval_freq", "U32", 100, 1, LARGEST, "steps", "Steps between evaluations."),
    Parameter("n_eval_episodes", "U32", 10, 1, 1000, "episodes", "Episodes."),
    Parameter("report_every", "U32", 100, 1, LARGEST, "steps", "Steps between reports."),
    Parameter("learning_rate", "F32", 1e-3, 0, 1, "", "Step size."),
    Parameter("adam_beta", "F32", 0.5, 0, 1 - 2.0**-24, "", "Decay of averages."),
    Parameter("adam_epsilon", "F32", 1e-8, 1e-30, 1, "", "Against division by zero."),
)
METRICS = (
    Metric("value_loss", "Never more than one."),
    Metric("entropy", "What is left to chance."),
    Metric("kl", "Not known at any step."),
)


def fake_experiment(
    name: str = "fake-td3", fingerprint: int = FINGERPRINT
) -> ExperimentDescription:
    """The description of what the fake board trains."""
    return ExperimentDescription(
        name=name,
        algorithm="TD3",
        fingerprint=fingerprint,
        environment={"name": "Fake"},
        hyperparameters=HYPERPARAMETERS,
        tensors=TENSORS,
        metrics=METRICS,
        environments=1,
        bytes_of={"state": STATE_BYTES},
        document={},
    )

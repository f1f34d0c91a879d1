"""Makes the goldens of tests/lib with PyTorch: networks, losses, optimizers and whole TD3 updates.

Run it where torch 2.13.0 and numpy are installed: python tests/goldens/generate.py
It writes *.bin beside itself, in the format of tests/lib/rl/golden_file.h, and gives the same bytes
each time.
"""

from __future__ import annotations

import copy
import itertools
import json
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

DIRECTORY = Path(__file__).resolve().parent
REPOSITORY = DIRECTORY.parents[1]

Array = npt.NDArray[np.float64]

ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "silu": functional.silu,
    "hardtanh": functional.hardtanh,
}


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    data = b""
    for name, values in arrays.items():
        flat = np.ascontiguousarray(values, dtype="<f8").reshape(-1)
        data += struct.pack("<I", len(name)) + name.encode()
        data += struct.pack("<I", flat.size) + flat.tobytes()
    path.write_bytes(data)
    print(f"{path.name}: {len(data):,} bytes")


def read_arrays(data: bytes) -> dict[str, Array]:
    arrays = {}
    offset = 0
    while offset < len(data):
        (length,) = struct.unpack_from("<I", data, offset)
        name = data[offset + 4 : offset + 4 + length].decode()
        offset += 4 + length
        (count,) = struct.unpack_from("<I", data, offset)
        arrays[name] = np.frombuffer(data, "<f8", count, offset + 4).copy()
        offset += 4 + 8 * count
    return arrays


def single_precision(generator: torch.Generator, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Normally distributed doubles that a float holds: a test in float starts from the same."""
    values = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale
    return values.float().double()


# ---- Networks ------------------------------------------------------------------------------------


class Network(torch.nn.Module):
    """A multi-layer perceptron on a flat vector: for each layer weights (in, out), then bias."""

    def __init__(
        self, widths: tuple[int, ...], hidden: str, output: str, parameters: torch.Tensor
    ) -> None:
        super().__init__()
        self.widths = widths
        self.activations = [hidden] * (len(widths) - 2) + [output]
        self.flat = torch.nn.Parameter(parameters.clone())

    @staticmethod
    def parameter_count(widths: tuple[int, ...]) -> int:
        return sum((i + 1) * o for i, o in itertools.pairwise(widths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        offset = 0
        for inputs, outputs, activation in zip(
            self.widths, self.widths[1:], self.activations, strict=False
        ):
            weights = self.flat[offset : offset + inputs * outputs].view(inputs, outputs)
            offset += inputs * outputs
            bias = self.flat[offset : offset + outputs]
            offset += outputs
            # functional.linear is torch.nn.Linear, which stores weights (out, in).
            x = ACTIVATIONS[activation](functional.linear(x, weights.T, bias))
        return x


def networks() -> dict[str, Array]:
    """Outputs and gradients of (3, 5, 4, 2) over a batch of 7; each activation, hidden and last."""
    generator = torch.Generator().manual_seed(1)
    widths = (3, 5, 4, 2)
    count = Network.parameter_count(widths)
    arrays = {
        "parameters": single_precision(generator, count, scale=0.7),
        "input": single_precision(generator, 7, 3),
        "output_gradient": single_precision(generator, 7, 2),
    }
    names = list(ACTIVATIONS)
    for index, hidden in enumerate(names):
        output = names[(index + 1) % len(names)]
        network = Network(widths, hidden, output, arrays["parameters"])
        x = arrays["input"].clone().requires_grad_()
        y = network(x)
        y.backward(arrays["output_gradient"])
        arrays[f"{hidden}/output"] = y.detach()
        arrays[f"{hidden}/parameters_gradient"] = network.flat.grad
        arrays[f"{hidden}/input_gradient"] = x.grad
    return {name: tensor.numpy() for name, tensor in arrays.items()}


def losses() -> dict[str, Array]:
    generator = torch.Generator().manual_seed(2)
    prediction = single_precision(generator, 13).requires_grad_()
    target = single_precision(generator, 13)
    error = functional.mse_loss(prediction, target)
    error.backward()
    logits = single_precision(generator, 13, 10, scale=3.0).requires_grad_()
    label = torch.randint(10, (13,), generator=generator)
    entropy = functional.cross_entropy(logits, label)
    entropy.backward()
    assert prediction.grad is not None
    assert logits.grad is not None
    return {
        "prediction": prediction.detach().numpy(),
        "target": target.numpy(),
        "mean_squared_error": error.detach().numpy(),
        "prediction_gradient": prediction.grad.numpy(),
        "logits": logits.detach().numpy(),
        "label": label.double().numpy(),
        "cross_entropy": entropy.detach().numpy(),
        "logits_gradient": logits.grad.numpy(),
    }


# ---- Optimizers ----------------------------------------------------------------------------------


def adam_trace(
    options: Mapping[str, object],
    initial: torch.Tensor,
    gradients: torch.Tensor,
    dtype: torch.dtype,
) -> torch.Tensor:
    """The parameters after each step, (steps, parameters)."""
    parameters = torch.nn.Parameter(initial.to(dtype, copy=True))
    optimizer = torch.optim.Adam([parameters], **options)
    trace = []
    for gradient in gradients:
        parameters.grad = gradient.to(dtype)
        optimizer.step()
        trace.append(parameters.detach().double().clone())
    return torch.stack(trace)


def optimizers() -> dict[str, Array]:
    """Ten steps over 17 parameters whose gradients reach from zero and 1e-12 to 1e6."""
    generator = torch.Generator().manual_seed(3)
    initial = single_precision(generator, 17)
    gradients = single_precision(generator, 10, 17)
    gradients *= torch.logspace(-12, 6, 17, dtype=torch.float64)
    gradients[:, 3] = 0
    gradients[1:, 7] = 0
    gradients = gradients.float().double()
    arrays = {"initial": initial, "gradients": gradients}
    adam = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "foreach": False}
    other_adam = {"lr": 0.25, "betas": (0.5, 0.75), "eps": 1e-3, "foreach": False}
    for name, dtype in (("double", torch.float64), ("float", torch.float32)):
        for case, options in (("adam", adam), ("other_adam", other_adam)):
            arrays[f"{case}/{name}"] = adam_trace(options, initial, gradients, dtype)
    return {name: tensor.numpy() for name, tensor in arrays.items()}


# ---- Actor and critics ---------------------------------------------------------------------------

UPDATES = 4
BATCH = 100
# What is computed element by element is stored in part only, from arrays that hold the layers'
# elements in turn.
STRIDE = 7
INPUT_STRIDE = 35


def dump_inputs(algorithm: str, case: str) -> bytes:
    """Weights, batches and noise that the core draws, by golden_runs.h."""
    build = json.loads((REPOSITORY / "firmware" / "build.json").read_text())
    flags = [flag for flag in build["flags"] if flag not in ("-fno-exceptions", "-fno-rtti")]
    directories = [*build["include_directories"], "tests/lib/rl", "tests/lib/rl/algorithms"]
    with tempfile.TemporaryDirectory() as scratch:
        program, dump = Path(scratch) / "dump_inputs", Path(scratch) / "inputs.bin"
        command = ["g++", *flags, "-Wno-double-promotion", f'-DRLT_REPOSITORY="{REPOSITORY}"']
        command += [f"-I{REPOSITORY / directory}" for directory in directories]
        command += [str(DIRECTORY / "dump_inputs.cpp"), "-o", str(program)]
        subprocess.run(command, check=True)
        subprocess.run([program, algorithm, case, dump], check=True)
        return dump.read_bytes()


def batches(
    inputs: Mapping[str, torch.Tensor], updates: int, size: int = BATCH
) -> list[dict[str, torch.Tensor]]:
    """Each update's arrays (size, columns), without the number before their names."""
    return [
        {
            name.removeprefix(f"{update}/"): values.view(size, -1)
            for name, values in inputs.items()
            if name.startswith(f"{update}/")
        }
        for update in range(updates)
    ]


def adam(parameters: torch.nn.Parameter, hyper: Mapping[str, float]) -> torch.optim.Adam:
    betas = (hyper["beta1"], hyper["beta2"])
    return torch.optim.Adam(
        [parameters], lr=hyper["learning_rate"], betas=betas, eps=hyper["epsilon"]
    )


def smaller_target_value(
    nets: Mapping[str, Network], observation: torch.Tensor, action: torch.Tensor
) -> torch.Tensor:
    critic_input = torch.cat([observation, action], 1)
    return torch.min(nets["critic_1_target"](critic_input), nets["critic_2_target"](critic_input))


def update_critics(
    nets: Mapping[str, Network],
    optimizers: Mapping[str, torch.optim.Adam],
    critic_input: torch.Tensor,
    target: torch.Tensor,
) -> dict[str, float]:
    report = {}
    for name in ("critic_1", "critic_2"):
        loss = functional.mse_loss(nets[name](critic_input), target)
        optimizers[name].zero_grad()
        loss.backward()
        optimizers[name].step()
        report[f"{name}_loss"] = loss.item()
    return report


def update_targets(nets: Mapping[str, Network], tau: float) -> None:
    with torch.no_grad():
        for name, target in nets.items():
            if name.endswith("_target"):
                trained = nets[name.removesuffix("_target")]
                target.flat.mul_(1 - tau).add_(tau * trained.flat)


# ---- TD3 -----------------------------------------------------------------------------------------


def td3_update(
    nets: Mapping[str, Network],
    optimizers: Mapping[str, torch.optim.Adam],
    hyper: Mapping[str, float],
    batch: Mapping[str, torch.Tensor],
    update: int,
) -> dict[str, float]:
    """Fujimoto, van Hoof and Meger 2018, algorithm 1, from "Update critics" on."""
    with torch.no_grad():
        clip = hyper["target_noise_clip"]
        noise = (batch["target_noise"] * hyper["target_policy_noise"]).clamp(-clip, clip)
        next_action = (nets["actor_target"](batch["next_observation"]) + noise).clamp(-1, 1)
        value = smaller_target_value(nets, batch["next_observation"], next_action)
        target = batch["reward"] + hyper["gamma"] * batch["not_terminated"] * value
    report = update_critics(nets, optimizers, batch["observation_action"], target)
    if (update + 1) % int(hyper["policy_delay"]) != 0:
        return report
    observation = batch["observation_action"][:, :3]
    actor_input = torch.cat([observation, nets["actor"](observation)], 1)
    actor_loss = -nets["critic_1"](actor_input).mean()
    optimizers["actor"].zero_grad()
    actor_loss.backward()
    optimizers["actor"].step()
    report["actor_loss"] = actor_loss.item()
    update_targets(nets, hyper["tau"])
    return report


def td3(case: str) -> dict[str, Array]:
    arrays = read_arrays(dump_inputs("td3", case))
    inputs = {name: torch.from_numpy(values) for name, values in arrays.items()}
    names = "learning_rate beta1 beta2 epsilon gamma tau "
    names += "target_policy_noise target_noise_clip policy_delay"
    hyper = dict(zip(names.split(), inputs["hyperparameters"].tolist(), strict=True))
    nets, optimizers = {}, {}
    for name, shape, output in (
        ("actor", (3, 64, 64, 1), "tanh"),
        ("critic_1", (4, 64, 64, 1), "identity"),
        ("critic_2", (4, 64, 64, 1), "identity"),
    ):
        nets[name] = Network(shape, "relu", output, inputs[name])
        nets[f"{name}_target"] = copy.deepcopy(nets[name])
        optimizers[name] = adam(nets[name].flat, hyper)
    # By these the test notices that the core draws other inputs than these results are for.
    results = {f"inputs/{name}": values.numpy()[::INPUT_STRIDE] for name, values in inputs.items()}
    for update, batch in enumerate(batches(inputs, UPDATES)):
        for name, loss in td3_update(nets, optimizers, hyper, batch, update).items():
            results[f"{update}/{name}"] = np.array([loss])
    for name, network in nets.items():
        stride = STRIDE if name.endswith("_target") or case != "paper" else 1
        results[name] = network.flat.detach().numpy()[::stride]
    for name, optimizer in optimizers.items():
        state = optimizer.state[nets[name].flat]
        results[f"{name}_optimizer/first_moment"] = state["exp_avg"].numpy()[::STRIDE]
        results[f"{name}_optimizer/second_moment"] = state["exp_avg_sq"].numpy()[::STRIDE]
    return {f"{case}/{name}": values for name, values in results.items()}


def main() -> None:
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    write_arrays(DIRECTORY / "networks.bin", networks())
    write_arrays(DIRECTORY / "losses.bin", losses())
    write_arrays(DIRECTORY / "optimizers.bin", optimizers())
    write_arrays(DIRECTORY / "td3.bin", {**td3("paper"), **td3("clipped")})


if __name__ == "__main__":
    main()

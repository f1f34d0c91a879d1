"""Makes the goldens of tests/lib/nn/test_sequential.cpp with PyTorch's GRU: a cell, sequences with
hidden states that are set to zero on the way, and the gradients of all of it.

Run it where torch 2.13.0 and numpy are installed: python tests/goldens/generate_recurrent.py
"""

from __future__ import annotations

import torch
from generate import ACTIVATIONS, DIRECTORY, Array, single_precision, write_arrays
from torch.func import functional_call
from torch.nn import functional

# Layers as the test has them: (width, activation, is recurrent); and windows of steps.
NETWORKS = {
    "gru": (4, ((5, "identity", True),)),
    "between": (3, ((6, "silu", False), (5, "identity", True), (2, "tanh", False))),
    "two": (3, ((4, "identity", True), (3, "identity", True), (2, "identity", False))),
}
WINDOWS, STEPS = 3, 7
# (window, step): the hidden state is set to zero before this step.
BEGINS = ((0, 3), (1, 1), (1, 6), (2, 4), (2, 5))


def gru(
    x: torch.Tensor, begins: torch.Tensor, state: torch.Tensor, parameters: list[torch.Tensor]
) -> torch.Tensor:
    """The states after each step, (windows, steps, width), by torch.nn.GRU over what lies between
    two beginnings."""
    weights, bias, hidden_weights, hidden_bias = parameters
    width = hidden_weights.shape[0]
    module = torch.nn.GRU(x.shape[2], width, batch_first=True, dtype=x.dtype)
    own = {
        "weight_ih_l0": weights.T,
        "weight_hh_l0": hidden_weights.T,
        "bias_ih_l0": bias,
        "bias_hh_l0": hidden_bias,
    }
    rows = []
    for window in range(x.shape[0]):
        first, hidden, pieces = 0, state[window].view(1, width), []
        borders = [step for step in range(1, x.shape[1]) if begins[window, step]]
        for border in (*borders, x.shape[1]):
            states, _ = functional_call(module, own, (x[window, first:border], hidden))
            pieces.append(states)
            first, hidden = border, torch.zeros_like(hidden)
        rows.append(torch.cat(pieces))
    return torch.stack(rows)


def network(name: str, generator: torch.Generator, begins: torch.Tensor) -> dict[str, torch.Tensor]:
    inputs, layers = NETWORKS[name]
    x = single_precision(generator, WINDOWS, STEPS, inputs).requires_grad_()
    parameters: list[torch.Tensor] = []
    states: list[torch.Tensor] = []
    y = x
    for width, activation, is_recurrent in layers:
        columns = 3 * width if is_recurrent else width
        shapes = [(y.shape[2], columns), (columns,)]
        if is_recurrent:
            shapes += [(width, columns), (columns,)]
        own = [single_precision(generator, *shape, scale=0.6).requires_grad_() for shape in shapes]
        parameters += own
        if is_recurrent:
            states.append(single_precision(generator, WINDOWS, width, scale=0.5).requires_grad_())
            y = gru(y, begins, states[-1], own)
        else:
            y = ACTIVATIONS[activation](functional.linear(y, own[0].T, own[1]))
    gradient = single_precision(generator, WINDOWS, STEPS, y.shape[2])
    y.backward(gradient)
    return {
        "input": x.detach(),
        "parameters": torch.cat([values.detach().reshape(-1) for values in parameters]),
        "state": torch.cat([values.detach() for values in states], 1),
        "output": y.detach(),
        "output_gradient": gradient,
        "parameters_gradient": torch.cat([_gradient(values).reshape(-1) for values in parameters]),
        "input_gradient": _gradient(x),
        "state_gradient": torch.cat([_gradient(values) for values in states], 1),
    }


def _gradient(values: torch.Tensor) -> torch.Tensor:
    assert values.grad is not None
    return values.grad


def cell(generator: torch.Generator) -> dict[str, torch.Tensor]:
    """torch.nn.GRUCell, one step of three rows, with inputs from 0.01 to 100 in size."""
    module = torch.nn.GRUCell(2, 3, dtype=torch.float64)
    for parameter in module.parameters():
        parameter.data = single_precision(generator, *parameter.shape)
    x = single_precision(generator, 3, 2) * torch.tensor([[0.01], [1.0], [100.0]]).double()
    x = x.float().double()
    state = single_precision(generator, 3, 3)
    weights = (module.weight_ih.T, module.bias_ih, module.weight_hh.T, module.bias_hh)
    return {
        "input": x,
        "state": state,
        "parameters": torch.cat([values.detach().reshape(-1) for values in weights]),
        "output": module(x, state).detach(),
    }


def main() -> None:
    generator = torch.Generator().manual_seed(27)
    begins = torch.zeros(WINDOWS, STEPS, dtype=torch.float64)
    for window, step in BEGINS:
        begins[window, step] = 1
    arrays: dict[str, Array] = {"begins": begins.numpy()}
    arrays |= {f"cell/{name}": values.numpy() for name, values in cell(generator).items()}
    for case in NETWORKS:
        values = network(case, generator, begins)
        arrays |= {f"{case}/{name}": array.numpy() for name, array in values.items()}
    write_arrays(DIRECTORY / "recurrent.bin", arrays)


if __name__ == "__main__":
    main()

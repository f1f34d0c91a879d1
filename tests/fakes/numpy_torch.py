"""What an exported module uses of PyTorch, in NumPy: its formulas are computed where PyTorch is not
installed. Layers are PyTorch's by the formulas of its documentation, in single precision."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

Array = Any


class Tensor(np.ndarray):
    """An array of float32 with the methods that the module calls."""

    def __new__(cls, values: Any) -> Tensor:
        return np.asarray(values, np.float32).view(cls)

    def clamp(self, low: Any, high: Any) -> Array:
        return np.minimum(np.maximum(self, low), high)

    def split(self, sizes: Sequence[int], dim: int) -> list[Array]:
        assert sum(sizes) == self.shape[dim]
        return np.split(self, np.cumsum(sizes)[:-1], dim)

    def chunk(self, count: int, dim: int) -> list[Array]:
        return np.split(self, count, dim)

    def argmax(self, dim: int, keepdim: bool) -> Array:  # type: ignore[override]
        return Tensor(np.argmax(self.view(np.ndarray), axis=dim, keepdims=keepdim))

    def to(self, dtype: Any) -> Array:
        return self.astype(dtype)

    def new_zeros(self, *shape: int) -> Array:
        return Tensor(np.zeros(shape))


class Module:
    """Buffers, parameters and modules by the names that a state has."""

    def __init__(self) -> None:
        self._buffers: set[str] = set()

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)  # type: ignore[attr-defined]

    def register_buffer(self, name: str, values: Array) -> None:
        setattr(self, name, values)
        self._buffers.add(name)

    def places(self, before: str = "") -> Iterator[tuple[str, Module, str]]:
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value.places(f"{before}{name}.")
            elif name in self._buffers:
                yield before + name, self, name

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Each tensor of the file has a place of its shape, and each place a tensor."""
        places = {name: (module, own) for name, module, own in self.places()}
        assert places.keys() == state.keys()
        for name, (module, own) in places.items():
            assert getattr(module, own).shape == state[name].shape, name
            setattr(module, own, Tensor(state[name]))


class ModuleList(Module):
    def __init__(self, modules: Any) -> None:
        super().__init__()
        self.modules = list(modules)
        for index, module in enumerate(self.modules):
            setattr(self, str(index), module)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)


class Linear(Module):
    def __init__(self, taken: int, given: int) -> None:
        super().__init__()
        self.register_buffer("weight", empty(given, taken))
        self.register_buffer("bias", empty(given))

    def forward(self, x: Array) -> Array:
        return x @ self.weight.T + self.bias  # type: ignore[attr-defined]


class Cell(Module):
    gates: int

    def __init__(self, taken: int, width: int) -> None:
        super().__init__()
        for name, size in (("ih", taken), ("hh", width)):
            self.register_buffer(f"weight_{name}", empty(self.gates * width, size))
            self.register_buffer(f"bias_{name}", empty(self.gates * width))

    def parts(self, name: str, x: Array) -> list[Array]:
        weight, bias = getattr(self, f"weight_{name}"), getattr(self, f"bias_{name}")
        return np.split(x @ weight.T + bias, self.gates, -1)


class GRUCell(Cell):
    gates = 3

    def forward(self, x: Array, h: Array) -> Array:
        (x_r, x_z, x_n), (h_r, h_z, h_n) = self.parts("ih", x), self.parts("hh", h)
        r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
        return (1 - z) * np.tanh(x_n + r * h_n) + z * h


class LSTMCell(Cell):
    gates = 4

    def forward(self, x: Array, state: Sequence[Array]) -> tuple[Array, Array]:
        h, c = state
        i, f, g, o = (a + b for a, b in zip(self.parts("ih", x), self.parts("hh", h), strict=True))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c


def empty(*shape: int) -> Array:
    """Of numbers that nobody may use."""
    return Tensor(np.full(shape, np.nan))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return Tensor(x * (1 + np.vectorize(math.erf)(x.astype(float) / math.sqrt(2))) / 2)


def modules() -> dict[str, types.ModuleType]:
    """For sys.modules: torch, and safetensors.torch."""

    def module(name: str, **members: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        vars(made).update(members)
        return made

    functional = module(
        "torch.nn.functional",
        gelu=gelu,
        softplus=lambda x: np.logaddexp(np.float32(0), x),
        elu=lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))).view(Tensor),
        silu=lambda x: x * sigmoid(x),
        hardtanh=lambda x: np.clip(x, np.float32(-1), np.float32(1)),
    )
    nn = module(
        "torch.nn",
        functional=functional,
        Module=Module,
        ModuleList=ModuleList,
        Linear=Linear,
        GRUCell=GRUCell,
        LSTMCell=LSTMCell,
        Identity=lambda: lambda x: x,
    )
    torch = module(
        "torch",
        nn=nn,
        empty=empty,
        relu=lambda x: np.maximum(x, 0),
        tanh=np.tanh,
        sigmoid=sigmoid,
        minimum=np.minimum,
        maximum=np.maximum,
        cat=lambda parts, dim: Tensor(np.concatenate(parts, dim)),
    )

    def load_file(path: Path) -> dict[str, Array]:
        return dict(safetensors.numpy.load_file(path))

    return {
        "torch": torch,
        "torch.nn": nn,
        "torch.nn.functional": functional,
        "safetensors.torch": module("safetensors.torch", load_file=load_file),
    }

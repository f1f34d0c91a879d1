"""A policy's formulas in double precision, and the tolerances for other runtimes, which compute it
in single precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import ranges_of
from rltools_host.policies.activations import Array, activation_named, identity, logistic
from rltools_host.policies.contract import DENSE, GATES, GRU, Layer
from rltools_host.policies.image import Float32Array, PolicyImage

UNIT = 2.0**-24  # roundoff of single precision
# The number of draws of single precision's errors, and of deviations that are tolerated.
# Trained policies' largest difference is 0.1 of that (tests/host/policies/test_other_runtimes.py).
DRAWS, MAX_DEVIATIONS = 16, 8
OF_FUNCTION = 4 * UNIT  # of max(1, value), of tanh and others
# The least tolerance, of half an action's range or of a state of 1.
SMALLEST_LIMIT = 1e-6


class Pass:
    """One pass of a policy, each result of which has an error of single precision.

    The errors are drawn at random, as those of sums in no known order are (Parker, Monte Carlo
    arithmetic, 1997).
    """

    def __init__(self, image: PolicyImage, draws: np.random.Generator) -> None:
        self.image = image
        self._draws = draws

    def run(self, observations: Float32Array, states: Float32Array) -> tuple[Array, Array, Array]:
        """Return outputs (n, out), actions (n, actions), of which 1 is half a range, and states
        after the step (n, state_dim)."""
        x, offset, after = observations.astype(float), 0, [states[:, :0].astype(float)]
        if self.image.normalizer is not None:
            mean, inverse_std = (part.astype(float) for part in self.image.normalizer)
            x = (x - mean) * inverse_std
            x = self._rounded(x, 2 * UNIT * np.abs(x))
        for layer in self.image.layers:
            if layer.kind == DENSE:
                x = self._product(x, layer.weights, layer.bias)
                activation = activation_named(layer.activation)
                x = self._function(activation.value, x, not activation.is_exact)
            else:
                state = states[:, offset : offset + layer.state_dim].astype(float)
                cell = self._gru if layer.kind == GRU else self._lstm
                after += (following := cell(layer, x, state))
                x, offset = following[0], offset + layer.state_dim
        return x, self._actions(x), np.concatenate(after, axis=1)

    def _rounded(self, values: Array, errors: Array) -> Array:
        return values + errors * self._draws.standard_normal(values.shape)

    def _product(self, x: Array, weights: Float32Array, bias: Float32Array) -> Array:
        """Return the product with errors of single precision.

        Each product and addition rounds by up to a unit. The additions come in a random order, and
        each errs by the mean square of the sum so far.
        """
        exact = weights.astype(float)
        value = x @ exact + bias
        squares = x**2 @ exact**2 + bias.astype(float) ** 2
        of_additions = len(weights) * (value**2 / 3 + squares / 6)
        return self._rounded(value, UNIT * np.sqrt((of_additions + squares) / 3))

    def _function(self, function: Callable[[Array], Array], x: Array, rounds: bool = True) -> Array:
        value = function(x)
        return self._rounded(value, OF_FUNCTION * np.maximum(1, np.abs(value))) if rounds else value

    def _gru(self, layer: Layer, x: Array, state: Array) -> list[Array]:
        given, own = self._gates(layer, x, state)
        reset, keep = (self._function(logistic, given[gate] + own[gate]) for gate in range(2))
        candidate = self._function(np.tanh, given[2] + reset * own[2])
        return [self._function(identity, (1 - keep) * candidate + keep * state)]

    def _lstm(self, layer: Layer, x: Array, state: Array) -> list[Array]:
        before, cells = np.split(state, 2, axis=1)
        into, forget, candidate, out = (
            self._function(np.tanh if gate == 2 else logistic, given + own)
            for gate, (given, own) in enumerate(zip(*self._gates(layer, x, before), strict=True))
        )
        cells = self._function(identity, forget * cells + into * candidate)
        return [self._function(identity, out * np.tanh(cells)), cells]

    def _gates(self, layer: Layer, x: Array, before: Array) -> tuple[list[Array], list[Array]]:
        """Return what the inputs and the previous outputs add to each gate."""
        assert layer.hidden is not None
        products = (
            self._product(x, layer.weights, layer.bias),
            self._product(before, *layer.hidden),
        )
        given, own = (np.split(each, GATES[layer.kind], axis=1) for each in products)
        return given, own

    def _actions(self, outputs: Array) -> Array:
        """Return an output for each action.

        Of a discrete action, where errors mean nothing, it is the first.
        """
        low, high = ranges_of(self.image.actions, np.float64)
        counts = [len(action.choices) or 1 for action in self.image.actions]
        values = np.clip(outputs[:, np.cumsum([0, *counts[:-1]])], -1, 1)
        errors = 2 * UNIT * np.maximum(np.abs(low), np.abs(high)) / ((high - low) / 2)
        return self._rounded(values, np.broadcast_to(errors, values.shape))


@dataclass(frozen=True, eq=False)
class Allowed:
    """The tolerances for another runtime's results, for each observation."""

    actions: Array  # (n, actions), of half their range
    states: Array  # (n, state_dim)
    outputs: Array  # (n, out)

    def is_close_choice(self, image: PolicyImage, outputs: Float32Array) -> NDArray[np.bool_]:
        """Return (n, actions): where outputs of a discrete action are so close that rounding
        decides."""
        first, close = 0, []
        rows = np.arange(len(outputs))
        for action in image.actions:
            part = slice(first, first := first + (len(action.choices) or 1))
            values, errors = outputs[:, part].astype(float), self.outputs[:, part]
            best = values.argmax(axis=1)
            gaps = values[rows, best][:, None] - values
            near = gaps <= errors + errors[rows, best][:, None]
            close.append((near.sum(axis=1) > 1) & bool(action.choices))
        return np.stack(close, axis=1)


def allowed(image: PolicyImage, observations: Float32Array, states: Float32Array) -> Allowed:
    """Return the tolerances for observations (n, o) from states (n, state_dim)."""
    one = Pass(image, np.random.default_rng(0))
    draws = [one.run(observations, states) for _ in range(DRAWS)]

    def deviations(part: int) -> Array:
        spread = np.array([draw[part] for draw in draws]).std(axis=0)
        limits: Array = np.maximum(SMALLEST_LIMIT, MAX_DEVIATIONS * spread)
        return limits

    outputs, actions, after = map(deviations, range(3))
    return Allowed(actions, after, outputs)

"""Recurrent layers in tables of tensors: which they are, and the order in which layers follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rltools_host.policies.importing import state_dicts
from rltools_host.policies.importing.layers import (
    UNKNOWN_BEHIND,
    Tensors,
    in_chain,
    layers_under,
    recurrent,
    recurrent_under,
)
from rltools_host.policies.importing.network import Activate, Dense, Recurrent, widths
from rltools_host.policies.importing.pickles import UnreadableError
from rltools_host.policies.importing.state_dicts import Given

GRU = 3


def dense(name: str, taken: int, given: int) -> dict[str, Any]:
    return {f"{name}.weight": np.ones((given, taken)), f"{name}.bias": np.zeros(given)}


def gru(name: str, taken: int, width: int, end: str = "_l0", gates: int = GRU) -> dict[str, Any]:
    place = f"{name}." if name else ""
    return {
        f"{place}weight_ih{end}": np.full((gates * width, taken), 2.0),
        f"{place}weight_hh{end}": np.full((gates * width, width), 3.0),
        f"{place}bias_ih{end}": np.full(gates * width, 4.0),
        f"{place}bias_hh{end}": np.full(gates * width, 5.0),
    }


def table(*parts: dict[str, Any]) -> Tensors:
    return Tensors({name: value for part in parts for name, value in part.items()}, "table")


def test_the_layers_of_a_module_and_of_a_cell() -> None:
    (one,) = recurrent(table(gru("cell", 2, 4, end="")), "cell")
    assert (one.weights.shape, one.hidden_weights.shape) == ((2, 12), (4, 12))
    assert [each.flat[0] for each in (one.weights, one.bias, one.hidden_weights)] == [2, 4, 3]
    assert one.hidden_bias.tolist() == [5.0] * 12
    several = table(*(gru("", 4 if i else 2, 4, f"_l{i}") for i in range(11)))
    assert len(recurrent(several, "")) == 11
    (lstm,) = recurrent(table(gru("lstm", 2, 4, gates=4)), "lstm")
    assert (lstm.is_lstm, lstm.state_dim) == (True, 8)
    assert (one.is_lstm, one.state_dim) == (False, 4)
    bare = table(gru("gru", 2, 4))
    del bare["gru.bias_ih_l0"], bare["gru.bias_hh_l0"]
    (without,) = recurrent(bare, "gru")
    assert not without.bias.any()
    assert without.hidden_bias.shape == (12,)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        (gru("a", 2, 4, "_l0_reverse") | gru("a", 2, 4), '"a" also reads time backwards'),
        (gru("a", 2, 4) | {"a.weight_hr_l0": np.ones((2, 4))}, '"a" projects its state'),
        (gru("a", 2, 4, "_l1"), 'layers of "a" are missing'),
        (
            gru("a", 2, 4) | {"a.weight_hh_l0": np.ones(12)},
            '"a._l0" is not a recurrent layer of Py',
        ),
    ],
)
def test_what_is_no_layer_that_is_taken(tensors: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        recurrent(table(tensors), "a")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("parts", "keeps_order", "order"),
    [
        # By their widths, whatever the names are.
        (
            (dense("fc1", 3, 8), dense("fc2", 6, 1), gru("gru", 8, 6)),
            *(False, ["fc1", "gru", "fc2"]),
        ),
        ((gru("z", 3, 8), dense("a.0", 8, 6), dense("a.10", 6, 1)), False, ["z", "a.0", "a.10"]),
        # As they were made, where several orders fit.
        (
            (dense("in", 3, 8), gru("gru", 8, 8), dense("a", 8, 8), dense("out", 8, 1)),
            *(True, ["in", "gru", "a", "out"]),
        ),
        # Those that were made in another order.
        ((gru("gru", 8, 6), dense("fc1", 3, 8), dense("fc2", 6, 1)), True, ["fc1", "gru", "fc2"]),
    ],
)
def test_the_order_of_layers(parts: Any, keeps_order: bool, order: list[str]) -> None:
    assert in_chain(table(*parts), keeps_order=keeps_order) == order


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            (dense("a", 3, 8), dense("b", 8, 8), gru("gru", 8, 8), dense("c", 8, 1)),
            "its layers follow on each other in more than one order: save the state_dict()",
        ),
        ((dense("a", 3, 8), gru("gru", 7, 8)), "its layers follow on each other in no order"),
        (
            (gru("gru", 3, 3), *(dense(f"d{i}", 3, 3) for i in range(32))),
            "it has 1 recurrent modules among 33",
        ),
    ],
)
def test_an_order_that_nobody_knows(parts: Any, sentence: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        in_chain(table(*parts), keeps_order=False)
    assert sentence in str(refused.value)


def test_an_activation_is_asked_for_where_a_dense_layer_is_hidden() -> None:
    behind = {**gru("gru", 3, 6), **dense("head", 6, 1)}
    policy = state_dicts.policy_in(behind, Given(None, "tanh"))
    assert widths(policy.stages) == (3, 1)
    assert UNKNOWN_BEHIND in policy.assumed
    one = state_dicts.policy_in(dense("a", 3, 1), Given("relu", "tanh")).assumed
    assert one == (state_dicts.PLAIN_NORMALIZER,)
    with pytest.raises(UnreadableError, match="name it with --activation"):
        state_dicts.policy_in({**dense("first", 3, 3), **behind}, Given(None, "tanh"))


def games(*parts: dict[str, Any], units: int, mlp: tuple[int, int]) -> dict[str, Any]:
    """An rl_games checkpoint."""
    prefix = "a2c_network."
    whole = table(
        dense(f"{prefix}actor_mlp.0", *mlp),
        gru(f"{prefix}rnn.rnn", 5, 6),
        dense(f"{prefix}mu", units, 1),
        *parts,
    )
    return {"model": dict(whole), "frame": 3}


def test_rl_games_has_its_recurrent_layers_before_or_behind() -> None:
    before = state_dicts.policy_in(games(units=4, mlp=(6, 4)), Given("elu"))
    behind = state_dicts.policy_in(games(units=6, mlp=(3, 5)), Given("elu"))
    assert [type(stage) for stage in before.stages[:2]] == [Recurrent, Dense]
    assert [type(stage) for stage in behind.stages[:3]] == [Dense, Activate, Recurrent]
    for units, mlp in ((6, (3, 4)), (7, (3, 5))):
        with pytest.raises(UnreadableError, match="does not say in which order its dense and rec"):
            state_dicts.policy_in(games(units=units, mlp=mlp), Given("elu"))
    normed = games({"a2c_network.layer_norm.weight": np.ones(6)}, units=6, mlp=(3, 5))
    with pytest.raises(UnreadableError, match=r"with \"a2c_network\.layer_norm\.weight\", which"):
        state_dicts.policy_in(normed, Given("elu"))


def test_more_layers_than_anybody_looks_at_are_refused_at_once() -> None:
    many = table(
        *(gru(f"a.{i}", 1, 1) for i in range(33)), *(dense(f"b.{i}", 1, 1) for i in range(33))
    )
    for find, prefix in ((recurrent_under, "a."), (layers_under, "b.")):
        with pytest.raises(UnreadableError, match="it has 33 layers, and 1 to 32 are supported"):
            find(many, prefix)
        assert find(many, "c.") == []

"""What `rlt hil` asks of a board, and refuses, before and after anything is compared."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policy_samples import sample_images
from rltools_host.boards import hil
from rltools_host.boards.hil import HilRequest
from rltools_host.boards.policy_session import PolicyPlace
from rltools_host.build.boards import load_board
from rltools_host.errors import BoardMismatchError, RefusedError, UsageError
from rltools_host.policies.image import parse_policy

made: Any = SimpleNamespace


def test_bounds_of_a_request() -> None:
    hil.check_request("all-emulated", None, 1, 1)
    hil.check_request("host", "/dev/null", None, 1)
    for board, port, samples, inputs in (
        ("host", None, 0, 1),
        ("host", None, 1, 0),
        ("all-emulated", "/dev/null", 1, 1),
    ):
        with pytest.raises(UsageError):
            hil.check_request(board, port, samples, inputs)
    request = HilRequest(PolicyPlace("host"))
    assert (request.run, request.samples, request.inputs, request.which) == (
        *(None, None),
        *(1000, "last"),
    )


@pytest.mark.parametrize(
    ("run", "board", "port", "meant"),
    [
        ("mine", "host", "/dev/x", "mine"),
        (None, "host", None, "latest"),
        (None, "qemu-cortex-m7", None, "latest"),
        (None, "all-emulated", None, "latest"),
        (None, "host", "/dev/x", None),
        (None, "teensy41", None, None),  # a real one goes on between commands
        (None, "no-board", None, None),
        (None, "crazyflie", None, None),
    ],
)
def test_whose_policy_is_meant(
    run: str | None, board: str, port: str | None, meant: str | None
) -> None:
    assert hil.run_meant(run, board, port) == meant


def test_emulated_boards_take_fewer_samples_than_real_ones() -> None:
    assert hil.default_samples(load_board("teensy41")) == 100_000
    assert hil.default_samples(load_board("host")) == 2000


def test_each_board_is_a_request() -> None:
    request = HilRequest(PolicyPlace("host"), "mine", 5, 6)
    assert hil.boards_of(request) == [request]
    each = hil.boards_of(HilRequest(PolicyPlace("all-emulated"), "mine", 5, 6))
    names = [one.place.board for one in each]
    assert names[0] == "host"
    assert "qemu-cortex-m7" in names
    assert "teensy41" not in names
    assert {(one.run, one.samples, one.inputs) for one in each} == {("mine", 5, 6)}


@pytest.mark.parametrize(("missing", "text"), [([], ""), (["a", "b"], "needs a, b")])
def test_what_is_missing(missing: list[str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hil.tools, "missing_names", lambda _: missing)
    assert hil.missing_tools(load_board("host")) == text


def test_a_board_of_others_has_no_footprint() -> None:
    place = PolicyPlace("host", "/dev/x")
    assert hil.footprint_of(load_board("host"), place) is None


def test_other_bits_are_an_error_with_all_that_was_found() -> None:
    hil.require_parity(made(parity=made(holds=True)))
    parity = made(holds=False, first="it differs", mismatches=1234, ticks=made(failed=5678))
    result = made(board="b", parity=parity, document=lambda: {"board": "b"})
    with pytest.raises(RefusedError) as caught:
        hil.require_parity(result)
    assert str(caught.value) == (
        "b computes other bits than this machine: it differs; "
        "1,234 inputs and 5,678 calls of the executor differ in all"
    )
    assert caught.value.details == {"board": "b"}


def session(active: object, trial: object, data: bytes = b"") -> Any:
    return made(
        description="x",
        policies=made(slots=lambda: made(active=active, trial=trial)),
        files=made(download=lambda _: data),
    )


def test_the_policy_that_a_board_has() -> None:
    data = sample_images()["pendulum"]
    own = parse_policy(data)
    identity = made(fingerprint=own.contract.checksum)
    assert hil.acting_policy(session(1, None, data), identity).sha256 == own.sha256
    with pytest.raises(BoardMismatchError, match="the policy of the board on x is not made for"):
        hil.acting_policy(session(1, None, data), made(fingerprint=identity.fingerprint ^ 1))
    with pytest.raises(RefusedError, match="x tries another policy: confirm or drop it first"):
        hil.acting_policy(session(1, 2), identity)
    with pytest.raises(RefusedError, match="x has no policy: push one, or name a --run"):
        hil.acting_policy(session(None, None), identity)


def checked(
    monkeypatch: pytest.MonkeyPatch, holds: bool, armed: bool = False, **request: Any
) -> tuple[Any, list[Any], list[Any]]:
    """What a board is found to do whose bits are right or wrong; what was done, and shown."""
    done: list[Any] = []
    shown: list[Any] = []

    def check_parity(*given: Any) -> Any:
        *given, progress = given
        done.append(("parity", *given))
        progress(3, 9)
        return made(holds=holds)

    def measure_cost(*given: Any) -> str:
        *given, progress = given
        done.append(("cost", *given))
        progress(4, 8)
        return "its cost"

    monkeypatch.setattr(hil, "check_parity", check_parity)
    monkeypatch.setattr(hil, "measure_cost", measure_cost)
    monkeypatch.setattr(hil, "footprint_of", lambda board, place: (board.name, place))
    policies = made(executor=lambda: made(armed=armed))
    board = made(
        policies=policies, description="x", node=made(stack_use=lambda: {"stack_peak": 123})
    )
    image = made(
        place_inputs_at=lambda fingerprint: ("input", fingerprint) if fingerprint else None
    )
    asked = HilRequest(PolicyPlace("host"), "mine", **request)
    identity = made(fingerprint=77, experiment="quadrotor")
    result = hil.check_session(asked, image, board, identity, lambda *given: shown.append(given))
    assert done[0] == ("parity", policies, image, ("input", 77), asked.inputs)
    assert (result.board, result.contract, result.stack_bytes) == ("host", "quadrotor", 123)
    assert (result.image, result.identity) == (image, identity)
    assert result.footprint == ("host", asked.place)
    return result, [each[0:1] + each[2:] for each in done], shown


def test_what_computes_rightly_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    result, done, shown = checked(monkeypatch, True, inputs=5)
    assert (result.cost, result.samples) == ("its cost", 2000)
    assert done[1:] == [("cost", 2000)]
    assert shown == [("inputs compared", 3, 9), ("samples taken", 4, 8)]
    assert checked(monkeypatch, True, samples=7)[0].samples == 7


def test_what_computes_wrongly_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    result, done, _ = checked(monkeypatch, False)
    assert result.cost is None
    assert len(done) == 1


def test_an_armed_board_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedError, match=r"^the board on x is armed: disarm it first$"):
        checked(monkeypatch, True, armed=True)


@pytest.mark.parametrize("run", ["mine", None])
def test_the_policy_is_brought_to_the_board_or_is_there(
    run: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    session, identity = object(), object()
    of_run: Any = made(verify=lambda: done.append("verified"), origin="of the run")
    there: Any = made(verify=lambda: None)

    @contextlib.contextmanager
    def opened(*given: Any) -> Iterator[tuple[object, object]]:
        done.append(given)
        yield session, identity
        done.append("closed")

    class Push:
        def __init__(self, *given: Any) -> None:
            done.append(given)

        def carry_out(self, _: Any, show: Any) -> None:
            show(1, 2)

    def read(*given: Any) -> Any:
        done.append(given)
        return of_run

    def acting(*given: Any) -> Any:
        assert given == (session, identity)
        return there

    monkeypatch.setattr(hil, "policy_session", opened)
    monkeypatch.setattr(hil, "Push", Push)
    monkeypatch.setattr(hil, "read_run_policy", read)
    monkeypatch.setattr(hil, "acting_policy", acting)
    monkeypatch.setattr(hil, "check_session", lambda *given: given)
    place = PolicyPlace("host")
    request = HilRequest(place, run, which="best")
    shown: list[Any] = []

    def show(*given: Any) -> None:
        shown.append(given)

    found: Any = hil.check_board(request, show)
    assert found == (request, of_run if run else there, session, identity, show)
    if not run:
        assert done == [(place, hil.Storage.MEMORY), "closed"]
        return
    (push,) = [each for each in done if isinstance(each, tuple) and len(each) == 5]
    assert (push[0].run, push[0].place) == ("of the run", place)
    assert push[1:4] == (of_run, session, identity)
    assert push[4].board == "host"
    assert [each for each in done if each != push] == [
        *(("mine", "best"), (place, hil.Storage.MEMORY)),
        *("verified", "closed"),
    ]
    assert shown == [("bytes sent", 1, 2)]


def test_what_was_found_is_kept_in_the_run_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hil.RunFolder, "open", lambda run: made(path=tmp_path / run))
    (tmp_path / "mine").mkdir()
    hil.keep({"board": "host"}, None)
    assert list(tmp_path.rglob("*.json")) == []
    hil.keep({"board": "host", "samples": 3}, "mine")
    file = tmp_path / "mine" / "hil-host.json"
    assert file.read_text() == '{\n "board": "host",\n "samples": 3\n}\n'

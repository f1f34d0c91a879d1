"""Pushes over a lossy link to a board that is reset at any moment: the client, and the service.

The board is the application's own, on flash whose power fails (lossy_world.h).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from lossy_board import LossyBoard, LossyLink
from rltools_host.boards import file_transfer
from rltools_host.boards.connection import Connection
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import Push, PushRequest, reported
from rltools_host.boards.session import BoardSession, NodeClient
from rltools_host.build.cmake import load_dialect
from rltools_host.errors import RltError
from rltools_host.policies.image import PolicyImage, parse_policy

TRANSFERS = 300
ALL_TRANSFERS = 10_000


@pytest.fixture(scope="module")
def board() -> Iterator[LossyBoard]:
    with LossyBoard() as board:
        yield board


@pytest.fixture(scope="module")
def image(board: LossyBoard) -> PolicyImage:
    return parse_policy(board.image(2), "the run's policy")


def push_over(board: LossyBoard, image: PolicyImage) -> str:
    """Why it was given up; empty where it is confirmed."""
    link = LossyLink(board)
    try:
        connection = Connection(link, load_dialect(), None, link.clock)
        identity = NodeClient(connection).find(10.0)
        request = PushRequest("run", PolicyTarget("host"))
        with reported("host") as outcome:
            push = Push(request, image, BoardSession(connection), identity, outcome)
            push.carry_out(lambda _: None, None)
    except RltError as error:
        return str(error)
    assert outcome.active_sha256 == image.sha256
    return "" if outcome.activated else "it was not activated"


def transfer(board: LossyBoard, image: PolicyImage, seed: int) -> str:
    """One world: a push, and another at once where it was given up."""
    board.start(seed)
    why = push_over(board, image)
    is_completed = not why or not push_over(board, image)
    assert not board.violation, f"seed {seed}: {board.violation}"
    board.calm()
    assert not board.violation, f"seed {seed}: {board.violation}"
    if is_completed:
        assert board.is_second_active, f"seed {seed}: it is not active"
    assert push_over(board, image) == "", f"seed {seed}: the board is stuck"
    assert board.is_second_active
    return why


def check(board: LossyBoard, image: PolicyImage, seeds: range, patch: pytest.MonkeyPatch) -> None:
    chance = Random(1)
    patch.setattr(file_transfer.secrets, "randbelow", chance.randrange)  # can be repeated
    reasons: Counter[str] = Counter()
    resets = 0
    for seed in seeds:
        chance.seed(seed)
        why = transfer(board, image, seed)
        # One sentence, which names the board or the link.
        assert not why or re.fullmatch(r"[^\n]*the lossy link[^\n]*[^\s.]", why), why
        reasons[re.sub(r"\d+(\.\d+)?", "N", why)] += 1
        resets += board.resets
    print("\n".join(f"{count:6} {reason}" for reason, count in reasons.most_common()))
    assert len(seeds) // 4 < reasons[""] < len(seeds) * 3 // 4
    assert len(reasons) > 8
    assert resets > len(seeds) // 5


@pytest.mark.all
def test_no_push_activates_what_it_should_not(
    board: LossyBoard, image: PolicyImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(board, image, range(TRANSFERS), monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_no_push_of_many_activates_what_it_should_not(
    board: LossyBoard, image: PolicyImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(board, image, range(TRANSFERS, ALL_TRANSFERS), monkeypatch)

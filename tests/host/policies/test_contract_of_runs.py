"""Which contract a board is built for: that of the run, before anything is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from policy_run import make_policy_run
from rltools_host.boards.policy_session import target_of_run
from rltools_host.errors import DamagedFileError, UsageError


def run_with(path: Path, document: Mapping[str, Any]) -> str:
    make_policy_run(path)
    (path / "run.json").write_text(json.dumps(document))
    return str(path)


def test_no_board_can_be_built_for_it(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"experiment": "ant-ppo", "contract": None})
    with pytest.raises(UsageError, match="of ant-ppo, whose environment has channels of its own"):
        target_of_run(run, "host", None, None)
    assert target_of_run(run, "teensy41", "/dev/ttyACM0", None).port, "what is there is not built"
    assert target_of_run(run, "crazyflie", None, None).is_crazyflie


def test_a_contract_that_is_no_name(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"experiment": "x", "contract": "../../x"})
    with pytest.raises(DamagedFileError, match="contract: Expected `str` matching regex"):
        target_of_run(run, "host", None, None)

"""The best policy of a run by its evaluations in training: kept by the board, fetched at each save.

A board that keeps one has that of the evaluations since it was started, or since a checkpoint was
put on it. A run has the better of that and of what its save had. An evaluation whose policy no
board kept, and one whose report was lost, does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rltools_host.clients.file_transfer import BEST_PATH
from rltools_host.clients.messages import Evaluation
from rltools_host.clients.session import BoardSession
from rltools_host.errors import DamagedFileError, FileNotThereError
from rltools_host.runs.policy_file import state_of_policy, step_of_policy
from rltools_host.runs.saves import BEST_FILE
from rltools_host.training.metrics_log import evaluation_of


class BestPolicy:
    """The best policy so far; at first there is none."""

    def __init__(self) -> None:
        self._image = b""
        self._evaluation: Evaluation | None = None
        self._of_session: dict[int, Evaluation] = {}  # by their steps

    def restore(self, save: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        """Takes what a save has; `rows` are the metrics up to it.

        DamagedFileError where that is no policy, or of no evaluation.
        """
        path = save / BEST_FILE
        try:
            image = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DamagedFileError(f"cannot read {path}: {error.strerror or error}") from None
        step = step_of_policy(image)
        found = [row for row in rows if row.get("kind") == "evaluation" and row["step"] == step]
        if not found:
            what = (
                "it is not a policy image"
                if step is None
                else f"no evaluation was at step {step:,}"
            )
            raise DamagedFileError(
                f"{path} is damaged: {what}; restore it, or remove it and go on without"
            )
        self._image, self._evaluation = image, evaluation_of(found[-1])

    def take(self, evaluation: Evaluation) -> None:
        """An evaluation of this session."""
        self._of_session[evaluation.step] = evaluation

    def fetch(self, session: BoardSession) -> None:
        """Looks at what the board, at rest, has kept."""
        if not self._of_session:
            return
        try:
            image = session.files.download(BEST_PATH)
        except FileNotThereError:  # there was no memory for it
            return
        evaluation = self._of_session.get(step_of_policy(image) or 0)
        if evaluation is None:
            return
        if self._evaluation is None or evaluation.return_mean > self._evaluation.return_mean:
            self._image, self._evaluation = image, evaluation

    @property
    def files(self) -> dict[str, bytes]:
        """For the save."""
        return {BEST_FILE: self._image} if self._image else {}

    @property
    def changes(self) -> dict[str, Any]:
        """For run.json, together with the save."""
        if (evaluation := self._evaluation) is None:
            return {"best": None}
        best = {
            "step": evaluation.step,
            "state_sha256": state_of_policy(self._image),
            "return_mean": evaluation.return_mean,
            "return_std": evaluation.return_std,
        }
        return {"best": best}

"""The ranges of channels as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rltools_host.build.description import Channel


def ranges_of(
    channels: Sequence[Channel], dtype: DTypeLike = np.float32
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The minima and the maxima, each of shape (channels,)."""
    low = np.array([channel.minimum for channel in channels], dtype)
    return low, np.array([channel.maximum for channel in channels], dtype)

"""The other end of rl/environments/external/connection.h, which says what the bytes are."""

from __future__ import annotations

import struct

MAGIC, VERSION = 0x45544C52, 2
GREETING = struct.Struct("=4I16s")  # magic, version, observation_dim, action_dim, task
SPEAKER = struct.Struct("=2I")  # its beginning: who speaks this version
REQUEST = struct.Struct("=4I")  # request, slot, seed, reserved; then the action
ANSWER = struct.Struct("=If2I")  # answer, reward, terminated, truncated; then the observation
RESET, STEP = 1, 2
DONE, LOST, OVER = 0, 1, 2

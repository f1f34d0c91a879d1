"""Writes state_tensors.json: the SHA-256 of every tensor that a whole run ends with.

    .venv/bin/python tests/goldens/state_tensors.py

After a change that is meant to change numbers; that commit says which tensors and why.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENTS = ("pendulum-td3", "pendulum-sac", "pendulum-ppo", "pendulum-xqc")
GOLDENS = Path(__file__).with_suffix(".json")


def tensor_hashes(checkpoint: Path) -> dict[str, str]:
    """The SHA-256 of each tensor's bytes in a .safetensors file, by name."""
    data = checkpoint.read_bytes()
    payload_at = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:payload_at])
    del entries["__metadata__"]
    hashes = {}
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        hashes[name] = hashlib.sha256(data[payload_at + begin : payload_at + end]).hexdigest()
    return hashes


def train(experiment: str, board: str, folder: Path) -> Path:
    """A run with seed 0 and all defaults, in a new folder; returns its checkpoint."""
    command = [*("train", experiment, "--board", board, "--seed", "0"), "--out", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "rltools_host", *command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (checkpoint,) = folder.glob("save-*/checkpoint.safetensors")
    return checkpoint


def main() -> None:
    goldens = {}
    for experiment in EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            goldens[experiment] = tensor_hashes(train(experiment, "host", Path(folder) / "run"))
    GOLDENS.write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Writes scikit-learn's digits to a file, builds digits.cpp and runs it."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.errors import RltError


def write_data(path: Path) -> None:
    """80 % of the 1,797 digits to train on and 20 % to test with, each class in the same share."""
    digits = load_digits()
    parts = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    training_pixels, test_pixels, training_labels, test_labels = parts
    with open(path, "wb") as file:
        for pixels, labels in ((training_pixels, training_labels), (test_pixels, test_labels)):
            file.write(struct.pack("<I", len(labels)))
            file.write(np.ascontiguousarray(pixels, "<f4").tobytes())
            file.write(np.ascontiguousarray(labels, "<u4").tobytes())


def run() -> str:
    """Run the program and return what it prints; the last line is the test accuracy."""
    program = cmake.build_targets(load_board("host"), ["digits"]) / "digits"
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "digits.bin"
        write_data(data)
        return subprocess.run(
            [program, data], check=True, capture_output=True, text=True, timeout=120
        ).stdout


if __name__ == "__main__":
    try:
        print(run(), end="")
    except RltError as error:
        print(f"digits: {error}", file=sys.stderr)
        sys.exit(error.exit_code)

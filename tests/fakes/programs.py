"""Programs that a test runs: compilers, and what they make."""

from __future__ import annotations

import subprocess


def output_of(*command: object, timeout: float = 300.0) -> str:
    """What a program prints, which must succeed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def needed_symbols(nm: str, *objects: object) -> set[str]:
    """What objects use that none of them defines, as a compiler's nm says."""
    symbols = [line.split() for line in output_of(nm, *objects).splitlines()]
    undefined = {words[1] for words in symbols if len(words) == 2 and words[0] == "U"}
    return undefined - {words[2] for words in symbols if len(words) == 3}

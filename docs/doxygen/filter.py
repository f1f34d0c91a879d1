"""Print a header with its plain comments as Doxygen's: text as text, and lines set in as code."""

import re
import sys
from itertools import groupby
from pathlib import Path

# A comment at the top of a header, or right above what it is about; and one behind that.
ABOVE = re.compile(r"\A(?://.*\n)+|(?:^ *//(?!/).*\n)+(?!\s*\n|#(?!define))", re.MULTILINE)
BEHIND = re.compile(r"(?<=[;,]) +//.*(?:\n {20,}//.*)*")


def escaped(text: str) -> str:
    return re.sub(r"[\\@<>&#%]", r"\\\g<0>", text)


def for_doxygen(comment: re.Match[str]) -> str:
    lines = [] if comment.start() else ["\\file"]
    for is_code, group in groupby(re.findall(r"//(.*)", comment[0]), lambda x: x[:3] == "   "):
        if is_code:
            lines += ["\\code{.txt}", *group, "\\endcode"]
        else:
            lines += [escaped(line) for line in group]
    return "".join(f"/// {line}\n" for line in lines)


text = Path(sys.argv[1]).read_text(encoding="utf-8")
text = BEHIND.sub(lambda comment: escaped(comment[0]).replace("//", "///<"), text)
print(ABOVE.sub(for_doxygen, text), end="")

"""Which faults a Python file has: what each operator takes, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.mutants.python_syntax import python_faults


def becomes(source: str, operator: str) -> list[str]:
    found = python_faults(Path("f.py"), source)
    return [fault.becomes for fault in found if fault.operator == operator]


@pytest.mark.parametrize(
    ("stated", "default"),
    [
        *(("int", "0"), ("float", "0.0"), ("str", '""'), ("bytes", 'b""'), ("bool", "False")),
        *(("list[int]", "[]"), ("dict[str, int]", "{}"), ("tuple[int, ...]", "()")),
        *(("set[int]", "set()"), ("Sequence[int]", "()"), ("Path", "None"), ("int | None", "None")),
    ],
)
def test_a_return_becomes_the_default_of_its_type(stated: str, default: str) -> None:
    assert becomes(f"def f() -> {stated}:\n    return x\n", "return") == [default]
    assert becomes(f"def f() -> {stated}:\n    return {default}\n", "return") == []
    assert becomes(f"async def f() -> {stated}:\n    return x\n", "return") == [default]


def test_returns_without_a_type_or_a_value() -> None:
    assert becomes("def f():\n    return x\n", "return") == ["None"]
    assert becomes("def f():\n    return\n", "return") == []
    inner = "def f() -> int:\n    def g() -> str:\n        return x\n    return y\n"
    assert becomes(inner, "return") == ['""', "0"]


@pytest.mark.parametrize(
    ("line", "operator", "expected"),
    [
        ("x = a != b == c", "comparison", ["==", "!="]),
        ("x = a > b >= c", "comparison", [">=", ">"]),
        ("x = a not  in b", "comparison", ["in"]),
        ("x = a // b % c ** d", "arithmetic", ["*", "*", "*"]),
        ("x = a << b | c & d ^ e", "arithmetic", ["&", ">>", "&", "|"]),
        ("x = a @ b", "arithmetic", ["+"]),
        ("x = 'a' * n + f'{b}'", "arithmetic", []),
        ("x = (a)  # + b\nx = (a  # - c\n+ b)", "arithmetic", ["-"]),
        ("x = not a or b", "boolean", ["and", ""]),
        ("x = not (a)", "boolean", ["("]),
        ("x = -1", "arithmetic", []),
        ("x = +a", "arithmetic", []),
        ("x = -1", "constant", ["2", "0"]),
        ("x = 1e300", "constant", []),  # one more is the same
        ("x = 'a'", "constant", []),
        ("x = False", "constant", ["True"]),
        ("if True: y = 1", "condition", []),
        ("if __name__ == 'a': y = 1", "condition", []),
        ("x = a if b else c", "condition", ["(not (b))"]),
        ("f(a, b, c)", "arguments", ["b, a", "c, b"]),
        ("f(a, a)", "arguments", []),
        ("f(a, b.c)", "arguments", []),
        ("np.maximum(a, b, c)", "arguments", ["c, b"]),
        ("f(a,  b)", "arguments", ["b,  a"]),
        ("'text'", "statement", []),
        ("a.b += 1", "statement", ["pass"]),
        ("x: int = f(1)", "constant", ["2", "0"]),
        ("assert a < b", "comparison", []),
        ("while a: continue", "jump", ["break"]),
    ],
)
def test_operators(line: str, operator: str, expected: list[str]) -> None:
    body = line.replace("\n", "\n    ")
    assert becomes(f"def f(z):\n    {body}\n", operator) == expected


def test_a_name_is_dropped_once_it_has_a_value() -> None:
    lines = ("a = b = 1", "c = 2", "d = 3", "d, a = 4, 5", "d, e = 6", "")
    given = "def f(a, /, b, *, c):\n    " + "\n    ".join(lines)
    found = python_faults(Path("f.py"), given)
    assert [fault.line for fault in found if fault.operator == "statement"] == [2, 3, 5]
    assert becomes("x = 1\nx = 2\n", "statement") == []  # of a module nothing is
    (dropped,) = (
        fault.token
        for fault in python_faults(Path("f.py"), "def f(a, b):\n    a = b = 1\n")
        if fault.operator == "statement"
    )
    assert dropped == "a"  # the first of several targets names it
    assert becomes("def f():\n    x = 1\n    x += 1\n", "statement") == ["pass"]


def test_what_is_around_a_function() -> None:
    """Defaults are code; annotations and decorators are not. Names are those of classes, too."""
    source = (
        "class C:\n    @d(7)\n    def f(self, x: T[8] = 3, *, y=5):\n        return 'é' + g(1)\n"
    )
    found = python_faults(Path("f.py"), source)
    assert [(fault.function, fault.token) for fault in found if fault.operator == "constant"] == [
        *(("C.f", "3"), ("C.f", "3"), ("C.f", "5"), ("C.f", "5"), ("C.f", "1"), ("C.f", "1")),
    ]
    assert found[-1].apply(source).endswith("return 'é' + g(0)\n")
    assert python_faults(Path("f.py"), "x = 1\n")[0].function == "<module>"

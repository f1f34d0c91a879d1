"""Which faults a C++ file has: its numbers, its tokens, the bodies of its functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.mutants.cpp_syntax import cpp_faults, neighbours, tokens_of


@pytest.mark.parametrize(
    ("number", "others"),
    [
        ("0", ["1"]),
        ("7u", ["8u", "6u"]),
        ("0x10UL", ["0x11UL", "0xfUL"]),
        ("1'000", ["1001", "999"]),
        ("1.5f", ["2.5f", "0.5f"]),
        (".5", ["1.5", "-0.5"]),
        ("1e3", ["1001.0", "999.0"]),
        ("1e300", []),
        ("0b11", []),
    ],
)
def test_a_number_and_one(number: str, others: list[str]) -> None:
    assert neighbours(number) == others


def test_tokens() -> None:
    source = '#define X 1 \\\n 2\nx >>= \'a\'; // no\n/* no */ y = R"("a")" + 1\'000.f;\n'
    found = [(token.text, token.kind) for token in tokens_of(source)]
    assert found == [
        *(("x", "word"), (">>=", "sign"), ("'a'", "text"), (";", "sign"), ("y", "word")),
        *(("=", "sign"), ('R"("a")"', "text"), ("+", "sign"), ("1'000.f", "number"), (";", "sign")),
    ]
    assert [token.spaced for token in tokens_of("a + b -c")] == [False, True, True, False, False]
    assert [token.apart for token in tokens_of("a +b")] == [False, True, False]


def functions(source: str) -> list[str]:
    return [fault.function for fault in cpp_faults(Path("f.h"), source)]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("int f() { return 0x1; }\nint g() { return a; }", ["f", "f", "f", "g"]),
        ("namespace n { struct S { int f() { return a; } int b = {a < b}; }; }", ["f"]),
        ("template <class T, class U = S<T>> T f(T a) { return a; }", ["f"]),
        ("struct S { S() : a_(b), c_{d} { f(); } public: void g() { f(); } };", ["S", "g"]),
        ("int a[] = {b < c};\nint f() { return a; }", ["f"]),
        ("S S::operator+(S a) { return a; }", ["operator+"]),
        ("enum class E { kA = 1 + 2 };", []),
    ],
)
def test_functions(source: str, names: list[str]) -> None:
    assert functions(source) == names


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("f(a, b);", ["", "b, a"]),
        ("min(a, b, c);", ["", "c, b"]),
        ("f(1, 2);", ["", "2", "0", "3", "1"]),
        ("f(a + b, c);", ["", "-"]),
        ("f(a, a);", [""]),
        ("*a = b;", [""]),
        ("++a;", [""]),
        ("T a = b;", []),
        ("T<U> a(b);", []),
        ("T* a = b;", []),
        ("const auto a = b;", []),
        ("a;", []),
        ("else a(b);", [""]),
        ("if (a) b(c);", ["!(a)", ""]),
        ("if ((a = b)) return;", []),
        ("while (a < b) continue;", ["!(a < b)", "<=", "break"]),
        ("if constexpr (a > 0 && b == c) ++d;", ["1", "||", "!=", ""]),
        ("return false;", ["true"]),
        ("return {a};", []),
        ("static_assert(a < 1); a(b);", [""]),
    ],
)
def test_statements(line: str, becomes: list[str]) -> None:
    found = cpp_faults(Path("f.h"), f"void f() {{\n  {line}\n}}\n")
    assert [fault.becomes for fault in found] == becomes

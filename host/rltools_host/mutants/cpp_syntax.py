"""The faults of a C++ file, from its tokens.

clang-format tells apart what a grammar would: a binary operator has white space on both sides, the
bracket of a template none within, the brace of a function's body some before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rltools_host.mutants.faults import COMMUTATIVE, Fault, exchanges, fault_at

COMPARISONS = exchanges("< to <=, <= to <, > to >=, >= to >, == to !=, != to ==")
ARITHMETIC = exchanges(
    "+ to -, - to +, * to /, / to *, % to *, << to >>, >> to <<, & to |, | to &, ^ to &, "
    "+= to -=, -= to +=, *= to /=, /= to *=, &= to |=, |= to &=, ^= to &=, <<= to >>=, >>= to <<="
)
BOOLEAN = {"&&": "||", "||": "&&"}
TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*)
    |(?P<text>[uUL]?R"(\w*)\(.*?\)\3"|[uUL]?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>\w+)
    |(?P<sign><<=|>>=|->|::|[-+*/%&|^<>=!]=|<<|>>|&&|\|\||\+\+|--|[^\w\s])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"(0[xX][\da-fA-F]+|\d+)([uUlL]*)|(\d*\.?\d*(?:[eE][+-]?\d+)?)([fFL]?)")
SCOPES = {"namespace", "class", "struct", "union", "enum", "extern"}
NOT_NAMES = {"__attribute__", "alignas", "decltype", "noexcept", "requires", "explicit", "if"}
# What begins no expression statement.
KEYWORD = re.compile(
    "return|break|continue|goto|using|typedef|static_assert|case|default|if|else|for|while|do|switch|"
    "delete|throw|try|static|constexpr|const|auto|asm|__asm__|template|typename|struct|volatile|extern"
)
OPENING = {"(": ")", "[": "]", "{": "}"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
SIMPLE_SIGNS = {".", "->", "::", "[", "]", "&", "*", "-"}


@dataclass(frozen=True)
class Token:
    text: str
    kind: str
    start: int
    end: int
    spaced: bool  # white space on both sides
    apart: bool  # white space before


def tokens_of(source: str) -> list[Token]:
    return [
        Token(
            *(match.group(), match.lastgroup or "text", match.start(), match.end()),
            spaced=source[match.start() - 1].isspace()
            and source[match.end() : match.end() + 1].isspace(),
            apart=source[match.start() - 1].isspace(),
        )
        for match in TOKEN.finditer(source)
        if match.lastgroup != "skip"
    ]


def cpp_faults(path: Path, source: str) -> list[Fault]:
    return list(Finder(path, source).faults())


class Finder:
    def __init__(self, path: Path, source: str) -> None:
        self.path, self.source = path, source
        self.tokens = tokens_of(source)
        self.partner = self._partners()

    def _partners(self) -> dict[int, int]:
        """The index of the bracket that closes the one at an index."""
        partner, open_ = {}, []
        for index, token in enumerate(self.tokens):
            if token.kind == "sign" and token.text in OPENING:
                open_.append(index)
            elif token.kind == "sign" and token.text in OPENING.values() and open_:
                partner[open_.pop()] = index
        return partner

    def text(self, begin: int, end: int) -> str:
        """The source of tokens[begin:end]."""
        return self.source[self.tokens[begin].start : self.tokens[end - 1].end]

    def fault(
        self, begin: int, end: int, becomes: str, operator: str, name: str, *token: str
    ) -> Fault:
        span = (self.tokens[begin].start, self.tokens[end - 1].end)
        return fault_at(self.path, self.source, span, becomes, operator, name, *token)

    def faults(self) -> Iterator[Fault]:
        for name, begin, end in self.functions(0, len(self.tokens)):
            yield from self.of_function(name, begin, end)

    # -- functions ---------------------------------------------------------------------------------

    def functions(self, index: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Name, first and last token of each body; tokens[index:end] is what a scope has."""
        head = index
        while index < end:
            token = self.tokens[index]
            closes = self.partner.get(index)
            if token.text == "{" and token.kind == "sign" and closes is not None:
                if not token.apart or self.tokens[index - 1].text in "=(,":
                    index = closes + 1  # an initialiser
                    continue
                name = self.function_name(head, index)
                if name:
                    yield name, index, closes
                else:
                    yield from self.functions(index + 1, closes)
                index = head = closes + 1
            elif token.text in "([" and closes is not None:
                index = closes + 1
            else:
                index += 1
                if token.text in ";:":  # of a statement, or of `public:`
                    head = (
                        head if token.text == ":" and self.tokens[index - 2].text == ")" else index
                    )

    def function_name(self, head: int, end: int) -> str:
        """Of the words before a brace; nothing where they begin a namespace or a class."""
        while head < end and self.tokens[head].text == "template":
            depth = 0
            while head < end:
                head = self.partner.get(head + 1, head + 1)
                text = self.tokens[head].text
                depth += text.count("<") - (0 if text == "->" else text.count(">"))
                if depth == 0:
                    break
            head += 1
        if head < end and self.tokens[head].text in SCOPES:
            return ""
        index = head
        while index < end:
            if self.tokens[index].text == "(":
                before = self.tokens[index - 1].text
                if index > head and before not in NOT_NAMES:
                    return before if re.match(r"\w", before) else f"operator{before}"
                index = self.partner.get(index, end)
            index += 1
        return ""

    # -- operators ---------------------------------------------------------------------------------

    def of_function(self, name: str, begin: int, end: int) -> Iterator[Fault]:
        skipped = chosen = 0
        for index in range(begin, end):
            token = self.tokens[index]
            if token.text == "static_assert":
                skipped = self.partner.get(index + 1, index)
            if token.text == "constexpr" and self.tokens[index - 1].text == "if":
                chosen = self.partner.get(index + 1, index)  # by size: a part of none does nothing
            if index < skipped or token.kind == "text":
                continue
            for table, operator in (
                (COMPARISONS, "comparison"),
                (ARITHMETIC, "arithmetic"),
                (BOOLEAN, "boolean"),
            ):
                is_of_size = index < chosen and token.text in ("<", ">", "<=", ">=")
                if token.spaced and token.text in table and not is_of_size:
                    yield self.fault(index, index + 1, table[token.text], operator, name)
            following = self.tokens[index + 1].text
            if token.text == "!" and token.kind == "sign":
                yield self.fault(index, index + 1, "", "boolean", name)
            elif token.text in ("true", "false"):
                other = "false" if token.text == "true" else "true"
                yield self.fault(index, index + 1, other, "constant", name)
            elif token.kind == "number":
                for becomes in neighbours(token.text):
                    yield self.fault(index, index + 1, becomes, "constant", name)
            elif token.text in ("if", "while") and following == "(":
                closes = self.partner[index + 1]
                condition = self.text(index + 2, closes)
                if ";" not in condition and " = " not in condition:
                    span = (index + 2, closes)
                    yield self.fault(*span, f"!({condition})", "condition", name, token.text)
            elif token.text in ("break", "continue") and following == ";":
                other = "continue" if token.text == "break" else "break"
                yield self.fault(index, index + 1, other, "jump", name)
            elif token.text == "return" and following not in (";", "{"):
                last = self.statement_end(index)
                text = self.text(index + 1, last)
                if text not in ("true", "false", "nullptr", "0") and not text.endswith("::none"):
                    yield self.fault(index + 1, last, "{}", "return", name, "return")
            elif token.text == "(" and not token.apart and self.tokens[index - 1].kind == "word":
                yield from self.swapped(name, index)
            if token.text in (";", "{", "}", ")", "else", ":") and token.kind != "text":
                yield from self.dropped(name, index + 1, end)

    def statement_end(self, index: int) -> int:
        while self.tokens[index].text != ";":
            index = self.partner.get(index, index) + 1
        return index

    def swapped(self, name: str, opening: int) -> Iterator[Fault]:
        """Neighbouring arguments that are names or elements; a compiler tells their types."""
        closes, begin, arguments = self.partner[opening], opening + 1, []
        index = begin
        while index <= closes:
            if index == closes or self.tokens[index].text == ",":
                arguments.append((begin, index))
                begin = index + 1
            index = self.partner.get(index, index) + 1
        for (first, comma), (second, end) in pairwise(arguments):
            one, other = self.tokens[first:comma], self.tokens[second:end]
            if not is_simple(one) or not is_simple(other):
                continue
            texts = self.text(first, comma), self.text(second, end)
            callee = self.tokens[opening - 1].text
            if first == opening + 1 and callee in COMMUTATIVE:
                continue
            if texts[0] != texts[1] and {part.kind for part in (*one, *other)} != {"number"}:
                becomes = f"{texts[1]}, {texts[0]}"
                yield self.fault(first, end, becomes, "arguments", name, callee)

    def dropped(self, name: str, begin: int, end: int) -> Iterator[Fault]:
        """A statement that calls or assigns; what declares something has two words in a row."""
        first = self.tokens[begin]
        is_word = first.kind == "word" and not KEYWORD.fullmatch(first.text)
        if begin >= end or not (is_word or first.text in ("*", "++", "--")):
            return
        index, token = begin, ""
        while index < end and self.tokens[index].text != ";":
            here, before = self.tokens[index], self.tokens[index - 1]
            if not token and index > begin and here.kind == "word" and before.kind == "word":
                return  # Type name
            if not token and here.kind == "word" and here.apart and before.text in (">", "*", "&"):
                return  # Type<T> name
            if here.text in (")", "]", "}") or (here.text == "{" and not token):
                return  # of a loop's head, or of a definition
            if not token and (here.text in ASSIGNMENTS or here.text in ("(", "++", "--")):
                token = self.tokens[index - 1 if index > begin else index + 1].text
            index = self.partner.get(index, index) + 1
        if token and index < end:
            yield self.fault(begin, index, "", "statement", name, token)


def is_simple(argument: list[Token]) -> bool:
    """A name, an element or a number: no two words, and no operator between two operands."""
    return bool(argument) and all(
        (part.kind in ("word", "number") or part.text in SIMPLE_SIGNS)
        and not (index and part.apart)
        for index, part in enumerate(argument)
    )


def neighbours(number: str) -> list[str]:
    """A number and one, and less one, written as it is."""
    plain = number.replace("'", "")
    match = NUMBER.fullmatch(plain)
    if match is None:
        return []
    whole, whole_suffix, decimal, suffix = match.groups()
    if whole is None:
        value = float(decimal)
        return [f"{other!r}{suffix}" for other in (value + 1, value - 1) if other != value]
    is_hexadecimal = whole[:2].lower() == "0x"
    value = int(whole, 16 if is_hexadecimal else 10)
    others = [value + 1, *([value - 1] if value else [])]
    return [f"{hex(other) if is_hexadecimal else other}{whole_suffix}" for other in others]

"""The faults of a Python file, from its syntax tree.

What is no computation is left out: annotations, decorators, f-strings, assertions.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

from rltools_host.mutants.faults import COMMUTATIVE, Fault, exchanges, fault_at

COMPARISONS = exchanges(
    "< to <=, <= to <, > to >=, >= to >, == to !=, != to ==, "
    "is to is not, is not to is, in to not in, not in to in"
)
ARITHMETIC = exchanges(
    "+ to -, - to +, * to /, / to *, // to *, % to *, ** to *, << to >>, >> to <<, & to |, "
    "| to &, ^ to &, @ to +"
)
DEFAULTS = {"int": "0", "float": "0.0", "str": '""', "bytes": 'b""', "bool": "False"}
EMPTY = {"list": "[]", "dict": "{}", "tuple": "()", "set": "set()", "Sequence": "()"}
OPERATOR = re.compile(r"(?:not\s+in|is\s+not|[<>=!]=|[-+*/%@&|^<>]+|\b(?:is|in|and|or)\b)=?")
COMMENT = re.compile(r"#.*")


def python_faults(path: Path, source: str) -> list[Fault]:
    finder = Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.faults


class Finder(ast.NodeVisitor):
    def __init__(self, path: Path, source: str) -> None:
        self.path, self.source = path, source
        self.lines = source.splitlines(keepends=True)
        self.begins = [0]
        for line in self.lines:
            self.begins.append(self.begins[-1] + len(line))
        self.functions: list[str] = []
        self.returns: list[ast.expr | None] = []
        self.assigned: list[set[str]] = []
        self.faults: list[Fault] = []

    def offset(self, line: int, column: int) -> int:
        """The tree counts columns in bytes."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[slice(*self.span(node))]

    def add(self, span: tuple[int, int], becomes: str, operator: str, *token: str) -> None:
        function = ".".join(self.functions) or "<module>"
        self.faults.append(
            fault_at(self.path, self.source, span, becomes, operator, function, *token)
        )

    def exchange(
        self, left: ast.expr, right: ast.expr, table: dict[str, str], operator: str
    ) -> None:
        """The operator between two operands becomes another one."""
        begin, end = self.span(left)[1], self.span(right)[0]
        between = COMMENT.sub(lambda match: " " * len(match.group()), self.source[begin:end])
        if match := OPERATOR.search(between):
            token = " ".join(match.group().split())
            if token in table:
                span = (begin + match.start(), begin + match.end())
                self.add(span, table[token], operator, token)

    # -- what is left out, and where one is --------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions.append(node.name)
        self.returns.append(node.returns)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.assigned.append({argument.arg for argument in arguments})
        for child in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if child is not None:
                self.visit(child)
        for stack in (self.functions, self.returns, self.assigned):
            stack.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.functions.append(node.name)
        for child in node.body:
            self.visit(child)
        self.functions.pop()

    def visit_JoinedStr(self, _node: ast.JoinedStr) -> None:
        pass  # Python before 3.12 does not know where its expressions are

    def visit_Assert(self, _node: ast.Assert) -> None:
        pass

    # -- operators ---------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in pairwise([node.left, *node.comparators]):
            self.exchange(left, right, COMPARISONS, "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        operands = (node.left, node.right)
        is_text = any(
            isinstance(operand, ast.JoinedStr)
            or (isinstance(operand, ast.Constant) and isinstance(operand.value, str | bytes))
            for operand in operands
        )
        if not is_text:  # a path, or text put together
            self.exchange(*operands, ARITHMETIC, "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in pairwise(node.values):
            self.exchange(left, right, {"and": "or", "or": "and"}, "boolean")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
            begin, end = self.span(node)[0], self.span(node.operand)[0]
            becomes = self.source[begin:end].replace("not", "", 1).replace("-", "", 1)
            operator = "boolean" if isinstance(node.op, ast.Not) else "arithmetic"
            token = "not" if isinstance(node.op, ast.Not) else "-"
            self.add((begin, end), becomes.lstrip(), operator, token)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(self.span(node), str(not node.value), "constant")
        elif isinstance(node.value, int | float):
            for other in (node.value + 1, node.value - 1):
                if other != node.value:
                    self.add(self.span(node), repr(other), "constant")

    def negate(self, test: ast.expr, keyword: str) -> None:
        if not isinstance(test, ast.Constant):
            self.add(self.span(test), f"(not ({self.text(test)}))", "condition", keyword)

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        words = self.text(node.test)
        if "TYPE_CHECKING" in words or "__name__" in words:
            return
        self.negate(node.test, "while" if isinstance(node, ast.While) else "if")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.negate(test, "if")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for first, second in pairwise(node.args):
            is_like = type(first) is type(second) and isinstance(first, ast.Name | ast.Attribute)
            is_first = first is node.args[0]
            if is_first and self.text(node.func).rpartition(".")[2] in COMMUTATIVE:
                continue
            if is_like and self.text(first) != self.text(second):
                (begin, middle), (after, end) = self.span(first), self.span(second)
                between = self.source[middle:after]
                becomes = self.text(second) + between + self.text(first)
                self.add((begin, end), becomes, "arguments", self.text(node.func))
        self.generic_visit(node)

    # -- statements --------------------------------------------------------------------------------

    def drop(self, node: ast.stmt, token: str) -> None:
        self.add(self.span(node), "pass", "statement", token)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.drop(node, self.text(node.value.func))
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign | ast.AugAssign) -> None:
        """One that gives a name its first value is not dropped: that leaves no program."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = {
            name.id
            for target in targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        if self.assigned and named <= self.assigned[-1]:
            self.drop(node, self.text(targets[0]))
        if self.assigned:
            self.assigned[-1] |= named
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            if self.assigned and isinstance(node.target, ast.Name):
                self.assigned[-1].add(node.target.id)
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.drop(node, "raise")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        stated = self.returns[-1] if self.returns else None
        kind = ast.unparse(stated) if stated is not None else ""
        becomes = DEFAULTS.get(kind) or EMPTY.get(kind.partition("[")[0]) or "None"
        if becomes != self.text(node.value):
            self.add(self.span(node.value), becomes, "return", "return")
        self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        self.add(self.span(node), "continue", "jump")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.add(self.span(node), "break", "jump")

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_While = visit_IfExp = visit_If  # noqa: N815
    visit_AugAssign = visit_Assign  # noqa: N815

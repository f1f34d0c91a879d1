"""A GPU's program (PTX) as C++ for this machine: what an instruction does is done by a statement.

The threads of a block are fibers, each with a stack of its own for its local memory, which no other
thread may read or write. They run one after another from barrier to barrier, in either order.
Translated is what LLVM writes for this project's programs; anything else is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

RUNTIME = Path(__file__).with_name("ptx_runtime.h")
COMMENT = re.compile(r"//.*$", re.MULTILINE)
NAME = r"[\w$.]+"
SPECIAL = {"%tid.x": "self->tid", "%ctaid.x": "self->block"}
WIDTHS = {"pred": 1, "8": 8, "16": 16, "32": 32, "64": 64}
# What an instruction is counted as (PtxModule.blocks).
KINDS = ("fma", "float", "wide", "other", "shared", "global", "local", "barrier")


class UnknownPtx(Exception):
    """A line that is not translated."""


@dataclass
class PtxModule:
    """The C++ text, and for each basic block how many instructions of each of KINDS it has."""

    text: str
    blocks: list[list[int]] = field(default_factory=list)


def identifier(name: str) -> str:
    """Return a name of PTX as one of C++."""
    return "ptx_" + re.sub(r"\W", lambda match: f"_{ord(match[0]):x}_", name)


def c_type(suffix: str) -> str:
    """Return the type of C++ for .s32, .f64 and so on."""
    if suffix == "pred":
        return "bool"
    if not re.fullmatch(r"[sfub]\d+", suffix):
        raise UnknownPtx(suffix)
    return {"s": "i", "f": "f", "u": "u", "b": "u"}[suffix[0]] + suffix[1:]


def translate(ptx: str) -> PtxModule:
    """Return the module as C++ that includes ptx_runtime.h."""
    lines = [line.strip() for line in COMMENT.sub("", ptx).splitlines()]
    is_debug = re.compile(r"\.(loc|file)\b").match
    statements = _statements([line for line in lines if line and not is_debug(line)])
    return _Translation().module(statements)


def _statements(lines: list[str]) -> list[str]:
    """Return statements, labels and braces, each whole."""
    statements: list[str] = []
    open_text = ""
    for line in lines:
        if line.startswith(".section"):
            break
        open_text = f"{open_text} {line}".strip()
        if open_text.startswith((".version", ".target", ".address_size")):
            open_text = ""
            continue
        is_initializer = open_text.startswith((".visible .global", ".weak .global", ".global"))
        while True:
            if open_text in ("{", "}"):
                statements.append(open_text)
                open_text = ""
            elif open_text.startswith("{") and not is_initializer:
                statements.append("{")
                open_text = open_text[1:].strip()
                continue
            elif re.fullmatch(r"\$?[\w$.]+:", open_text):
                statements.append(open_text)
                open_text = ""
            elif open_text.endswith(";"):
                statements.append(open_text[:-1].strip())
                open_text = ""
            break
        match = re.match(
            r"((?:\.visible |\.weak |\.extern )*\.(?:entry|func)\b.*?)\s*\{$", open_text
        )
        if match:
            statements += [match[1], "{"]
            open_text = ""
    if open_text or not statements:
        raise UnknownPtx(open_text or "no program")
    return statements


class _Translation:
    """The functions and variables of a module."""

    def __init__(self) -> None:
        self.variables: list[str] = []
        self.declarations: list[str] = []
        self.bodies: list[str] = []
        self.blocks: list[list[int]] = []
        self.entries: list[tuple[str, list[int]]] = []
        self.visible: list[str] = []

    def module(self, statements: list[str]) -> PtxModule:
        index = 0
        while index < len(statements):
            statement = statements[index]
            if re.match(r"(\.visible |\.weak |\.extern )*\.(entry|func)\b", statement):
                has_body = index + 1 < len(statements) and statements[index + 1] == "{"
                if has_body:
                    end = self._end(statements, index + 1)
                    self._function(statement, statements[index + 2 : end])
                    index = end
            elif statement.startswith(
                (".visible", ".weak", ".global", ".shared", ".extern", ".const")
            ):
                self._variable(statement)
            else:
                raise UnknownPtx(statement)
            index += 1
        visible = "".join(f'{{"{name}", {identifier(name)}}}, ' for name in self.visible)
        entries = "".join(
            f'  {{"{name}", {identifier(name)}, {{{", ".join(map(str, sizes))}}}}},\n'
            for name, sizes in self.entries
        )
        text = "\n".join(
            [
                f"constexpr int kBlockCount = {max(len(self.blocks), 1)};",
                f'#include "{RUNTIME.name}"',
                *self.variables,
                *self.declarations,
                *self.bodies,
                "static const Entry entries[] = {",
                entries + "  {nullptr, nullptr, {}}};",
                f"#define PTX_GLOBALS {visible}",
                '#include "ptx_runtime_end.h"',
            ]
        )
        return PtxModule(text, self.blocks)

    @staticmethod
    def _end(statements: list[str], first: int) -> int:
        depth = 0
        for index in range(first, len(statements)):
            depth += {"{": 1, "}": -1}.get(statements[index], 0)
            if depth == 0:
                return index
        raise UnknownPtx("a body without an end")

    def _variable(self, statement: str) -> None:
        match = re.fullmatch(
            rf"(?:\.(?:visible|weak|extern) )*\.(global|shared|const) (?:\.align (\d+) )?"
            rf"\.(\w+) ({NAME})(?:\[(\d*)\])?(?: = (.*))?",
            statement,
        )
        if not match:
            raise UnknownPtx(statement)
        space, align, kind, name, count, value = match.groups()
        own = identifier(name)
        if space == "shared" and count == "":
            self.variables.append(f"#define {own} dynamic_shared")
            return
        length = count if count is not None else "1"
        text = ""
        if value:
            items = re.findall(rf"(?:generic\({NAME}\)|{NAME})(?:\+\d+)?|-?\d+", value)
            text = " = {" + ", ".join(self._initial(item) for item in items) + "}"
        section = " SHARED" if space == "shared" else ""
        element = c_type("b" + kind[1:])
        if statement.startswith(".visible"):
            self.visible.append(name)
        self.variables.append(
            f"alignas({align or 16}) static {element} {own}[{length}]{section}{text};"
        )

    def _initial(self, item: str) -> str:
        if re.fullmatch(r"-?\d+", item):
            return item
        match = re.fullmatch(rf"(?:generic\()?({NAME}?)\)?(\+\d+)?", item)
        assert match
        return f"(u64)&{identifier(match[1])}{match[2] or ''}"

    def _function(self, head: str, body: list[str]) -> None:
        match = re.match(
            rf"(?:\.visible |\.weak )*\.(entry|func)\s*(?:\((.*?)\))?\s*({NAME})\s*(?:\((.*)\))?",
            head,
        )
        if not match:
            raise UnknownPtx(head)
        kind, result, name, parameters = match.groups()
        names = re.findall(rf"({NAME})(?:\[(\d+)\])?\s*(?:,|$)", parameters or "")
        kinds = re.findall(r"\.([usbf])(\d+)", parameters or "")
        own = identifier(name)
        self.declarations.append(f"static void {own}(u8** args);")
        function = _Function(self)
        if result:
            function.memory[result.split()[-1].split("[")[0]] = "args[0]"
        for index, (parameter, _) in enumerate(names):
            function.memory[parameter] = f"args[{index + 1}]"
        self.bodies.append(f"static void {own}(u8** args) {{\n{function.translate(body)}\n}}")
        if kind == "entry":
            self.entries.append((name, [int(width) // 8 for _, width in kinds]))


class _Function:
    """The body of a function."""

    def __init__(self, owner: _Translation) -> None:
        self.owner = owner
        self.memory: dict[str, str] = {}
        self.lines: list[str] = []
        self.registers: list[str] = []
        self.counted: list[int] | None = None
        self.targets: dict[str, list[str]] = {}  # of a branch by an index

    def translate(self, body: list[str]) -> str:
        self._begin_block()
        for statement in body:
            self._statement(statement)
        return "\n".join(["  (void)args;", *self.registers, *self.lines])

    def _begin_block(self) -> None:
        self.counted = [0] * len(KINDS)
        self.lines.append(f"  COUNT({len(self.owner.blocks)})")
        self.owner.blocks.append(self.counted)

    def _count(self, kind: str) -> None:
        assert self.counted is not None
        self.counted[KINDS.index(kind)] += 1

    def _statement(self, statement: str) -> None:
        if statement in ("{", "}"):
            self.lines.append("  " + statement)
        elif statement.endswith(":") and " " not in statement:
            if "__BB" in statement:
                self.lines.append(f"  {identifier(statement[:-1])}:;")
                self._begin_block()
        elif statement.startswith(".reg"):
            self._registers(statement)
        elif statement.startswith((".local", ".param")):
            self._array(statement)
        elif ".branchtargets" in statement:
            name, targets = re.split(r":\s*\.branchtargets", statement)
            self.targets[name] = _split(targets)
        elif statement.startswith(("prototype", ".pragma")):
            pass
        else:
            guard = re.match(r"@(!?)(%\w+)\s+(.*)", statement)
            if guard:
                text = self._instruction(guard[3])
                self.lines.append(f"  if ({guard[1]}{self._register(guard[2])}) {{ {text} }}")
                self._begin_block()
            else:
                self.lines.append("  " + self._instruction(statement))

    def _registers(self, statement: str) -> None:
        match = re.fullmatch(r"\.reg \.(pred|b\d+|f\d+)\s+%(\w+)(?:<(\d+)>)?", statement)
        if not match:
            raise UnknownPtx(statement)
        kind, name, count = match.groups()
        type_name = "bool" if kind == "pred" else "u" + kind[1:]
        names = [name] if count is None else [f"{name}{index}" for index in range(int(count))]
        for first in range(0, len(names), 200):
            own = ", ".join(f"r_{each}{{}}" for each in names[first : first + 200])
            self.registers.append(f"  {type_name} {own};")

    def _array(self, statement: str) -> None:
        match = re.fullmatch(
            rf"\.(?:local|param) (?:\.align (\d+) )?\.b(\d+)\s+({NAME})(?:\[(\d+)\])?", statement
        )
        if not match:
            raise UnknownPtx(statement)
        align, width, name, count = match.groups()
        own = identifier(name)
        size = int(count) if count else int(width) // 8
        text = f"  alignas({max(int(align or 8), 8)}) u8 {own}[{size}];"
        if statement.startswith(".local"):
            self.registers.append(text)
        else:
            self.lines.append(text)
        self.memory[name] = own

    def _register(self, name: str) -> str:
        return "r_" + name.removeprefix("%")

    def _operand(self, text: str, kind: str) -> str:
        """Return an operand's bits, as an unsigned number or bool."""
        text = text.strip()
        if text in SPECIAL:
            return SPECIAL[text]
        if text.startswith("%"):
            return self._register(text)
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}", text):
            return f"0x{text[2:]}u"
        if re.fullmatch(r"0d[0-9A-Fa-f]{16}", text):
            return f"0x{text[2:]}ull"
        if re.fullmatch(r"-?(0x[0-9A-Fa-f]+U?|\d+)", text):
            return text if kind == "pred" else f"(u{kind[1:]})({text.lower()}ll)"
        match = re.fullmatch(rf"({NAME})(?:\+(\d+))?", text)
        if match:
            return f"((u64){self._symbol(match[1])} + {match[2] or 0})"
        raise UnknownPtx(text)

    def _symbol(self, name: str) -> str:
        if name in self.memory:
            return self.memory[name]
        return identifier(name)

    def _address(self, text: str) -> str:
        match = re.fullmatch(rf"\[(%?{NAME})(?:\+(-?\d+))?\]", text.strip())
        if not match:
            raise UnknownPtx(text)
        base, offset = match.groups()
        own = self._register(base) if base.startswith("%") else f"(u64){self._symbol(base)}"
        return f"({own} + ({offset or 0}))"

    def _instruction(self, statement: str) -> str:
        operation, rest = ([*statement.split(maxsplit=1), ""])[:2]
        parts = operation.split(".")
        operands = _split(rest)
        if parts[0] in ("ld", "st"):
            return self._transfer(parts, operands)
        if parts[0] == "call":
            self._count("other")
            return self._call(rest)
        if parts[0] == "bra":
            self._count("other")
            return f"goto {identifier(operands[0])};"
        if parts[0] == "brx":
            self._count("other")
            index = self._register(operands[0])
            cases = "".join(
                f" case {number}: goto {identifier(target)};"
                for number, target in enumerate(self.targets[operands[1]])
            )
            return f'switch ({index}) {{{cases} default: fail("a branch beyond its table"); }}'
        if parts[0] in ("ret", "exit"):
            self._count("other")
            return "return;"
        if parts[:2] == ["barrier", "sync"]:
            self._count("barrier")
            return "barrier();"
        if parts[0] == "trap":
            return "trap();"
        return self._arithmetic(parts, operands)

    def _transfer(self, parts: list[str], operands: list[str]) -> str:
        kind = parts[-1]
        width = int(kind[1:])
        space = next(
            (part for part in parts if part in ("global", "shared", "local", "param")), "any"
        )
        if space == "param":
            self._count("other")
        elif space == "any":
            self._count("shared")
        else:
            self._count(space)
        is_load = parts[0] == "ld"
        memory, values = (operands[1], operands[0]) if is_load else operands
        names = _split(values.strip("{}")) if values.startswith("{") else [values]
        check = "" if space == "param" else f"check({self._address(memory)});"
        lines = [check]
        if not is_load and len(names) * width > 64:
            lines.append(f"check_alignment({self._address(memory)}, {len(names) * width // 8});")
        for index, name in enumerate(names):
            address = f"{self._address(memory)} + {index * width // 8}"
            if is_load:
                lines.append(f"{self._register(name)} = load<u{width}>({address});")
            else:
                value = self._operand(name, f"b{width}")
                lines.append(f"store<u{width}>({address}, (u{width})({value}));")
        return " ".join(lines)

    def _call(self, rest: str) -> str:
        match = re.fullmatch(
            rf"(?:\((\w+)\),\s*)?(%?{NAME})(?:,\s*\((.*?)\))?(?:,\s*(prototype_\d+))?", rest.strip()
        )
        if not match:
            raise UnknownPtx(rest)
        result, callee, arguments, _ = match.groups()
        own = [identifier(name.strip()) for name in (arguments or "").split(",") if name.strip()]
        array = ", ".join([identifier(result) if result else "nullptr", *own])
        target = (
            f"((Function)(u64){self._register(callee)})"
            if callee.startswith("%")
            else identifier(callee)
        )
        return f"{{ u8* call_args[] = {{{array}}}; {target}(call_args); }}"

    def _arithmetic(self, parts: list[str], operands: list[str]) -> str:
        name, kind = parts[0], parts[-1]
        if len(parts) < 2:
            raise UnknownPtx(".".join(parts))
        own = self._register(operands[0])
        if name == "setp":
            return self._comparison(parts, operands)
        if name == "cvt":
            return self._conversion(parts, operands)
        if name == "isspacep":
            self._count("other")
            return f"{own} = is_local({self._operand(operands[1], 'b64')});"
        if name == "cvta":
            self._count("wide")
            return f"{own} = {self._operand(operands[1], 'b64')};"
        if name == "mov" and "{" in operands[0] + operands[1]:
            return self._pack(operands)
        bits = kind if kind == "pred" else "b" + kind[1:]
        values = [self._operand(operand, bits) for operand in operands[1:]]
        if name in ("shl", "shr"):
            values[1] = self._operand(operands[2], "b32")
        if name == "selp":
            values[2] = self._operand(operands[3], "pred")
        is_float = kind.startswith("f")
        counted = "fma" if name == "fma" else "float" if is_float else "other"
        self._count("wide" if kind.endswith("64") else counted)
        full = "_".join(part for part in (name, *parts[1:-1]) if part != "rn")
        if name in ("and", "or", "xor", "not") and kind != "pred":
            full += "_bits"
        if kind == "pred":
            return f"{own} = {full}_pred({', '.join(values)});"
        call = f"{full}<{c_type(kind)}>({', '.join(values)})"
        return f"{own} = {call};"

    def _pack(self, operands: list[str]) -> str:
        """Return two registers of 32 bits as one of 64, or the other way around."""
        self._count("other")
        to, source = operands
        if source.startswith("{"):
            low, high = (self._operand(name, "b32") for name in _split(source.strip("{}")))
            return f"{self._register(to)} = (u64){high} << 32 | {low};"
        value = self._operand(source, "b64")
        low, high = _split(to.strip("{}"))
        return " ".join(
            f"{self._register(name)} = (u32)({value} >> {shift});"
            for name, shift in ((low, 0), (high, 32))
            if name != "_"
        )

    def _comparison(self, parts: list[str], operands: list[str]) -> str:
        _, relation, kind = parts
        self._count("wide" if kind.endswith("64") else "other")
        a, b = (self._operand(operand, "b" + kind[1:]) for operand in operands[1:])
        return f"{self._register(operands[0])} = compare_{relation}<{c_type(kind)}>({a}, {b});"

    def _conversion(self, parts: list[str], operands: list[str]) -> str:
        *modes, to, source = parts[1:]
        self._count("other")
        mode = "_".join(mode for mode in modes if mode != "rn")
        value = self._operand(operands[1], "b" + source[1:])
        name = f"convert_{mode}" if mode else "convert"
        return f"{self._register(operands[0])} = {name}<{c_type(to)}, {c_type(source)}>({value});"


def _split(text: str) -> list[str]:
    """Return operands that commas part, those within braces together."""
    found = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s{}\[\]]+", text)
    return [item.strip() for item in found]

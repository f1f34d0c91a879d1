"""The rooms of the host package import in one direction (docs/design.md, "The host package")."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rltools_host.tree import TREE

PACKAGE = TREE.root / "host" / "rltools_host"
PUBLIC_PACKAGE = TREE.root / "host" / "rlt"  # imports the rooms, and no room imports it
# Each room may import those before it, and itself. The first are modules of their own.
ORDER = (
    "errors",
    "tree",
    "files",
    "documents",
    "lines",
    "interruption",
    "toolchain",
    "boards",
    "build",
    "fitting",
    "link",
    "clients",
    "runs",
    "environments",
    "gymnasium_tasks",
    "policies",
    "checks",
    "training",
    "foreign",
    "ui",
    "hil",
    "flight",
    "vehicles",
    "web",
    "report",
    "documentation",
    "commands",
    "cli",
    "__main__",
)

MOST_PARAMETERS = 7


def room_of(module: Path, package: Path) -> str:
    return module.relative_to(package).parts[0].removesuffix(".py")


def imported_rooms(source: str) -> list[tuple[int, str]]:
    """Line and room of each import of the package, also of those inside functions; "rlt" for one of
    the public package."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "rltools_host":
                names = [f"rltools_host.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "rltools_host" and len(parts) > 1:
                found.append((node.lineno, parts[1]))
            elif parts[0] == PUBLIC_PACKAGE.name:
                found.append((node.lineno, parts[0]))
    return found


def violations(package: Path) -> list[str]:
    """Imports that point upwards, and rooms that have no place in the order."""
    found = []
    for module in sorted(package.rglob("*.py")):
        room = room_of(module, package)
        if room == "__init__":
            continue
        if room not in ORDER:
            found.append(f"{room}: no place in the order of rooms")
            continue
        for line, imported in imported_rooms(module.read_text(encoding="utf-8")):
            if imported not in ORDER or ORDER.index(imported) > ORDER.index(room):
                found.append(f"{module.relative_to(package)}:{line}: {room} imports {imported}")
    return found


def modules_of_a_circle(package: Path, package_name: str = "rltools_host") -> list[str]:
    """Modules that import each other, directly or through others."""
    graph: dict[str, set[str]] = {}
    for module in package.rglob("*.py"):
        inner = module.relative_to(package).with_suffix("").parts
        name = ".".join((package_name, *(part for part in inner if part != "__init__")))
        tree = ast.parse(module.read_text(encoding="utf-8"))
        graph[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                graph[name].add(node.module)
                graph[name] |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names}
    left = {name: imports & set(graph) - {name} for name, imports in graph.items()}
    while free := [name for name, imports in left.items() if not imports & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


def test_imports_point_one_way() -> None:
    assert violations(PACKAGE) == []


def positional_parameters(source: str) -> list[tuple[str, int]]:
    """Name of each function, and how many parameters can be given by their place."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [entry.arg for entry in (*node.args.posonlyargs, *node.args.args)]
            found.append((node.name, len(names) - (names[:1] in (["self"], ["cls"]))))
    return found


def test_a_request_is_an_object() -> None:
    """Not a row of arguments. A command's function is its table of options, and given by name."""
    too_many = [
        f"{module.relative_to(PACKAGE.parent)}: {name} has {count}"
        for module in sorted(PACKAGE.parent.rglob("*.py"))
        for name, count in positional_parameters(module.read_text(encoding="utf-8"))
        if count > MOST_PARAMETERS
        and not (module.parent.name == "commands" and name.endswith("command"))
    ]
    assert too_many == []


def test_parameters_are_counted() -> None:
    source = "def f(a, b, /, c, *, d=1): pass\nclass A:\n    def g(self, a): pass\n"
    assert positional_parameters(source) == [("f", 3), ("g", 1)]


def test_no_module_imports_itself_through_others() -> None:
    assert modules_of_a_circle(PACKAGE) == []
    assert modules_of_a_circle(PUBLIC_PACKAGE, PUBLIC_PACKAGE.name) == []


def test_the_public_package_is_thin() -> None:
    """It has no rooms: what it does is in the host package, which other programs may call too."""
    assert [
        path for path in PUBLIC_PACKAGE.iterdir() if path.is_dir() and list(path.glob("*.py"))
    ] == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("link/a.py", "from rltools_host.clients import session", "link imports clients"),
        ("boards/a.py", "def f():\n    from rltools_host import build", "boards imports build"),
        ("errors.py", "import rltools_host.tree", "errors imports tree"),
        ("web/a.py", "from rlt.api import Policy", "web imports rlt"),
        ("attic/a.py", "", "attic: no place"),
    ],
)
def test_violation_is_noticed(tmp_path: Path, path: str, text: str, expected: str) -> None:
    module = tmp_path / path
    module.parent.mkdir(exist_ok=True)
    module.write_text(text)
    found = violations(tmp_path)
    assert len(found) == 1
    assert expected in found[0]


def test_circle_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "a.py").write_text("from rltools_host.link import b\n")
    (tmp_path / "link" / "b.py").write_text("from rltools_host.link.a import x\n")
    assert modules_of_a_circle(tmp_path) == ["rltools_host.link.a", "rltools_host.link.b"]

"""The tree: what is installed, and only read. What is written goes to the project (project.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
INSTALLED = PACKAGE / "tree"  # where a wheel puts it (pyproject.toml)


@dataclass
class Tree:
    """Where its parts lie; every path is absolute and free of symbolic links."""

    root: Path

    @property
    def is_installed(self) -> bool:
        """From a wheel, into an environment that is the user's; it is a checkout otherwise."""
        return self.root == INSTALLED

    def file(self, name: str) -> Path:
        """Of a name in a checkout, where the package itself lies in host/."""
        own = f"host/{PACKAGE.name}/"
        if self.is_installed and name.startswith(own):
            return PACKAGE / name.removeprefix(own)
        return self.root / name

    @property
    def include(self) -> Path:
        return self.root / "lib" / "rltools" / "include"

    @property
    def boards(self) -> Path:
        return self.root / "boards"

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    @property
    def environments(self) -> Path:
        return self.include / "rltools" / "rl" / "environments"

    @property
    def toolchains(self) -> Path:
        return self.root / "toolchains"

    @property
    def build_file(self) -> Path:
        """Flags, programs and what they are for."""
        return self.root / "firmware" / "build.json"

    @property
    def protocol_generator(self) -> Path:
        return self.root / "lib" / "protocol" / "generate.py"

    @property
    def requirements(self) -> Path:
        return self.root / "host" / "requirements"

    @property
    def virtual_environment(self) -> Path:
        return self.root / ".venv"


TREE = Tree(INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1])

"""The Python files of the project, parsed once for all architecture tests."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
APPS = ("audit", "billing", "gatewaysite", "proxy", "tenants", "webhooks")


@dataclass(frozen=True)
class Source:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def is_test(self) -> bool:
        return self.name.startswith("tests/")

    @property
    def is_migration(self) -> bool:
        return "migrations" in self.path.parts and self.path.name != "__init__.py"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)


@cache
def all_sources() -> tuple[Source, ...]:
    folders = [ROOT / folder for folder in (*APPS, "tests", "deploy")]
    found = [path for folder in folders for path in folder.rglob("*.py")]
    return tuple(Source(path) for path in sorted([*found, *ROOT.glob("*.py")]))


def product_sources() -> tuple[Source, ...]:
    return tuple(source for source in all_sources() if not source.is_test)

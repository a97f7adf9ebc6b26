"""Files and functions stay small, and are named for what they are about."""

import ast
import re

from tests.architecture.sources import APPS, ROOT, all_sources, product_sources

LINES_PER_FILE = 400
LINES_PER_FUNCTION = 50
LINES_PER_TEST_FUNCTION = 80
NAMES_THAT_SAY_NOTHING = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "handler",
    "handlers",
    "manager",
    "managers",
}

# path -> why a broad except is right there. Everywhere else one ends in a bare `raise`.
BROAD_EXCEPT: dict[str, str] = {}


def test_no_file_is_longer_than_the_limit():
    lengths = {source.name: source.text.count("\n") for source in all_sources() if not source.is_migration}
    assert {name: lines for name, lines in lengths.items() if lines > LINES_PER_FILE} == {}


def test_no_function_is_longer_than_the_limit():
    too_long = {}
    for source in all_sources():
        limit = LINES_PER_TEST_FUNCTION if source.is_test else LINES_PER_FUNCTION
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.end_lineno is None:
                continue
            lines = node.end_lineno - node.lineno + 1
            if lines > limit:
                too_long[f"{source.name}:{node.lineno} {node.name}"] = lines
    assert too_long == {}


def test_modules_and_folders_are_named_for_their_subject():
    bad = [
        source.name
        for source in all_sources()
        if NAMES_THAT_SAY_NOTHING & {part.removesuffix(".py") for part in source.path.relative_to(ROOT).parts}
    ]
    assert bad == []


def test_every_app_has_an_empty_init():
    assert {app: (ROOT / app / "__init__.py").read_text(encoding="utf-8") for app in APPS} == dict.fromkeys(APPS, "")


def test_migrations_are_named_for_the_change():
    names = [source.path.stem for source in product_sources() if source.is_migration]
    assert names
    assert [name for name in names if not re.fullmatch(r"\d{4}_[a-z][a-z0-9_]+", name) or "_auto_" in name] == []


def test_no_handler_catches_everything():
    found = [
        f"{source.name}:{node.lineno}"
        for source in product_sources()
        if source.name not in BROAD_EXCEPT
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _ends_in_raise(node)
    ]
    assert found == []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"} for node in ast.walk(handler.type)
    )


def _ends_in_raise(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None

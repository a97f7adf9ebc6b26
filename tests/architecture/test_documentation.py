"""What can be set, raised or installed is documented."""

import ast
import json
import re
import tomllib

from tests.architecture.sources import ROOT, Source, product_sources

SETTING = re.compile(r"[A-Z][A-Z0-9_]{2,}")
ERROR_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")
REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def _documented(page: str) -> set[str]:
    """Every word in backticks on a page of docs/."""
    return set(re.findall(r"`([^`\s]+)`", (ROOT / "docs" / page).read_text(encoding="utf-8")))


def test_every_setting_is_documented():
    names = _settings_read_by(Source(ROOT / "gatewaysite" / "env.py"))
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY"} <= names, "this test no longer finds the settings"
    assert names - _documented("settings.md") == set()


def test_every_error_code_is_documented():
    codes = _error_codes_in_the_tree()
    assert {"invalid_api_key", "budget_exceeded", "upstream_timeout"} <= codes, "this test no longer finds the codes"
    assert codes - _documented("errors.md") == set()


def test_every_error_code_raised_is_in_the_tree_of_errors():
    raised = set().union(
        *(_error_codes_set_in(source) for source in product_sources() if source.name.startswith("proxy/"))
    )
    assert {"provider_rate_limited", "invalid_request"} <= raised, "this test no longer finds the codes"
    assert raised - _error_codes_in_the_tree() == set()


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    names = {match.group() for text in requirements if (match := REQUIREMENT.match(text))}
    assert names - _documented("dependencies.md") == set()
    assert all("," in text or ">=" in text for text in requirements), "every dependency has a lower bound"


def test_every_client_is_documented_with_the_version_tested():
    sdks = ROOT / "tests" / "sdks"
    packages = json.loads((sdks / "node" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    pinned = [line.split("==") for line in (sdks / "requirements.in").read_text(encoding="utf-8").split()]
    versions = [*packages.items(), *pinned]
    rows = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").splitlines()
    assert [
        name
        for name, version in versions
        if name != "zod" and not any(f"`{name}`" in row and ".".join(version.split(".")[:2]) in row for row in rows)
    ] == []


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:audit|billing|docs|gatewaysite|proxy|tenants|tests|webhooks)/[\w./-]*)`", text))
    assert paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def _settings_read_by(source: Source) -> set[str]:
    """Upper-case names given to a call (env.str("NAME")) or used as a key of a scheme ({"NAME": ...})."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        candidates: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            candidates = [*node.args[:1]]
        elif isinstance(node, ast.Dict):
            candidates = [*node.keys]
        names |= {
            item.value
            for item in candidates
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and SETTING.fullmatch(item.value)
        }
    return names


def _error_codes_in_the_tree() -> set[str]:
    """proxy/errors.py begins with a drawing of all errors, which is what its readers and callers go by."""
    docstring = ast.get_docstring(Source(ROOT / "proxy" / "errors.py").tree) or ""
    tree = docstring.split("\n\n")[1]
    return set(ERROR_CODE.findall(tree))


def _error_codes_set_in(source: Source) -> set[str]:
    """Values of the keyword `code` in calls, and of `default_code` in classes."""
    values: list[ast.expr] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg == "code":
            values += node.value.values if isinstance(node.value, ast.BoolOp) else [node.value]
        elif isinstance(node, ast.Assign):
            values += _assigned_to("default_code", node)
    texts = {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}
    return {text for text in texts if ERROR_CODE.fullmatch(text)}


def _assigned_to(name: str, node: ast.Assign) -> list[ast.expr]:
    """The value of `name` in `name = value` or in `a, name = x, value`."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=True)
    else:
        pairs = zip([target], [value], strict=True)
    return [item for place, item in pairs if isinstance(place, ast.Name) and place.id == name]

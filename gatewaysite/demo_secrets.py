"""The secrets of a demo installation: made once, kept in the state folder for this user alone."""

from __future__ import annotations

import base64
import json
import os
import secrets
import tempfile
from pathlib import Path

FILE_NAME = "demo-secrets.json"
NAMES = ("SECRET_KEY", "KEY_PEPPER", "FIELD_ENCRYPTION_KEYS")


def demo_secrets(state_dir: Path) -> dict[str, str]:
    """The secrets of the demo in `state_dir`, made now when there are none. Safe when two processes begin at once."""
    path = state_dir / FILE_NAME
    if not path.exists():
        _publish(path, _new_secrets())
    return read_demo_secrets(path)


def read_demo_secrets(path: Path) -> dict[str, str]:
    return {str(name): str(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def remember_demo_secret(state_dir: Path, name: str, value: str) -> str:
    """Keep `value` under `name` unless one is kept already; gives the one that is kept."""
    path = state_dir / FILE_NAME
    kept = demo_secrets(state_dir)
    if name not in kept:
        kept[name] = value
        temporary = _written(path, kept)
        os.replace(temporary, path)
    return kept[name]


def _new_secrets() -> dict[str, str]:
    return {
        "SECRET_KEY": secrets.token_urlsafe(64),
        "KEY_PEPPER": secrets.token_urlsafe(48),
        "FIELD_ENCRYPTION_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    }


def _publish(path: Path, values: dict[str, str]) -> None:
    temporary = _written(path, values)
    try:
        os.link(temporary, path)  # fails when another process was first: then its secrets count
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _written(path: Path, values: dict[str, str]) -> Path:
    """A finished file beside `path`, readable by its owner only (mkstemp makes it 0600)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)

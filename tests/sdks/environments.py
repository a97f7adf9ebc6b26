"""Where the clients are installed: environments beside .venv, with exactly the versions pinned here, kept between runs.

The package indexes are those that uv and npm of this machine are set up for. A machine that cannot reach them skips
these tests; an installation that fails although they answer is a failure.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
NODE_PACKAGES = (HERE / "node" / "package.json", HERE / "node" / "package-lock.json")

CACHE = HERE.parent.parent / ".ci" / "cache" / "sdks"
INSTALL_SECONDS = 400
PROBE_SECONDS = 60
#: The oldest that all pinned packages run on.
NODE_MAJOR = 18

UV = [sys.executable, "-m", "uv"]
# The certificates are the system's, as in the Makefile: an index may be behind a proxy or be a mirror.
ENVIRONMENT = {"UV_SYSTEM_CERTS": "true", **os.environ}

# How uv (the causes it lists) and npm (the code of its error) say that nobody answered.
_NO_CONNECTION = re.compile(
    r"client error \(Connect\)|dns error|operation timed out|connection reset"
    r"|npm (?:error|ERR!) code (?:EAI_AGAIN|ENOTFOUND|ECONN\w+|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)",
    re.IGNORECASE,
)


def python_with_clients() -> Path:
    """The interpreter of the environment of requirements.txt, which is made when it is missing or of other versions."""
    folder = CACHE / "python"
    interpreter = folder / "bin" / "python"
    with _built(folder, sys.version, REQUIREMENTS) as missing:
        if missing:
            steps = (
                [*UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
                [*UV, "pip", "install", "--quiet", "--python", str(interpreter), "-r", str(REQUIREMENTS)],
            )
            _install(steps, folder, [*UV, "pip", "compile", "--quiet", "--no-cache", "--no-deps", "-"], "openai")
    return interpreter


def node_with_clients() -> Path:
    """The folder of package-lock.json's packages. The client scripts lie beside them: Node looks for packages there."""
    _need_node()
    folder = CACHE / "node"
    with _built(folder, _node_version(), *NODE_PACKAGES) as missing:
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for path in NODE_PACKAGES:
                shutil.copy(path, folder)
            with tempfile.TemporaryDirectory() as empty:
                probe = ["npm", "view", "openai", "version", "--fetch-retries=0", f"--cache={empty}"]
                _install((["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],), folder, probe)
        for script in (HERE / "node").glob("*.mjs"):
            shutil.copy(script, folder)
    return folder


def _need_node() -> None:
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed")
    version = _node_version()
    if int(version.removeprefix("v").split(".")[0]) < NODE_MAJOR:
        pytest.skip(f"Node {NODE_MAJOR} or newer is not installed (found {version})")


def _node_version() -> str:
    return _run(["node", "--version"], PROBE_SECONDS).stdout.strip()


@contextmanager
def _built(folder: Path, version: str, *pinned: Path) -> Iterator[bool]:
    """Whether `folder` has to be built; after the block it counts as built. One process at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"\0".join([version.encode(), *(path.read_bytes() for path in pinned)])).hexdigest()
    mark = folder / ".built"
    with open(CACHE / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = not mark.exists() or mark.read_text() != digest
        yield missing
        mark.write_text(digest)


def _install(steps: tuple[list[str], ...], folder: Path, probe: list[str], asked: str = "") -> None:
    """Run the steps. When one fails, `probe` tells a machine without an index (skip) from a broken installation."""
    for step in steps:
        done = _run(step, INSTALL_SECONDS, cwd=folder if folder.is_dir() else None)
        if done.returncode == 0:
            continue
        asking = _run(probe, PROBE_SECONDS, asked=asked)
        if asking.returncode != 0 and _NO_CONNECTION.search(asking.stderr) and "certificate" not in asking.stderr:
            pytest.skip("the package index cannot be reached, and the clients are not installed yet")
        pytest.fail(f"{' '.join(step)} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}", pytrace=False)


def _run(
    command: list[str], seconds: float, *, cwd: Path | None = None, asked: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, input=asked, capture_output=True, text=True, timeout=seconds, check=False
    )

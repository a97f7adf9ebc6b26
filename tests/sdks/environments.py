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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
NODE_PACKAGES = (HERE / "node" / "package.json", HERE / "node" / "package-lock.json")

CACHE = HERE.parent.parent / ".ci" / "cache" / "sdks"
INSTALL_SECONDS = 400
PROBE_SECONDS = 60
UNREACHABLE = "the package index cannot be reached, and the clients are not installed yet"
#: The oldest that all pinned packages run on.
NODE_MAJOR = 18

UV = [sys.executable, "-m", "uv"]
# The certificates are the system's, as in the Makefile: an index may be behind a proxy or be a mirror.
ENVIRONMENT = {"UV_SYSTEM_CERTS": "true", "UV_HTTP_RETRIES": "2", **os.environ}

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
            _need_index([*UV, "pip", "compile", "--quiet", "--no-cache", "--no-deps", "-"], "openai")
            _install(*UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
            _install(*UV, "pip", "install", "--quiet", "--python", str(interpreter), "-r", str(REQUIREMENTS))
    return interpreter


def node_with_clients() -> Path:
    """The folder of package-lock.json's packages. The client scripts lie beside them: Node looks for packages there."""
    _need_node()
    folder = CACHE / "node"
    with _built(folder, _node_version(), *NODE_PACKAGES) as missing:
        if missing:
            with tempfile.TemporaryDirectory() as empty:
                once_more = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000")
                _need_index(["npm", "view", "openai", "version", *once_more, f"--cache={empty}"])
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for path in NODE_PACKAGES:
                shutil.copy(path, folder)
            _install("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
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


def _need_index(probe: list[str], asked: str = "") -> None:
    """Skip when nobody answers the probe. Whatever else is wrong, the installation will tell."""
    try:
        done = _run(probe, PROBE_SECONDS, asked=asked)
    except subprocess.TimeoutExpired:
        pytest.skip(UNREACHABLE)
    if done.returncode != 0 and _NO_CONNECTION.search(done.stderr) and "certificate" not in done.stderr:
        pytest.skip(UNREACHABLE)


def _install(*command: str, cwd: Path | None = None) -> None:
    done = _run(command, INSTALL_SECONDS, cwd=cwd)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}", pytrace=False)


def _run(
    command: Sequence[str], seconds: float, *, cwd: Path | None = None, asked: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, input=asked, capture_output=True, text=True, timeout=seconds, check=False
    )

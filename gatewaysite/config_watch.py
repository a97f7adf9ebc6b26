"""Keeps a running server on its configuration file: applied at start, and again within two seconds of a change."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from gatewaysite.config_apply import Outcome, apply_config
from gatewaysite.config_file import ConfigFileError, digest_of, read_config_file
from tenants.models import ConfigVersion

logger = logging.getLogger(__name__)

ACTOR = "config-file"
#: How often the file is looked at (seconds).
LOOK_SECONDS = 0.5

Signature = tuple[int, int, int]


def watch_config_file(path: Path, stop: threading.Event) -> None:
    """Apply `path` now and after each change, until `stop` is set. Runs in a thread of its own.

    Every worker watches; the lock on the version lets one apply, and the others find it done. A file that cannot be
    applied is logged with the places of its errors, and the last good one stays in force.
    """
    seen: Signature | None = None
    starting = True
    try:
        while not stop.is_set():
            signature = _signature(path)
            if signature is not None and signature != seen and _apply(path, unless_applied=not starting):
                seen, starting = signature, False
            stop.wait(LOOK_SECONDS)
    finally:
        connection.close()


def apply_now(path: Path, *, unless_applied: bool = False) -> Outcome | None:
    """Apply `path`, logging what is wrong with it; None when it cannot be applied."""
    try:
        if unless_applied and _is_applied(path):
            return Outcome(skipped=True)
        outcome = apply_config(read_config_file(path), actor=ACTOR, unless_applied=unless_applied)
    except ConfigFileError as error:
        for fault in error.faults[:20]:
            logger.error("configuration file not applied, the last good one stays", extra={"path": fault})
        return None
    for note in outcome.notes:
        logger.warning("configuration file: %s", note)
    if outcome.changes:
        logger.info("configuration file applied: %d changes, version %s", len(outcome.changes), outcome.version)
    return outcome


def _apply(path: Path, *, unless_applied: bool) -> bool:
    """Whether the file as it is now is dealt with; a database that is away means: try again."""
    try:
        close_old_connections()
        apply_now(path, unless_applied=unless_applied)
    except DatabaseError as error:
        logger.warning("configuration file not applied yet: %s", type(error).__name__)
        return False
    return True


def _is_applied(path: Path) -> bool:
    """Whether another worker has applied this very file: it need not even be parsed."""
    try:
        digest = digest_of(path.read_bytes())
    except OSError:
        return False
    return ConfigVersion.objects.filter(id=1, file_digest=digest).exists()


def _signature(path: Path) -> Signature | None:
    """What tells one version of the file from the next without reading it; None while it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

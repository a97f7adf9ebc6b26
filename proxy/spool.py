"""Events and settlements that could not reach the store: kept on disk, fsynced, and replayed when it is back.

One file per process, JSON lines. The process holds a lock on its file, so whoever finds a file unlocked knows that its
process is dead and replays it. Replaying is idempotent (settle.lua, and the drain drops events it knows), so a file is
deleted only after all of it was taken, and a crash in between repeats it.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from proxy.config import Config
from proxy.errors import StoreUnavailable
from proxy.redis_scripts import SETTLE
from proxy.store import Store, StoreError

logger = logging.getLogger(__name__)

#: Lines handed to the store at once.
BATCH = 200
#: How often the folder is looked through for files of dead processes (seconds), and own lines are tried.
SCAN_SECONDS, RETRY_SECONDS = 30.0, 1.0


class Line(msgspec.Struct, omit_defaults=True):
    """A settlement (`keys` and `args` of settle.lua), or without `args` an event for the stream `keys[0]`."""

    keys: list[str]
    args: list[str] = []
    event: str = ""


_decoder = msgspec.json.Decoder(Line)


class Spool:
    """The spool of this process in `folder`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._file: BinaryIO | None = None
        self._batch: list[bytes] = []
        self._written: asyncio.Future[None] | None = None  # of the batch that gathers
        self._writer: asyncio.Task[None] | None = None

    @property
    def has_lines(self) -> bool:
        """Whether this process has lines that were not replayed yet."""
        return self._file is not None

    def close(self) -> None:
        """Let another process (or a later start) have the lines."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    async def append(self, line: Line) -> None:
        """Returns when the line is on disk. Lines of the same moment share one fsync. Raises OSError."""
        self._batch.append(msgspec.json.encode(line) + b"\n")
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        written = self._written
        if self._writer is None:
            self._writer = asyncio.ensure_future(self._write())
        await asyncio.shield(written)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._written is not None:
                batch, written = b"".join(self._batch), self._written
                self._batch, self._written = [], None
                try:
                    await loop.run_in_executor(None, self._write_now, batch)
                except OSError as error:
                    written.set_exception(error)
                else:
                    written.set_result(None)
        finally:
            self._writer = None

    def _write_now(self, batch: bytes) -> None:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = (self.folder / f"{os.getpid()}-{time.time_ns()}.jsonl").open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            _sync_folder(self.folder)
        self._file.write(batch)
        self._file.flush()
        os.fsync(self._file.fileno())

    async def replay(self, store: Store) -> int:
        """Hand everything to the store: this process's lines and those of dead ones. Gives the number of lines.

        Raises StoreUnavailable when the store goes away meanwhile; what was not taken stays.
        """
        loop = asyncio.get_running_loop()
        while self._writer is not None:
            await asyncio.wait([self._writer])
        own, self._file = self._file, None
        files = [own] if own is not None else []
        try:
            files += await loop.run_in_executor(None, self._take_abandoned)
            count = 0
            for file in files:
                count += await _replay_file(store, Path(file.name))
                await loop.run_in_executor(None, os.unlink, file.name)
        finally:
            for file in files:
                file.close()  # what is left is found again as the file of a dead process
        return count

    def _take_abandoned(self) -> list[BinaryIO]:
        """Files that nobody has locked, locked by us."""
        taken: list[BinaryIO] = []
        for path in sorted(self.folder.glob("*.jsonl")) if self.folder.is_dir() else []:
            try:
                file = path.open("ab")
            except OSError:
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            if path.exists():
                taken.append(file)
            else:
                file.close()  # its last owner replayed and deleted it just now
        return taken


async def _replay_file(store: Store, path: Path) -> int:
    loop = asyncio.get_running_loop()
    count = 0
    with path.open("rb") as file:
        while lines := await loop.run_in_executor(None, lambda: list(islice(file, BATCH))):
            calls = [_take(store, line) for line in _read(lines)]
            failed = [error for error in await asyncio.gather(*calls, return_exceptions=True) if error is not None]
            if failed:
                raise failed[0]
            count += len(calls)
    return count


def _read(lines: list[bytes]) -> Iterator[Line]:
    for text in lines:
        try:
            yield _decoder.decode(text)
        except msgspec.DecodeError:
            logger.warning("a torn line in the spool was left out", extra={"length": len(text)})


async def _take(store: Store, line: Line) -> None:
    try:
        if line.args:
            await store.run(SETTLE, line.keys, line.args)
        else:
            await store.command("XADD", line.keys[0], "*", "e", line.event)
    except StoreError as error:
        logger.error("a spooled line was refused", extra={"key": line.keys[0], "why": str(error)[:200]})


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_spools: dict[tuple[int, str], Spool] = {}


def spool_of(config: Config) -> Spool:
    """The spool of this process in the configured folder."""
    name = (os.getpid(), config.spool_dir)
    if name not in _spools:
        _spools[name] = Spool(config.spool_dir)
    return _spools[name]


async def replay_forever(store: Store, config: Config) -> None:
    """Replay at start, whenever the store comes back, and what dead processes left."""
    spool, came_up = spool_of(config), asyncio.Event()

    async def wake() -> None:
        came_up.set()

    store.on_up.append(wake)
    scanned = -SCAN_SECONDS
    while True:
        due = came_up.is_set() or spool.has_lines or time.monotonic() - scanned >= SCAN_SECONDS
        came_up.clear()
        if due and store.up and await _replayed(spool, store):
            scanned = time.monotonic()
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await came_up.wait()
        except TimeoutError:
            continue


async def _replayed(spool: Spool, store: Store) -> bool:
    try:
        count = await spool.replay(store)
    except (StoreUnavailable, OSError) as error:
        logger.warning("the spool waits", extra={"why": str(error)[:200]})
        return False
    if count:
        logger.info("replayed the spool", extra={"lines": count})
    return True

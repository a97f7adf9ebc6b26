"""What could not reach the store is on disk before anybody is told otherwise, and is replayed without doubles."""

import asyncio
import os
import subprocess
import sys
from functools import partial

import pytest

from proxy.errors import StoreUnavailable
from proxy.redis_keys import stream_key
from proxy.spool import Line, Spool, replay_forever, spool_of
from proxy.store import Store
from tests.proxy.limits.conftest import entry, make_tenant, until

WRITER = """
import asyncio, os, sys
from proxy.spool import Line, Spool

async def main():
    spool = Spool(sys.argv[1])
    await asyncio.gather(*(spool.append(Line([sys.argv[2]], event='{"id":"e%d"}' % i)) for i in range(20)))
    print("written", flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


class Away(Store):
    """A store that is away after so many calls."""

    def __init__(self, store: Store, calls: int) -> None:
        super().__init__()
        self.store, self.calls, self.up = store, calls, True

    async def command(self, *args):
        self.calls -= 1
        if self.calls < 0:
            raise StoreUnavailable("away")
        return await self.store.command(*args)


def lines(tenant, count):
    return [Line([stream_key(tenant.shard)], event=entry(f"e{i}", i).decode()) for i in range(count)]


async def test_lines_are_on_disk_when_append_returns(tmp_path):
    spool, tenant = Spool(tmp_path / "spool"), make_tenant()
    await asyncio.gather(*(spool.append(line) for line in lines(tenant, 100)))
    (file,) = (tmp_path / "spool").iterdir()
    assert file.read_bytes().count(b"\n") == 100
    spool.close()


async def test_a_replay_writes_every_event_and_removes_the_file(side, tmp_path):
    spool, tenant = Spool(tmp_path / "spool"), make_tenant()
    for line in lines(tenant, 30):
        await spool.append(line)
    assert await spool.replay(side.store) == 30
    assert [event["id"] for event in await side.events(tenant)] == [f"e{i}" for i in range(30)]
    assert list((tmp_path / "spool").iterdir()) == []
    assert await spool.replay(side.store) == 0


async def test_a_replay_that_breaks_off_loses_nothing(side, tmp_path):
    spool, tenant = Spool(tmp_path / "spool"), make_tenant()
    for line in lines(tenant, 30):
        await spool.append(line)
    with pytest.raises(StoreUnavailable):
        await spool.replay(Away(side.store, 10))
    await spool.append(lines(tenant, 31)[30])
    assert await spool.replay(side.store) == 31
    assert {event["id"] for event in await side.events(tenant)} == {f"e{i}" for i in range(31)}


async def test_the_file_of_a_killed_process_is_replayed_by_another(side, tmp_path, project_root):
    tenant = make_tenant()
    arguments = ("-c", WRITER, str(tmp_path / "spool"), stream_key(tenant.shard))
    writer = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(project_root)}
    )
    written, _ = await writer.communicate()
    assert written == b"written\n"
    with next((tmp_path / "spool").iterdir()).open("ab") as file:
        file.write(b'{"keys":["torn')  # the machine went down in the middle of a line
    assert await Spool(tmp_path / "spool").replay(side.store) == 20
    assert len(await side.events(tenant)) == 20


async def test_the_file_of_a_living_process_is_left_alone(side, tmp_path):
    living, other, tenant = Spool(tmp_path / "spool"), Spool(tmp_path / "spool"), make_tenant()
    await living.append(lines(tenant, 1)[0])
    assert await other.replay(side.store) == 0
    assert await living.replay(side.store) == 1


async def written(side, tenant, count):
    return len(await side.events(tenant)) == count


async def test_the_loop_replays_at_start_and_whenever_lines_wait(side):
    tenant, spool = make_tenant(), spool_of(side.config)
    loop = asyncio.ensure_future(replay_forever(side.store, side.config))
    for expected, line in enumerate(lines(tenant, 2), start=1):
        await spool.append(line)
        await until(partial(written, side, tenant, expected))
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)

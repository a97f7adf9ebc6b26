"""Any sequence of admissions, settlements, cancellations, expiries, losses and edits does what a small model says."""

import asyncio
import time
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from proxy.admission import Admitted, read_limits
from proxy.admission_rules import CODES, rules_of
from proxy.config import Config
from proxy.embedded_store import EmbeddedStore
from proxy.errors import GatewayError
from proxy.redis_keys import epoch_key, late_key, record_key
from proxy.redis_scripts import CANCEL, RESTORE
from proxy.redis_store import RedisStore
from proxy.settle import settle
from proxy.snapshot import LimitSpec
from proxy.store import Store
from proxy.sweeper import sweep
from tests.proxy.limits.conftest import Side, ask, budget, entry, make_tenant, quota, warm

UNIT = 60_000
KINDS = ("requests", "tokens", "concurrency", "quota", "budget")
AMOUNTS = {"requests": 1, "concurrency": 1}


class Model:
    """What the limits of one caller must do. Buckets count units of 1/60,000; times are the store's milliseconds."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = limits
        self.buckets = {"requests": (0, 0), "tokens": (0, 0)}
        self.places: dict[str, int] = {}
        self.spent = {"quota": 0, "budget": 0}
        self.reserved = {"quota": 0, "budget": 0}

    def used(self, kind: str, now: int, limit: int | None = None) -> int:
        if kind in self.buckets:
            used, at = self.buckets[kind]
            return max(used - (now - at) * (limit or self.limits[kind]), 0)
        if kind == "concurrency":
            return sum(deadline > now for deadline in self.places.values())
        return self.spent[kind] + self.reserved[kind]

    def verdict(self, needs: dict[str, int], now: int) -> str | None:
        for kind in KINDS:
            unit = UNIT if kind in self.buckets else 1
            if self.used(kind, now) + needs[kind] * unit > self.limits[kind] * unit:
                return CODES[kind]
        return None

    def change_bucket(self, kind: str, amount: int, now: int, limit: int) -> None:
        """`limit`: the one in force when the request was admitted."""
        used = self.used(kind, now, limit) + amount * UNIT
        self.buckets[kind] = (min(max(used, 0), 2 * limit * UNIT), now)

    def admit(self, event_id: str, needs: dict[str, int], now: int, deadline: int) -> None:
        for kind in self.buckets:
            if needs[kind]:
                self.change_bucket(kind, needs[kind], now, self.limits[kind])
        self.places[event_id] = deadline
        for kind in self.reserved:
            self.reserved[kind] += needs[kind]

    def finish(self, held: "Held", used: dict[str, int], now: int) -> None:
        event_id, needs = held.admitted.event_id, dict.fromkeys(held.needs, 0) if held.lost else held.needs
        self.places.pop(event_id, None)
        if used["tokens"] != needs["tokens"]:
            self.change_bucket("tokens", used["tokens"] - needs["tokens"], now, held.limits["tokens"])
        for kind in self.reserved:
            self.reserved[kind] = max(self.reserved[kind] - needs[kind], 0)
            self.spent[kind] += used[kind]


class Held(msgspec.Struct):
    """A request that was admitted. `lost`: the store lost its data since."""

    admitted: Admitted
    needs: dict[str, int]
    limits: dict[str, int]
    doomed: bool
    lost: bool = False


class Limits(RuleBasedStateMachine):
    """Every step is done to a store and to the model."""

    open_requests = Bundle("open_requests")
    make_store: Any = EmbeddedStore

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.slack_ms = 2
        self.store: Store = self.make_store()
        self.run(self.store.start())
        self.side = Side(self.store, Config(spool_dir="unused"))
        self.tenant = make_tenant(
            limits={"rpm": 12, "tpm": 120, "concurrency": 4}, quotas=(quota(200),), budgets=(budget(200),)
        )
        self.run(warm(self.side, self.tenant))
        self.model = Model({"requests": 12, "tokens": 120, "concurrency": 4, "quota": 200, "budget": 200})
        self.held: dict[str, Held] = {}
        self.overran = False

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.run(self.store.close())
            self.runner.close()

    def run(self, work: Any) -> Any:
        """Do it, and learn how far a script's time may be from what we read of the clock before and after."""
        before = time.monotonic()
        done = self.runner.run(work)
        self.slack_ms = max(self.slack_ms, int((time.monotonic() - before) * 1000) + 2)
        return done

    @rule(
        target=open_requests,
        tokens=st.integers(0, 130),
        worst_tokens=st.integers(0, 120),
        nano=st.integers(0, 120),
        doomed=st.booleans(),
    )
    def admit(self, tokens: int, worst_tokens: int, nano: int, doomed: bool) -> str:
        needs = {**AMOUNTS, "tokens": tokens, "quota": worst_tokens, "budget": nano}
        before = self.store.now_ms()
        deadline = before - 1 if doomed else before + 600_000
        amounts: Any = {"expected_tokens": tokens, "worst_tokens": worst_tokens, "worst_nano": nano}
        told: str | None = None
        try:
            admitted = self.run(ask(self.side, self.tenant, deadline_ms=deadline, **amounts))
        except GatewayError as error:
            told = error.code
        moments = (before - self.slack_ms, self.store.now_ms() + self.slack_ms)
        expected = {self.model.verdict(needs, moment) for moment in moments}
        assert told in expected
        if told is not None:
            return ""
        self.model.admit(admitted.event_id, needs, admitted.now_ms, deadline)
        self.held[admitted.event_id] = Held(admitted, needs, dict(self.model.limits), doomed)
        return str(admitted.event_id)

    @rule(event=consumes(open_requests), tokens=st.integers(0, 150), share=st.integers(0, 100), twice=st.booleans())
    def settle(self, event: str, tokens: int, share: int, twice: bool) -> None:
        held = self.held.get(event)
        if held is None or held.doomed:
            return  # refused, or the sweeper's
        del self.held[event]
        nano = held.needs["budget"] * share // 100
        written = entry(event, held.admitted.now_ms)
        for _ in range(2 if twice else 1):
            self.run(settle(self.side, held.admitted, tokens=tokens, cost_nano=nano, entry=written))
        used = {"tokens": tokens, "quota": tokens, "budget": nano}
        self.overran |= tokens > held.needs["quota"] or held.lost
        self.model.finish(held, used, self.now_after())

    @rule(event=consumes(open_requests))
    def cancel(self, event: str) -> None:
        held = self.held.get(event)
        if held is None or held.lost:
            return
        del self.held[event]
        bound, args = held.admitted.holds, held.admitted.holds.admit_args.copy()
        for kind, places in bound.admit_at.items():
            for place in places:
                args[place] = held.needs[kind]
        keys = [record_key(bound.shard, event), bound.open, *bound.keys]
        for _ in range(2):
            self.run(self.store.run(CANCEL, keys, [event, *args]))
        now = self.now_after()
        self.model.change_bucket("requests", -1, now, held.limits["requests"])
        self.model.finish(held, {"tokens": 0, "quota": 0, "budget": 0}, now)

    @rule()
    def expire(self) -> None:
        """The sweeper charges every request past its deadline in full."""
        doomed = {event: held for event, held in self.held.items() if held.doomed}
        swept = self.run(sweep(self.store, self.tenant.shard))
        assert swept == sum(not held.lost for held in doomed.values())
        for event, held in doomed.items():
            del self.held[event]
            if not held.lost:
                self.model.finish(held, held.needs, self.now_after())

    @rule()
    def lose_everything(self) -> None:
        """The store is emptied; counters come back from the ledger, which has what was settled."""
        shard = self.tenant.shard
        keys = self.run(self.store.command("KEYS", f"tb:{{s{shard}}}*"))
        if keys:
            self.run(self.store.command("DEL", *keys))
        with pytest.raises(GatewayError, match="counted again"):
            self.run(ask(self.side, self.tenant))
        counters = self.counters()
        args: list[Any] = ["epoch", "0-0"]
        for kind in ("quota", "budget"):
            args += [self.model.spent[kind], 0]
        self.run(self.store.run(RESTORE, [epoch_key(shard), late_key(shard), *counters], args))
        fresh = Model(self.model.limits)
        fresh.spent = self.model.spent
        self.model = fresh
        for held in self.held.values():
            held.lost = True

    @rule(rpm=st.integers(1, 20), tpm=st.integers(50, 200))
    def edit_limits(self, rpm: int, tpm: int) -> None:
        """A new configuration: what is used stays used."""
        limits = LimitSpec(rpm=rpm, tpm=tpm, concurrency=4)
        self.tenant = msgspec.structs.replace(self.tenant, limits=limits)
        for kind, limit in (("requests", rpm), ("tokens", tpm)):
            self.model.limits[kind] = limit

    @invariant()
    def the_store_has_what_the_model_has(self) -> None:
        if not hasattr(self, "runner"):
            return
        before = self.store.now_ms()
        states = {state.kind: state for state in self.run(read_limits(self.store, self.tenant, None))}
        after = self.store.now_ms()
        for kind in ("quota", "budget"):
            assert (states[kind].used, states[kind].reserved) == (self.model.spent[kind], self.model.reserved[kind])
        assert states["concurrency"].used == self.model.used("concurrency", after)
        for kind in self.model.buckets:
            most, least = (
                -(-self.model.used(kind, moment) // UNIT) for moment in (before - self.slack_ms, after + self.slack_ms)
            )
            assert least <= states[kind].used <= most

    @invariant()
    def nothing_is_overspent(self) -> None:
        if hasattr(self, "runner"):
            for kind in ("quota", "budget"):
                assert self.model.reserved[kind] >= 0
                assert self.overran or self.model.used(kind, 0) <= self.model.limits[kind]

    def counters(self) -> list[str]:
        return rules_of(self.tenant, None).bound(None, self.store.now_ms()).keys[-2:]

    def now_after(self) -> int:
        """The time that the last script had, to `slack_ms`."""
        return self.store.now_ms()


@pytest.mark.timeout(400)  # when it fails, finding the shortest failing sequence takes its time
@pytest.mark.parametrize("kind", ["embedded", "redis"])
def test_any_sequence_of_steps_does_what_the_model_says(kind, real_redis_url):
    if kind == "redis" and not real_redis_url:
        pytest.skip("needs TEST_REDIS_URL")

    class OnStore(Limits):
        make_store = staticmethod(lambda: RedisStore(real_redis_url)) if kind == "redis" else EmbeddedStore

    OnStore.TestCase.settings = settings(
        max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(OnStore, settings=OnStore.TestCase.settings)

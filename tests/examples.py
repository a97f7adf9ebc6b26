"""How many examples property tests and fuzzing try: few in every run, more with FUZZ_FACTOR=100 in the environment."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("FUZZ_FACTOR") or 1)


def examples(count: int) -> settings:
    """Without a deadline: what hangs is found by counting work, and machines differ."""
    return settings(max_examples=count * FACTOR, deadline=None, suppress_health_check=[HealthCheck.too_slow])

"""What a Claude model accepts, by the version in its name.

Sources: Anthropic's pages "Thinking support, defaults, and rejected configurations by model", "Structured outputs" and
the migration guides. A name without a version ("my-claude") gets only what every model takes.
"""

from __future__ import annotations

import re
from typing import Literal

Version = tuple[int, int]

#: claude-3-7-sonnet-20250219, claude-sonnet-4-20250514, claude-opus-4-1, anthropic.claude-haiku-4-5-20251001-v1:0
_VERSION = re.compile(r"claude-(?:[a-z]+-)?v?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?", re.IGNORECASE)

#: The first that think at all, that are told only whether to (adaptive), and that take no sampling parameters.
_THINKING, _ADAPTIVE, _NO_SAMPLING = (3, 7), (4, 6), (4, 7)
#: The first that keep to a JSON schema, and that refuse temperature together with top_p.
_SCHEMAS = _ONE_SAMPLING_PARAMETER = (4, 1)


def version_of(model: str) -> Version | None:
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def thinking_mode(model: str) -> Literal["budget", "adaptive"] | None:
    """How thinking is asked for: with a budget of tokens, or as adaptive with an effort; None: not at all."""
    version = version_of(model)
    if version is None or version < _THINKING:
        return None
    return "budget" if version < _ADAPTIVE else "adaptive"


def takes_sampling(model: str) -> bool:
    """Whether temperature, top_p and top_k are accepted."""
    version = version_of(model)
    return version is None or version < _NO_SAMPLING


def takes_both_sampling_parameters(model: str) -> bool:
    """Whether temperature and top_p may be sent together."""
    version = version_of(model)
    return version is not None and version < _ONE_SAMPLING_PARAMETER


def takes_schema(model: str) -> bool:
    """Whether output_config.format is known."""
    version = version_of(model)
    return version is None or version >= _SCHEMAS


def takes_extra_effort(model: str) -> bool:
    """Whether the effort `xhigh` is known."""
    version = version_of(model)
    return version is not None and version >= _NO_SAMPLING

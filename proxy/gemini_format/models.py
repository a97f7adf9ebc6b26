"""How a Gemini model is told to think, by the version in its name.

Sources: the Gemini API's pages "Thinking" (levels, and the range of budgets of each model), "OpenAI compatibility"
(what an effort is worth) and "Gemini 3" (signatures). Names without a version (gemini-flash-latest) mean the newest
models, which still take budgets; what is no Gemini, or an older one, does not think.
"""

from __future__ import annotations

import re
from typing import Any

JSON = dict[str, Any]

_VERSION = re.compile(r"\bgemini-(\d{1,2})(?:\.(\d{1,2}))?(?![\d.])", re.IGNORECASE)
_GEMINI = re.compile(r"\bgemini\b", re.IGNORECASE)

#: The first that thinks (with a budget of tokens), and the first that has levels, and signs what it calls.
_BUDGETS, _LEVELS = (2, 5), (3, 0)

#: reasoning_effort -> tokens, and -> level.
_EFFORT_TOKENS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}
_EFFORT_LEVELS = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
#: Above what is listed: the most.
_MOST = ("xhigh", "max")

#: Budgets of this many tokens and more -> level.
_LEVEL_STEPS = ((16_384, "high"), (4096, "medium"), (0, "low"))


def version_of(model: str) -> tuple[int, int] | None:
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def signs_calls(model: str) -> bool:
    """Whether calls without their signature are refused."""
    version = version_of(model)
    return version >= _LEVELS if version else bool(_GEMINI.search(model))


def takes_format_with_tools(model: str) -> bool:
    """Whether an answer may be bound to JSON while functions are offered."""
    return signs_calls(model)


def thinking_config(model: str, effort: str | None, budget: int | None) -> JSON | None:
    """thinkingConfig for a wish (effort, or a budget in tokens); None: none, or the model does not think."""
    version = version_of(model)
    if effort in _MOST:
        effort = "high"
    if (effort not in _EFFORT_TOKENS and budget is None) or (version and version < _BUDGETS):
        return None
    if version is None and not _GEMINI.search(model):
        return None
    config: JSON = {"includeThoughts": True} if effort != "none" or budget is not None else {}
    if version and version >= _LEVELS:
        return config | {"thinkingLevel": _level(model, version, effort, budget)}
    wanted = _EFFORT_TOKENS[effort or ""] if budget is None else budget
    return config | {"thinkingBudget": _in_range(model, version, wanted)}


def _level(model: str, version: tuple[int, int], effort: str | None, budget: int | None) -> str:
    if budget is None:
        level = _EFFORT_LEVELS[effort or ""]
    else:
        level = next(level for least, level in _LEVEL_STEPS if budget >= least)
    if "-pro" not in model.lower():
        return level
    if level == "minimal":
        return "low"
    return "high" if level == "medium" and version == _LEVELS else level


def _in_range(model: str, version: tuple[int, int] | None, budget: int) -> int:
    """The Pro models cannot be told not to think; Flash-Lite thinks with at least 512 tokens, or not at all."""
    if version is None:
        return min(budget, 24_576)
    if "-pro" in model.lower():
        return min(max(budget, 128), 32_768)
    least = 512 if budget and "-lite" in model.lower() else 0
    return min(max(budget, least), 24_576)

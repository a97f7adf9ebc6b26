"""How a Claude model is asked to think: with a budget of tokens, or adaptively with an effort.

Source: Anthropic's pages "Extended thinking" and "Adaptive thinking"; Bedrock's Converse API takes the same members.
"""

from __future__ import annotations

from typing import Any

from proxy.anthropic_format import models
from proxy.anthropic_format.shapes import is_signed
from proxy.canonical import ChatRequest, Message, Text, Thinking, ToolCall, ToolResult

JSON = dict[str, Any]

#: The smallest thinking budget the API takes, and what an effort is worth (tokens).
MIN_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max"}


def thinking_members(request: ChatRequest, model: str, max_tokens: int) -> tuple[JSON | None, str | None]:
    """`thinking`, and the effort of `output_config`, where the request wants them and the model has them."""
    mode = models.thinking_mode(model)
    effort = request.reasoning_effort
    if mode == "adaptive" and (effort in _EFFORTS or request.thinking_budget):
        if effort not in _EFFORTS:
            return {"type": "adaptive"}, None
        extra = effort == "xhigh" and models.takes_extra_effort(model)
        return {"type": "adaptive"}, effort if extra else _EFFORTS[effort]
    if mode == "budget" and _may_think(request):
        wanted = request.thinking_budget or _BUDGETS.get(effort or "", 0)
        budget = min(wanted, max_tokens // 2)  # the limit covers thinking and answer
        if budget >= MIN_BUDGET:
            return {"type": "enabled", "budget_tokens": budget}, None
    return None, None


def _may_think(request: ChatRequest) -> bool:
    """With a budget, tools may not be forced, and calls whose results come now must have been thought about."""
    offered = request.tools or request.foreign_tools
    if offered and request.tool_choice is not None and request.tool_choice.mode in ("required", "tool"):
        return False
    turns = _sent_turns(request.messages)
    if len(turns) < 2 or not any(isinstance(part, ToolResult) for part in turns[-1]):
        return True
    answer = turns[-2]
    return isinstance(answer[0], Thinking) or not any(isinstance(part, ToolCall) for part in answer)


def _sent_turns(messages: list[Message]) -> list[list[Any]]:
    """The parts of each turn as the provider gets them: messages of one role are one, what is not sent is left out."""
    turns: list[list[Any]] = []
    role = ""
    for message in messages:
        parts = [part for part in message.parts if _is_sent(part)]
        if parts and message.role == role:
            turns[-1] += parts
        elif parts:
            turns.append(parts)
            role = message.role
    return turns


def _is_sent(part: Any) -> bool:
    if isinstance(part, Text):
        return bool(part.text.strip())
    return not isinstance(part, Thinking) or is_signed(part.signature) or bool(part.redacted)

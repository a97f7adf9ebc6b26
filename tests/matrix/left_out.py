"""What is left out of a provider's request on purpose, and why: the one list of such things, told below the table."""

from __future__ import annotations

_OPENAI = ("openai", "azure_openai", "openai_compatible")
_OTHERS = ("anthropic", "bedrock", "gemini", "ollama")

#: feature -> (kinds of provider that have no words for it, why the answer is as good without).
LEFT_OUT: dict[str, tuple[tuple[str, ...], str]] = {
    "seed": (("anthropic", "bedrock"), "these providers promise no repeatable answers"),
    "penalties": (("anthropic", "bedrock"), "a taste of style, which these models do not offer"),
    "log probabilities": (_OTHERS, "these providers tell none, or not in this form"),
    "name of the user": (("bedrock", "gemini", "ollama"), "these providers take none; the audit log keeps it"),
    "top_k": (_OPENAI, "a taste of sampling, which this format does not offer"),
    "one tool call at a time": (
        ("bedrock", "gemini", "ollama"),
        "these providers cannot be told: several calls may come at once",
    ),
    "marks for the prompt cache": ((*_OPENAI, "gemini", "ollama"), "these providers cache by themselves"),
    "thinking is asked for": (
        _OPENAI,
        "a budget in tokens, as Anthropic's clients give it, has no equal; an effort is passed on",
    ),
    "members the gateway does not know": ((*_OPENAI, *_OTHERS), "they are for providers of the client's own format"),
}

#: Features that are left out for clients of one dialect only.
_OF_DIALECT = {"thinking is asked for": "anthropic"}


def left_out(feature: str, dialect: str, kind: str) -> str:
    """The reason; "" when the feature must be carried over or refused."""
    kinds, reason = LEFT_OUT.get(feature, ((), ""))
    return reason if kind in kinds and _OF_DIALECT.get(feature, dialect) == dialect else ""

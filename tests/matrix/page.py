"""docs/features.md, written from what the pairs do. `make features` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.matrix.chat_features import FEATURES
from tests.matrix.feature import Feature
from tests.matrix.left_out import LEFT_OUT
from tests.matrix.other_features import ANSWERS, OPTIONS, OTHERS
from tests.matrix.pairs import EMBEDDING_MODELS, MODELS, NOTHING, Pair, kinds

PAGE = Path(__file__).parent.parent.parent / "docs" / "features.md"

ROWS: list[Feature] = [*FEATURES, *OPTIONS, *ANSWERS, *OTHERS]

#: A heading for each dialect, in this order.
HEADINGS = {
    "openai": "Clients of `/v1/chat/completions` (OpenAI)",
    "responses": "Clients of `/v1/responses` (OpenAI)",
    "anthropic": "Clients of `/v1/messages` (Anthropic)",
    "chat": "Clients of `/v1/chat` (Tollbar's own format)",
    "completions": "Clients of `/v1/completions` (OpenAI, legacy)",
    "embeddings": "Clients of `/v1/embeddings` (OpenAI)",
    "count_tokens": "Clients of `/v1/messages/count_tokens` (Anthropic)",
}

HEAD = """# Features by client and provider

Written by `make features` from tests that run each pair: the client's request is put through, and the written answer of
a provider comes back. A test fails when this page says something else. Columns are kinds of providers.

| mark | |
|---|---|
| as is | client and provider speak the same format: request and answer pass through unchanged |
| yes | translated, with nothing lost |
| 400 `field` | refused, and the error names the field; of several targets behind a model, another is tried first |
| left out | the provider has no words for it, and the answer is as good without; the reasons are below |
| estimated | told by the gateway's own estimate, and marked as such |
| – | the client's format, or the provider, has no such thing |

What a provider takes depends on the model, too: the table is about {models}; embeddings by {embedding}.
"""


def page() -> str:
    """The whole page."""
    models = ", ".join(f"`{MODELS[kind]}` ({kind})" for kind in kinds() if kind != "openai_compatible")
    embedding = " and ".join(f"`{model}`" for model in EMBEDDING_MODELS.values())
    parts = [HEAD.format(models=models, embedding=embedding)]
    for name, heading in HEADINGS.items():
        parts += [f"## {heading}\n", _table(name)]
    parts += ["## What is left out, and why\n", _reasons()]
    return "\n".join(parts)


def _table(name: str) -> str:
    pairs = [Pair(name, kind) for kind in kinds()]
    lines = ["| | " + " | ".join(kinds()) + " |", "|---|" + "---|" * len(pairs)]
    for feature in ROWS:
        marks = [pair.mark(feature) for pair in pairs]
        if set(marks) != {NOTHING}:
            lines.append(f"| {feature.name} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"


def _reasons() -> str:
    return "".join(f"- {feature}: {reason}.\n" for feature, (_, reason) in LEFT_OUT.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write("docs/features.md is written\n")

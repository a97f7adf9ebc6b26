"""Placeholder while the dialect is written."""
from proxy.dialects.openai import OpenAIDialect


class AnthropicDialect(OpenAIDialect):
    name = "anthropic"

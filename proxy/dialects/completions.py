"""OpenAI's legacy completions as clients speak them: POST /v1/completions.

A provider that does not speak them gets a single text as one message of the user.
"""

from __future__ import annotations

from typing import Any, ClassVar

from proxy.canonical import ChatRequest, ChatResponse, Message, Text
from proxy.context import COMPLETIONS, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.base import Dialect, refuse_steering
from proxy.dialects.completions_rendering import TextStreamRenderer, text_completion
from proxy.dialects.openai import MAX_LOGIT_BIAS, include_usage
from proxy.errors import Inexpressible

JSON = dict[str, Any]

MAX_PROMPTS = 2048
#: The most answers of one call: prompts by choices.
MAX_ANSWERS = 4096
MAX_SUFFIX = 1 << 20
MAX_LOGPROBS = 1000

#: What only these completions have -> the values that ask for nothing.
_OWN: dict[str, tuple[Any, ...]] = {
    "suffix": (None, ""),
    "echo": (None, False),
    "logprobs": (None,),
    "best_of": (None, 1),
    "n": (None, 1),
}


class CompletionsDialect(Dialect):
    name: ClassVar[str] = COMPLETIONS

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are."""
        refuse_steering(body)
        model = fields.model(body)
        prompts = _prompts(body.get("prompt"))
        fields.number(body, "temperature", 0, 2)
        fields.stops(body)
        fields.boolean(body, "echo")
        fields.text(body, "suffix", MAX_SUFFIX)
        fields.integer(body, "logprobs", 0, MAX_LOGPROBS)
        bias = body.get("logit_bias")
        if bias is not None and (not isinstance(bias, dict) or len(bias) > MAX_LOGIT_BIAS):
            raise fields.refused("logit_bias", f"must be an object of at most {MAX_LOGIT_BIAS} entries")
        limit = fields.integer(body, "max_tokens", 0, fields.MAX_OUTPUT_TOKENS)
        return Call(
            dialect=COMPLETIONS,
            body=body,
            model=model,
            stream=fields.boolean(body, "stream") or False,
            include_usage=include_usage(body),
            max_tokens=fields.DEFAULT_COMPLETION_TOKENS if limit is None else limit,
            choices=_answers(body, prompts),
            user=fields.text(body, "user", fields.MAX_USER),
            metadata=fields.metadata(body),
        )

    def canonical(self, call: Call) -> ChatRequest:
        body = call.body
        for name, harmless in _OWN.items():
            if body.get(name) not in harmless:
                raise Inexpressible(f"'{name}' is not possible with this model.", param=name)
        if not call.max_tokens:
            raise Inexpressible("'max_tokens' must be at least 1 with this model.", param="max_tokens")
        return ChatRequest(
            messages=[Message("user", [Text(_only_text(body["prompt"]))])],
            max_tokens=call.max_tokens,
            temperature=fields.number(body, "temperature", 0, 2),
            top_p=fields.number(body, "top_p", 0, 1),
            stop=fields.stops(body),
            seed=fields.integer(body, "seed", -(1 << 63), (1 << 63) - 1),
            frequency_penalty=fields.number(body, "frequency_penalty", -2, 2),
            presence_penalty=fields.number(body, "presence_penalty", -2, 2),
            user=call.user,
        )

    def render_response(self, call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
        return text_completion(response, facts)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> TextStreamRenderer:
        return TextStreamRenderer(call, model)


def _prompts(given: Any) -> int:
    """How many prompts there are: a text or token ids are one. Raises BadRequest for anything else."""
    if isinstance(given, str):
        return 1
    if not isinstance(given, list) or not given:
        raise fields.refused("prompt", "must be a text, token ids, or a list of either")
    if fields.is_token_id(given[0]):
        if not all(map(fields.is_token_id, given)):
            raise fields.refused("prompt", "must hold token ids only")
        return 1
    if len(given) > MAX_PROMPTS:
        raise fields.refused("prompt", f"has more than {MAX_PROMPTS} entries")
    for number, entry in enumerate(given):
        texts = isinstance(entry, str) and isinstance(given[0], str)
        if not texts and not (
            isinstance(entry, list) and isinstance(given[0], list) and all(map(fields.is_token_id, entry))
        ):
            raise fields.refused(f"prompt[{number}]", "must be a text, or a list of token ids, as the first entry is")
    return len(given)


def _answers(body: JSON, prompts: int) -> int:
    """How many answers the provider generates: of each prompt n, or the best n of best_of."""
    n = fields.integer(body, "n", 1, fields.MAX_CHOICES) or 1
    best_of = fields.integer(body, "best_of", 1, fields.MAX_CHOICES) or 1
    answers = prompts * max(n, best_of)
    if answers > MAX_ANSWERS:
        raise fields.refused(
            "n" if n >= best_of else "best_of", f"and the prompts ask for more than {MAX_ANSWERS} answers"
        )
    return answers


def _only_text(prompt: Any) -> str:
    text = prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt
    if not isinstance(text, str) or not text:
        raise Inexpressible("'prompt' must be one text that is not empty for this model.", param="prompt")
    return text

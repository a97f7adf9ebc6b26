"""One feature between one client dialect and one kind of provider, in process: is it carried over, and how?"""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
from typing import Any

import proxy.dialects
from proxy.context import COUNT, EMBED, Call, ProviderReply, ProviderTarget
from proxy.dialects.base import Dialect, canonical
from proxy.errors import BadRequest
from proxy.providers.base import Adapter, adapters
from proxy.relay import TranslatingRelay
from tests.fakes.formats.catalogue import OF_DIALECT, OF_KIND, VECTORS
from tests.fakes.formats.style import PLAIN, Format
from tests.matrix.feature import BASE, Feature
from tests.matrix.left_out import left_out
from tests.proxy.properties.clients import CLIENTS
from tests.proxy.wire import facts, play

JSON = dict[str, Any]

#: Marks of the table.
YES, AS_IS, LEFT_OUT, ESTIMATED, NOTHING = "yes", "as is", "left out", "estimated", "–"

#: The models that the table is about: what a provider takes depends on the model.
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-2.5-flash",
    "ollama": "qwen3",
    "openai": "gpt-5",
    "azure_openai": "gpt-5",
    "openai_compatible": "any model",
}
BASE_URLS = {"openai_compatible": "https://generativelanguage.googleapis.com/v1beta/openai"}
EMBEDDING_MODELS = {"bedrock": "amazon.titan-embed-text-v2:0", "gemini": "gemini-embedding-001"}

#: What no model of a kind ever says, although others of its format do.
SILENT = {
    **{(kind, what): True for kind in ("openai", "azure_openai") for what in ("thinking", "call_signature")},
    ("ollama", "ends by content_filter"): True,
}


class Lost(AssertionError):
    """Something got lost without a word."""


def dialects() -> dict[str, Dialect]:
    """Every dialect of the product by its name."""
    for module in pkgutil.iter_modules(proxy.dialects.__path__):
        importlib.import_module(f"proxy.dialects.{module.name}")
    found: dict[str, Dialect] = {}
    pending = list(Dialect.__subclasses__())
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if "name" in cls.__dict__:
            found[cls.name] = cls()
    return found


def kinds() -> list[str]:
    """The mock plays OpenAI and is left out."""
    return sorted(set(adapters()) - {"mock"})


class Pair:
    """A dialect and a kind of provider."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.dialect, self.adapter = dialects()[name], adapters()[kind]

    @property
    def native(self) -> bool:
        return self.name in self.adapter.dialects

    @property
    def written(self) -> Format:
        """How the provider answers."""
        return OF_DIALECT.get(self.name, OF_KIND[self.kind]) if self.native else OF_KIND[self.kind]

    def mark(self, feature: Feature) -> str:
        """How a feature fares. Raises Lost."""
        if self.name not in feature.asks or not self._can_be_said(feature):
            return NOTHING
        try:
            call = self._call(BASE[self.name] | feature.asks[self.name], stream=feature.stream)
            if call.operation == COUNT and not self.native:
                return ESTIMATED
            request = self._request(call)
        except BadRequest as error:
            if not error.param:
                raise Lost(f"{feature.name}: refused without a field: {error.message}") from None
            return f"400 `{error.param}`"
        missing = self._missing(feature, request)
        if (reason := left_out(feature.name, self.name, self.kind)) and not self.native:
            if not missing:
                raise Lost(f"{feature.name}: is not left out any more ({reason})")
            return LEFT_OUT
        if missing:
            raise Lost(f"{feature.name}: {missing}: {request}")
        self._check_answer(feature, call)
        return AS_IS if self.native else YES

    def _can_be_said(self, feature: Feature) -> bool:
        needs = {need for need in feature.needs if not need.startswith("ends by ")}
        return needs <= self.written.says and not any((self.kind, need) in SILENT for need in feature.needs)

    def _call(self, body: JSON, *, stream: bool = False) -> Call:
        call = self.dialect.parse_call(body | ({"stream": True} if stream else {}))
        if call.operation not in self.adapter.operations and call.operation != COUNT:
            raise BadRequest("The providers of this model do not offer this.", param="model")
        if not self.native:
            canonical(self.dialect, call)
        return call

    def _request(self, call: Call) -> str:
        """What the provider gets, as a text."""
        model = EMBEDDING_MODELS.get(self.kind, "m") if call.operation == EMBED else MODELS[self.kind]
        base_url = BASE_URLS.get(self.kind, "https://provider.example")
        target = ProviderTarget(provider="p", kind=self.kind, model=model, base_url=base_url, region="eu-central-1")
        return json.dumps(json.loads(self.adapter.build_request(call, target).body), ensure_ascii=False)

    def _missing(self, feature: Feature, request: str) -> str:
        """What of a feature the provider does not get; "" when it gets all."""
        for text in feature.sent:
            if text not in request and base64.b64encode(text.encode()).decode() not in request:
                return f"the provider does not get {text!r}"
        if feature.differs and request == self._request(self._call(self._without(feature), stream=feature.stream)):
            return "the provider gets the same request without it"
        return ""

    def _without(self, feature: Feature) -> JSON:
        """The same call less what the feature adds; tools that are only there for it stay."""
        asked = feature.asks[self.name]
        kept = {name: value for name, value in asked.items() if name in ("tools", "max_tokens") and len(asked) > 1}
        return BASE[self.name] | kept | feature.without.get(self.name, {})

    # ---------------------------------------------------------------- the answer

    def _check_answer(self, feature: Feature, call: Call) -> None:
        raw = self._answered(feature, call)
        told = raw.decode()
        for text in (*feature.told, *([feature.told_by[self.name]] if self.name in feature.told_by else [])):
            if text not in told and text.replace('"', '\\"') not in told:
                raise Lost(f"{feature.name}: the client is not told {text!r}: {told}")
        if not (feature.usage or feature.round_trip):
            return
        client = CLIENTS[self.name]
        document = client.added_up(raw) if feature.stream else json.loads(raw)
        for member in feature.usage:
            counted, meant = getattr(client.usage(document), member), getattr(feature.answer.usage, member)
            if counted != meant:
                raise Lost(f"{feature.name}: {counted} {member} are told, {meant} were meant")
        again = (
            self._request(self._call(self._going_on(feature, client.history(document)))) if feature.round_trip else ""
        )
        for text in feature.round_trip:
            if text not in again:
                raise Lost(f"{feature.name}: {text!r} does not come back to the provider: {again}")

    def _going_on(self, feature: Feature, history: list[JSON]) -> JSON:
        return BASE[self.name] | feature.asks[self.name] | CLIENTS[self.name].asking(history)

    def _answered(self, feature: Feature, call: Call) -> bytes:
        """What the client gets."""
        about = facts(feature.answer.usage, finish_reason=feature.answer.finish_reason)
        if feature.stream:
            return self._streamed(feature, call)
        body = self._body(feature, call)
        reply = ProviderReply(200, {}, body)
        if self.native:
            passed = self.adapter.pass_through(call, reply).body
            if passed != body:
                raise Lost(f"{feature.name}: the answer does not pass as it is")
            return body
        return self.dialect.render_response(call, self.adapter.parse_response(call, reply), about)

    def _body(self, feature: Feature, call: Call) -> bytes:
        if call.operation == COUNT:
            return b'{"input_tokens":4242}'
        if call.operation == EMBED:
            return VECTORS[self.kind](feature.vectors, str(call.body.get("encoding_format", "float")))
        return self.written.whole(feature.answer)

    def _streamed(self, feature: Feature, call: Call) -> bytes:
        relay = _relay(self.adapter, self.dialect, call, native=self.native)
        out = play(relay, [self.written.stream(feature.answer, PLAIN)])
        if not relay.done:
            raise Lost(f"{feature.name}: the stream does not end well: {relay.fault!r}")
        return out + relay.end(facts(relay.usage, finish_reason=relay.finish_reason))


def _relay(adapter: Adapter, dialect: Dialect, call: Call, *, native: bool) -> Any:
    if native:
        return adapter.stream_pass_through(call)
    return TranslatingRelay(adapter.stream_decoder(call), dialect.stream_renderer(call, "req_1", "m"))

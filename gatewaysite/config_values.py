"""The values of the configuration file that YAML and msgspec do not have: money, moments, secrets, checked texts."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings

from proxy.base_urls import fault_of_base_url
from tenants.names import fault_of_name
from tenants.scopes import SCOPES
from webhooks.endpoint_form import fault_of_receiver

MAX_USD = Decimal(9_000_000)  # what stays exact in Lua as nano-USD
DECIMALS = 9
_AMOUNT = re.compile(r"\d{1,11}(\.\d{1,18})?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t -~]{0,4096}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}")


class Amount(Decimal):
    """USD with at most nine decimals."""


class Moment:
    """A point in time; a date alone is its UTC midnight, a time without zone is UTC."""

    __slots__ = ("at",)

    def __init__(self, at: datetime) -> None:
        self.at = at


class Secret:
    """A secret as the file gives it: literal, env:NAME or file:PATH, already resolved. Never shown."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Name(str):
    """A text that people choose (tenants.names)."""


class Slug(str):
    """A tenant's or tier's identifier."""


class Label(str):
    """The name of a provider or of a model alias."""


class TargetModel(str):
    """What a provider calls a model."""


class BaseUrl(str):
    """A provider's address."""


class WebhookUrl(str):
    """A receiver's address."""


class Cidr(str):
    """A network, such as 10.0.0.0/8, or one address."""


class Zone(str):
    """An IANA time zone."""


class Scope(str):
    """What a key may be used for."""


class HeaderName(str):
    """A header's name."""


class HeaderValue(str):
    """A header's value."""


class SecretSource:
    """Where `env:` and `file:` look: the environment, and the configuration file's own folder."""

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._variables = os.environ if variables is None else variables

    def resolve(self, text: str) -> str:
        """The secret that `text` names. Raises ValueError, never with the secret."""
        kind, _, rest = text.partition(":")
        if kind == "env":
            return self._variable(rest)
        if kind == "file":
            return self._file(rest)
        return text

    def _variable(self, name: str) -> str:
        if not _VARIABLE.fullmatch(name):
            raise ValueError("env: must be followed by the name of an environment variable")
        value = self._variables.get(name, "")
        if not value:
            raise ValueError(f"environment variable {name} is not set")
        return value

    def _file(self, name: str) -> str:
        try:
            value = (self._folder / name).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ValueError(f"file {name} cannot be read ({type(error).__name__})") from error
        if not value:
            raise ValueError(f"file {name} is empty")
        return value


def converter(secrets: SecretSource) -> Callable[[type, Any], Any]:
    """msgspec's dec_hook for the types above. A ValueError becomes an error at the value's path."""
    readers: dict[type, Callable[[Any], Any]] = {
        Amount: _amount,
        Moment: _moment,
        Secret: lambda value: Secret(secrets.resolve(_text(value))),
        Name: _checked(Name, fault_of_name),
        Slug: _matching(Slug, _SLUG, "lower-case letters, digits, - and _ (at most 63)"),
        Label: _matching(Label, _LABEL, "letters, digits and . _ : @ / - (at most 200)"),
        TargetModel: _checked(TargetModel, lambda text: fault_of_name(text, longest=200)),
        BaseUrl: _checked(BaseUrl, fault_of_base_url),
        WebhookUrl: _checked(WebhookUrl, _fault_of_webhook),
        Cidr: _cidr,
        Zone: _zone,
        Scope: _scope,
        HeaderName: _matching(HeaderName, _HEADER, "the characters of a header's name"),
        HeaderValue: _matching(HeaderValue, _HEADER_VALUE, "printable ASCII"),
    }

    def convert(wanted: type, value: Any) -> Any:
        reader = readers.get(wanted)
        return _unknown(wanted) if reader is None else reader(value)

    return convert


def _fault_of_webhook(text: str) -> str | None:
    if len(text) > 1000:
        return "must have at most 1000 characters"
    return fault_of_receiver(text, private_allowed=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS)


def _unknown(wanted: type) -> NoReturn:
    raise NotImplementedError(wanted.__name__)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {_yaml_name(value)}: put it in quotes")
    return value


def _yaml_name(value: Any) -> str:
    names = {type(None): "null", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "a date" if isinstance(value, date) else "a mapping")


def _checked(wanted: type[str], fault_of: Callable[[str], str | None]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _text(value)
        if fault := fault_of(text):
            raise ValueError(fault)
        return wanted(text)

    return read


def _matching(wanted: type[str], pattern: re.Pattern[str], allowed: str) -> Callable[[Any], str]:
    return _checked(wanted, lambda text: None if pattern.fullmatch(text) else f"must be made of {allowed}")


def _amount(value: Any) -> Amount:
    """A decimal text, or a number as YAML wrote it (repr of a float is what was written, up to 15 digits)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a decimal number of USD in quotes, got {_yaml_name(value)}")
    try:
        text = value.strip() if isinstance(value, str) else f"{Decimal(repr(value)):f}"
        amount = Amount(text) if _AMOUNT.fullmatch(text) else None
    except InvalidOperation:
        amount = None
    if amount is None:
        raise ValueError('expected a decimal number of USD, not negative, such as "2.50"')
    if amount != round(amount, DECIMALS):
        raise ValueError(f"has more than {DECIMALS} decimals")
    if amount > MAX_USD:
        raise ValueError(f"is above {MAX_USD} USD")
    return amount


def _moment(value: Any) -> Moment:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("expected a moment such as 2026-01-31T12:00:00Z") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(), UTC)
    if not isinstance(value, datetime):
        raise ValueError(f"expected a moment such as 2026-01-31T12:00:00Z, got {_yaml_name(value)}")
    return Moment(value if value.tzinfo else value.replace(tzinfo=UTC))


def _cidr(value: Any) -> Cidr:
    try:
        return Cidr(ipaddress.ip_network(_text(value)))
    except ValueError as error:
        raise ValueError("expected a network such as 10.0.0.0/8 (no address bits beyond the mask)") from error


def _zone(value: Any) -> Zone:
    text = _text(value)
    try:
        ZoneInfo(text)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        raise ValueError("expected a time zone such as UTC or Europe/Berlin") from None
    return Zone(text)


def _scope(value: Any) -> Scope:
    text = _text(value)
    if text not in SCOPES:
        raise ValueError(f"expected one of {', '.join(SCOPES)}")
    return Scope(text)

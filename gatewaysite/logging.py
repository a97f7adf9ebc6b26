"""One JSON line per log entry on stderr: no prompt, no secret, no control character that a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import structlog

#: Credentials as they look in texts: our keys, other vendors' keys, bearer tokens, keys in a URL's query.
_SECRETS = re.compile(
    r"\btb_(?:live|test)_(?P<id>[0-9A-Za-z]{12})_[0-9A-Za-z]+"
    r"|\bsk-[0-9A-Za-z_-]{8,}"
    r"|(?i:\b(?P<scheme>bearer|basic)\s+)[^\s\"',;]+"
    r"|(?i:(?P<name>[?&](?:api[_-]?key|key|access_token|token|secret|password)=))[^&\s\"']+"
)
_PLAIN = (str, int, float, bool, list, dict, type(None))
_QUIET = {
    "handlers": ["stderr"],
    "level": "WARNING",
    "propagate": False,
}


def masked(text: str) -> str:
    """`text` with credentials replaced by ***; the public id of our own keys stays."""
    return _SECRETS.sub(_mask, text)


def _mask(match: re.Match[str]) -> str:
    if match["id"]:
        return f"tb_{match['id']}_***"
    if match["scheme"]:
        return f"{match['scheme']} ***"
    return f"{match['name'] or ''}***"


def mask_secrets(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: no text of an entry carries a credential."""
    for name, value in entry.items():
        if isinstance(value, str):
            entry[name] = masked(value)
    return entry


def drop_objects(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: of what a log call brings along, plain values only (Django adds the whole request)."""
    for name in [name for name, value in entry.items() if not isinstance(value, _PLAIN) or name == "color_message"]:
        del entry[name]
    return entry


def _processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]


def configure_structlog() -> None:
    """Send structlog's own loggers through the standard library's, so that one handler writes all lines."""
    structlog.configure(
        processors=[*_processors(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(level: str) -> dict[str, Any]:
    """Django's LOGGING. json.dumps escapes every control character and every non-ASCII one."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _processors(),
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    drop_objects,
                    mask_secrets,
                    structlog.processors.JSONRenderer(ensure_ascii=True, default=str),
                ],
            },
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"level": level, "handlers": [], "propagate": True},
            # Every refused or unknown path would be a line: what was asked is in the audit log and the metrics.
            "django.request": {"level": "ERROR", "handlers": [], "propagate": True},
            "django.security.DisallowedHost": {"level": "CRITICAL", "handlers": [], "propagate": True},
            "django.server": _QUIET,
            "django.db.backends": _QUIET,
            "axes": _QUIET,
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            "asyncio": _QUIET,
            "httpx": _QUIET,
            "httpcore": _QUIET,
            "botocore": _QUIET,
            "fakeredis": _QUIET,
        },
    }

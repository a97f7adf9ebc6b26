"""How the admin looks: brand, colours, navigation. Settings of django-unfold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

Item = dict[str, Any]


def _asset(path: str) -> Callable[[HttpRequest], str]:
    return lambda request: static(path)


def _list_of(label: str, title: str, icon: str) -> Item:
    """An item for the list of a model ("app.model"), for those who may see it."""
    app, model = label.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": lambda request: _may_see(request, app, model),
    }


def _may_see(request: HttpRequest, app: str, model: str) -> bool:
    return any(request.user.has_perm(f"{app}.{verb}_{model}") for verb in ("view", "change"))


def environment(request: HttpRequest) -> list[str] | None:
    """The badge in the corner: nobody should take a demo for the real thing."""
    return ["Demo", "warning"] if settings.DEMO else None


NAVIGATION: list[dict[str, Any]] = [
    {"items": [{"title": "Overview", "icon": "monitoring", "link": reverse_lazy("admin:index")}]},
    {
        "title": "Callers",
        "separator": True,
        "items": [
            _list_of("tenants.tenant", "Tenants", "groups"),
            _list_of("tenants.apikey", "API keys", "key"),
            _list_of("tenants.tier", "Tiers", "layers"),
        ],
    },
    {
        "title": "Routing",
        "separator": True,
        "items": [
            _list_of("proxy.provider", "Providers", "cloud"),
            _list_of("proxy.modelalias", "Models", "alt_route"),
        ],
    },
    {
        "title": "Money",
        "separator": True,
        "items": [
            _list_of("billing.budget", "Budgets", "savings"),
            _list_of("billing.quota", "Quotas", "speed"),
            _list_of("billing.price", "Prices", "sell"),
            _list_of("billing.usagerollup", "Daily usage", "bar_chart"),
            _list_of("billing.ledgerentry", "Ledger", "receipt_long"),
        ],
    },
    {
        "title": "Webhooks",
        "separator": True,
        "items": [
            _list_of("webhooks.endpoint", "Endpoints", "webhook"),
            _list_of("webhooks.message", "Messages", "outbox"),
        ],
    },
    {
        "title": "Record",
        "separator": True,
        "items": [_list_of("audit.auditevent", "Audit events", "verified_user")],
    },
    {
        "title": "People",
        "separator": True,
        "items": [_list_of("auth.user", "Users", "person"), _list_of("auth.group", "Groups", "group")],
    },
]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tollbar",
    "SITE_HEADER": "Tollbar",
    "SITE_URL": None,
    "SITE_LOGO": {"light": _asset("tollbar/logo-light.svg"), "dark": _asset("tollbar/logo-dark.svg")},
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _asset("tollbar/icon.svg")}],
    "STYLES": [_asset("tollbar/admin.css")],
    "SCRIPTS": [_asset("tollbar/tabs.js")],
    "ENVIRONMENT": "gatewaysite.unfold.environment",
    "DASHBOARD_CALLBACK": "gatewaysite.dashboard.dashboard",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "6px",
    "SIDEBAR": {"show_search": True, "navigation": NAVIGATION},
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.604)",
            "100": "oklch(93.2% .032 255.585)",
            "200": "oklch(88.2% .059 254.128)",
            "300": "oklch(80.9% .105 251.813)",
            "400": "oklch(70.7% .165 254.624)",
            "500": "oklch(62.3% .214 259.815)",
            "600": "oklch(54.6% .245 262.881)",
            "700": "oklch(48.8% .243 264.376)",
            "800": "oklch(42.4% .199 265.638)",
            "900": "oklch(37.9% .146 265.522)",
            "950": "oklch(28.2% .091 267.935)",
        },
    },
}

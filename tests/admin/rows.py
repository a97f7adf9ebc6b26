"""Rows of every kind that the admin lists, and the secrets that none of its pages may show."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from audit.chains import chain_of
from audit.event_id import new_event_id
from audit.recorder import NewEvent, record
from billing.models import Budget, LedgerEntry, Price, Quota, UsageRollup
from proxy.models import ModelAlias, Provider, Target
from tenants.models import ApiKey, JwtIssuer, Tenant, Tier
from tenants.services import create_key, create_tenant, rotate_key
from webhooks.models import Attempt, Endpoint, Message

CREDENTIAL = "sk-provider-credential-0123456789-abWX"
JWT_SECRET = "jwt-shared-secret-0123456789-abcd-efYZ"
SIGNING_SECRET = "whsec_c2lnbmluZy1zZWNyZXQtMDEyMzQ1Njc4OWFiY2Q="
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
STATUSES = ("success", "refused", "failed")


@dataclass
class Rows:
    """`secrets` are all that were made; `keys` are live."""

    tenants: list[Tenant] = field(default_factory=list)
    tiers: list[Tier] = field(default_factory=list)
    keys: list[ApiKey] = field(default_factory=list)
    providers: list[Provider] = field(default_factory=list)
    models: list[ModelAlias] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    event_ids: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    def add(self, count: int) -> "Rows":
        """`count` more rows of each kind, each with the rows that belong to it."""
        for number in range(len(self.tenants), len(self.tenants) + count):
            self._callers(number)
            self._routing(number)
            self._money(number)
            self._webhooks(number)
            self.event_ids.append(add_event(self.tenants[-1].slug, f"req_{number}", STATUSES[number % 3]))
        return self

    def _callers(self, number: int) -> None:
        self.tiers.append(Tier.objects.create(name=f"tier-{number}", rpm=100))
        tenant = create_tenant(slug=f"tenant-{number}", name=f"Tenant {number}", actor="test", tier=self.tiers[-1])
        JwtIssuer.objects.create(
            tenant=tenant, issuer=f"https://id-{number}.example", audience="tollbar", secret=f"{JWT_SECRET}{number}"
        )
        issued = create_key(tenant=tenant, name=f"key-{number}", actor="test")
        rotated = rotate_key(key=issued.key, overlap=timedelta(hours=1), actor="test")
        self.tenants.append(tenant)
        self.keys.append(rotated.key)
        self.secrets += [issued.secret, rotated.secret, f"{JWT_SECRET}{number}", tenant.webhook_secret]

    def _routing(self, number: int) -> None:
        provider = Provider.objects.create(name=f"provider-{number}", kind="openai", api_key=f"{CREDENTIAL}{number}")
        alias = ModelAlias.objects.create(name=f"model-{number}")
        Target.objects.create(alias=alias, provider=provider, model="gpt-4o")
        self.providers.append(provider)
        self.models.append(alias)
        self.secrets.append(f"{CREDENTIAL}{number}")

    def _money(self, number: int) -> None:
        tenant, key, provider = self.tenants[-1], self.keys[-1], self.providers[-1]
        Price.objects.create(
            provider=provider.name, model="gpt-4o", input=Decimal("2.5"), output=10, effective_from=date(2026, 1, 1)
        )
        Budget.objects.create(tenant=tenant, usd=10)
        Budget.objects.create(tenant=tenant, key=key, scope="key", usd=1)
        Quota.objects.create(tenant=tenant, tokens=1000)
        Quota.objects.create(key=key, tokens=100)
        add_entry(tenant, key, f"req_{number}", provider=provider.name)
        UsageRollup.objects.create(
            day=NOON.date(), tenant=tenant, key_ref=key.pk, model="smart", provider=provider.name, requests=1
        )

    def _webhooks(self, number: int) -> None:
        endpoint = Endpoint.objects.create(
            tenant=self.tenants[-1], url=f"https://hooks.example/{number}", secret=f"{SIGNING_SECRET}{number}"
        )
        message = Message.objects.create(
            id=f"evt_{number}",
            tenant=endpoint.tenant,
            endpoint=endpoint,
            url=endpoint.url,
            type="request.completed",
            body=json.dumps({"event_id": f"evt_{number}"}).encode(),
        )
        Attempt.objects.create(message=message, number=1, http_status=500, error="HTTP 500", response="<b>no</b>")
        self.endpoints.append(endpoint)
        self.messages.append(message)
        self.secrets.append(endpoint.secret)


def add_event(tenant: str, request_id: str, status: str, *, at: datetime = NOON, **body: object) -> str:
    """The id of a new audit event of a request."""
    event_id = new_event_id(int(at.timestamp() * 1000))
    text = {
        "id": event_id,
        "time": at.isoformat(),
        "request_id": request_id,
        "tenant": tenant,
        "status": status,
        "http_status": {"success": 200, "refused": 402}.get(status, 502),
        "error_code": "" if status == "success" else "budget_exceeded",
        **body,
    }
    record([NewEvent(id=event_id, chain=chain_of(tenant), time=at, body=text)])
    return event_id


def add_entry(
    tenant: Tenant, key: ApiKey | None, request_id: str, *, time: datetime = NOON, **fields: object
) -> LedgerEntry:
    values = {
        "event_id": new_event_id(int(time.timestamp() * 1000)),
        "request_id": request_id,
        "time": time,
        "endpoint": "/v1/chat",
        "model_requested": "smart",
        "status": "success",
        "cost_nano": 105_000,
    }
    return LedgerEntry.objects.create(tenant=tenant, key=key, **(values | fields))

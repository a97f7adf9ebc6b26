"""What it costs: prices, budgets, quotas, the ledger and its rollups. Money is nano-USD in integers."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from billing.money import plain
from tenants.models import ApiKey, Tenant, Tier


class Period(models.TextChoices):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total"


class BudgetScope(models.TextChoices):
    TENANT = "tenant"
    KEY = "key"
    USER = "user"


def default_warnings() -> list[int]:
    return [80, 95]


def _rate(text: str, required: bool = False) -> models.DecimalField:  # type: ignore[type-arg]
    return models.DecimalField(
        max_digits=20,
        decimal_places=9,
        null=not required,
        blank=not required,
        validators=[MinValueValidator(Decimal(0))],
        help_text=text,
    )


class Price(models.Model):
    """USD per `per` tokens of a provider's model from a date on; the newest `effective_from` <= now wins.

    Without `cache_read` or `cache_write` those tokens cost the input rate; `cache_write_1h` defaults to `cache_write`.
    The provider is named, not linked: prices outlive providers and sit below them.
    """

    provider = models.CharField(max_length=63)
    model = models.CharField(max_length=200)
    input = _rate("USD for input tokens.", required=True)
    output = _rate("USD for output tokens, reasoning included.", required=True)
    cache_read = _rate("USD for input tokens read from the provider's cache.")
    cache_write = _rate("USD for input tokens written to the provider's cache.")
    cache_write_1h = _rate("USD for input tokens written to the provider's cache for an hour.")
    per = models.PositiveIntegerField(default=1_000_000)
    effective_from = models.DateField(default=timezone.localdate)

    class Meta:
        ordering = ["provider", "model", "-effective_from"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "model", "effective_from"], name="price_unique_from_date"),
            models.CheckConstraint(condition=Q(per__gt=0), name="price_per_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} from {self.effective_from}"


class Budget(models.Model):
    """Money per period for a tenant (scope tenant), each of its keys or one key (key), each user (user)."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="budgets")
    key = models.ForeignKey(ApiKey, null=True, blank=True, on_delete=models.CASCADE, related_name="budgets")
    scope = models.CharField(max_length=6, choices=BudgetScope.choices, default=BudgetScope.TENANT)
    usd = models.DecimalField(max_digits=16, decimal_places=9, validators=[MinValueValidator(Decimal(0))])
    per = models.CharField(max_length=6, choices=Period.choices, default=Period.MONTH)
    warn_at = models.JSONField(default=default_warnings, blank=True, help_text="Percentages.")
    timezone = models.CharField(max_length=40, default="UTC")

    class Meta:
        ordering = ["tenant_id", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(usd__lte=9_000_000), name="budget_exact_in_lua"),
            models.UniqueConstraint(
                fields=["tenant", "key", "scope", "per", "timezone"], name="budget_unique", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{plain(Decimal(self.usd))} USD per {self.per} ({self.scope})"


class Quota(models.Model):
    """Tokens per period for exactly one of tier (default of its tenants), tenant or key."""

    tier = models.ForeignKey(Tier, null=True, blank=True, on_delete=models.CASCADE, related_name="quotas")
    tenant = models.ForeignKey(Tenant, null=True, blank=True, on_delete=models.CASCADE, related_name="quotas")
    key = models.ForeignKey(ApiKey, null=True, blank=True, on_delete=models.CASCADE, related_name="quotas")
    tokens = models.BigIntegerField(validators=[MinValueValidator(1)])
    per = models.CharField(max_length=6, choices=Period.choices, default=Period.DAY)
    timezone = models.CharField(max_length=40, default="UTC")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=(
                    Q(tier__isnull=False, tenant__isnull=True, key__isnull=True)
                    | Q(tier__isnull=True, tenant__isnull=False, key__isnull=True)
                    | Q(tier__isnull=True, tenant__isnull=True, key__isnull=False)
                ),
                name="quota_of_exactly_one",
            ),
            models.CheckConstraint(condition=Q(tokens__gt=0, tokens__lt=2**53), name="quota_exact_in_lua"),
            models.UniqueConstraint(
                fields=["tier", "tenant", "key", "per", "timezone"], name="quota_unique", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tokens} tokens per {self.per}"


class TokenCounts(models.Model):
    """Token classes (input includes cache reads and writes)."""

    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class LedgerEntry(TokenCounts):
    """One charged request, written once by the drain. The truth that counters are rebuilt from."""

    event_id = models.CharField(max_length=36, unique=True)
    request_id = models.CharField(max_length=64, db_index=True)
    time = models.DateTimeField()  # when it was admitted: decides the period it is charged to
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.PROTECT, related_name="+")
    user = models.CharField(max_length=512, blank=True)
    endpoint = models.CharField(max_length=40)
    model_requested = models.CharField(max_length=200)
    model_served = models.CharField(max_length=200, blank=True)
    provider = models.CharField(max_length=63, blank=True)
    status = models.CharField(max_length=16)
    usage_source = models.CharField(max_length=10, blank=True)
    cost_nano = models.BigIntegerField(null=True)  # nano-USD; null: the model had no price
    price_id = models.BigIntegerField(null=True)
    fallback_used = models.BooleanField(default=False)
    cached = models.BooleanField(default=False)
    latency_ms = models.IntegerField(default=0)

    class Meta:
        verbose_name_plural = "ledger entries"
        indexes = [
            models.Index(fields=["tenant", "time"], name="ledger_tenant_time"),
            models.Index(fields=["key", "time"], name="ledger_key_time"),
        ]
        constraints = [models.CheckConstraint(condition=Q(cost_nano__gte=0), name="ledger_cost_not_negative")]

    def __str__(self) -> str:
        return self.event_id


class UsageRollup(TokenCounts):
    """Sums of one UTC day by tenant, key, model and provider, raised in the transaction of their ledger entries."""

    day = models.DateField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    key_ref = models.CharField(max_length=32, blank=True)  # key id; empty for token-authenticated calls
    model = models.CharField(max_length=200)  # as requested
    provider = models.CharField(max_length=63, blank=True)
    requests = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    fallbacks = models.BigIntegerField(default=0)
    cache_hits = models.BigIntegerField(default=0)
    unpriced = models.BigIntegerField(default=0)
    cost_nano = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = verbose_name_plural = "daily usage"
        constraints = [
            models.UniqueConstraint(fields=["day", "tenant", "key_ref", "model", "provider"], name="rollup_unique")
        ]
        indexes = [models.Index(fields=["tenant", "day"], name="rollup_tenant_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.model}"

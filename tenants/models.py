"""Who may call: tiers, tenants, their keys and token issuers, and the version of the configuration."""

from __future__ import annotations

from django.core.validators import RegexValidator, URLValidator
from django.db import models
from django.utils import timezone

from tenants.encryption import EncryptedTextField
from tenants.limit_fields import RateLimits
from tenants.shards import SHARDS, shard_of

slug_validator = RegexValidator(r"^[a-z0-9][a-z0-9_-]{0,62}$", "Use lower-case letters, digits, - and _.")


def any_model() -> list[str]:
    return ["*"]


def inference_only() -> list[str]:
    return ["inference"]


class Priority(models.TextChoices):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class TenantState(models.TextChoices):
    ACTIVE = "active"
    SUSPENDED = "suspended"


class Unpriced(models.TextChoices):
    REFUSE = "refuse"
    ALLOW = "allow"


class Tier(RateLimits):
    """Default limits for tenants; a tenant's own values win."""

    name = models.CharField(max_length=63, unique=True, validators=[slug_validator])

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Tenant(RateLimits):
    """A team or customer: the unit of limits, budgets, routing rights and reports."""

    slug = models.CharField(max_length=63, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=TenantState.choices, default=TenantState.ACTIVE)
    tier = models.ForeignKey(Tier, null=True, blank=True, on_delete=models.PROTECT, related_name="tenants")
    priority = models.CharField(max_length=6, choices=Priority.choices, default=Priority.NORMAL)
    allowed_models = models.JSONField(default=any_model, help_text="Globs of model names this tenant may call.")
    unpriced = models.CharField(
        max_length=6,
        choices=Unpriced.choices,
        default=Unpriced.REFUSE,
        help_text="What happens to a model without a price.",
    )
    webhook_secret = EncryptedTextField(purpose="webhook secret", blank=True, editable=False)
    shard = models.PositiveSmallIntegerField(editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def save(self, *args: object, **kwargs: object) -> None:
        if self._state.adding:
            self.shard = shard_of(self.slug)
        super().save(*args, **kwargs)  # type: ignore[arg-type]


class JwtIssuer(models.Model):
    """How a tenant's JWTs are checked: a shared secret (HS256) or a key set."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="jwt")
    issuer = models.CharField(max_length=300, unique=True)
    audience = models.CharField(max_length=300)
    jwks_url = models.CharField(max_length=500, blank=True, validators=[URLValidator(["https", "http"])])
    secret = EncryptedTextField(purpose="jwt secret", blank=True)
    algorithms = models.JSONField(
        default=list, help_text="Accepted algorithms; empty: HS256 with a secret, else RS256."
    )

    def __str__(self) -> str:
        return self.issuer


class ApiKey(RateLimits):
    """A key of a tenant. The id is public; the secrets live as digests in `ApiKeySecret`."""

    id = models.CharField(max_length=32, primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="keys")
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=inference_only)
    allowed_models = models.JSONField(default=any_model, help_text="Globs of model names this key may call.")
    cidrs = models.JSONField(default=list, blank=True, help_text="Networks it may be used from; empty: any.")
    may_speak_for_users = models.BooleanField(default=True, help_text="Whether the `user` of a request counts.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    changed_in = models.BigIntegerField(default=0, editable=False, db_index=True)  # ConfigVersion of its last change

    class Meta:
        verbose_name = "API key"
        ordering = ["tenant_id", "name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="apikey_name_unique_in_tenant")]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class ApiKeySecret(models.Model):
    """One secret of a key, as HMAC-SHA256 under KEY_PEPPER (hex). More than one lives only during a rotation."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="secrets")
    digest = models.CharField(max_length=64, unique=True)
    last4 = models.CharField(max_length=4)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="End of the overlap; empty: the current secret.")

    def __str__(self) -> str:
        return f"…{self.last4}"


class ConfigVersion(models.Model):
    """One row. Rises with every change of configuration, in the change's own transaction; workers poll it."""

    version = models.BigIntegerField(default=0)
    file_digest = models.CharField(max_length=64, blank=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="configversion_one_row")]

    def __str__(self) -> str:
        return str(self.version)


__all__ = [
    "SHARDS",
    "ApiKey",
    "ApiKeySecret",
    "ConfigVersion",
    "JwtIssuer",
    "Priority",
    "Tenant",
    "TenantState",
    "Tier",
    "Unpriced",
]

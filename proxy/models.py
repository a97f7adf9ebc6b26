"""Where calls go: providers with their credentials, model aliases and their ordered targets."""

from __future__ import annotations

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from proxy.providers.base import adapters
from tenants.encryption import EncryptedTextField

name_validator = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$", "Use letters, digits and . _ : @ / -.")


def provider_kinds() -> list[tuple[str, str]]:
    """A kind for each adapter; a new one needs no migration."""
    return [(kind, kind.replace("_", " ").title()) for kind in sorted(adapters())]


class Strategy(models.TextChoices):
    ORDERED = "ordered"
    WEIGHTED = "weighted"
    CHEAPEST = "cheapest"
    FASTEST = "fastest"


def _seconds(default: float, text: str) -> models.FloatField:  # type: ignore[type-arg]
    return models.FloatField(default=default, validators=[MinValueValidator(0.001)], help_text=text)


class Provider(models.Model):
    """One account at one provider. Times in seconds."""

    name = models.CharField(max_length=63, unique=True, validators=[name_validator])
    kind = models.CharField(max_length=20, choices=provider_kinds)
    base_url = models.CharField(max_length=500, blank=True, help_text="Empty: the kind's default.")
    api_key = EncryptedTextField(purpose="provider credential", blank=True)
    region = models.CharField(max_length=40, blank=True)
    api_version = models.CharField(max_length=40, blank=True)
    headers = models.JSONField(default=dict, blank=True, help_text="Static extra headers.")
    enabled = models.BooleanField(default=True)
    timeout_connect = _seconds(5, "To connect.")
    timeout_first_byte = _seconds(60, "Until the answer begins.")
    timeout_idle = _seconds(30, "Between two pieces of a stream.")
    timeout_total = _seconds(600, "For the whole answer.")
    max_attempts = models.PositiveSmallIntegerField(default=3, validators=[MinValueValidator(1)])
    backoff = models.FloatField(default=0.5, validators=[MinValueValidator(0)])
    max_backoff = models.FloatField(default=10, validators=[MinValueValidator(0)])
    breaker_failures = models.PositiveIntegerField(default=5, validators=[MinValueValidator(1)])
    breaker_window = _seconds(60, "In which failures count.")
    breaker_open_for = _seconds(30, "Until a probe is let through.")
    breaker_close_after = models.PositiveSmallIntegerField(default=2, validators=[MinValueValidator(1)])
    rpm = models.BigIntegerField("RPM", null=True, blank=True, validators=[MinValueValidator(1)])
    tpm = models.BigIntegerField("TPM", null=True, blank=True, validators=[MinValueValidator(1)])
    concurrency = models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ModelAlias(models.Model):
    """What callers may name in "model"."""

    name = models.CharField(max_length=200, unique=True, validators=[name_validator])
    strategy = models.CharField(max_length=10, choices=Strategy.choices, default=Strategy.ORDERED)
    max_output_tokens = models.PositiveIntegerField(
        default=32000,
        validators=[MinValueValidator(1)],
        help_text="The most a caller may ask for, and the cap when none is named.",
    )
    cache_exact_ttl = models.PositiveIntegerField(default=0, help_text="Seconds; 0: off.")
    cache_semantic_ttl = models.PositiveIntegerField(default=0, help_text="Seconds; 0: off.")
    cache_semantic_threshold = models.FloatField(default=0.95)

    class Meta:
        ordering = ["name"]
        verbose_name = "model"

    def __str__(self) -> str:
        return self.name


class Target(models.Model):
    """One place an alias may be served from; `position` orders them."""

    alias = models.ForeignKey(ModelAlias, on_delete=models.CASCADE, related_name="targets")
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="targets")
    model = models.CharField(max_length=200)
    weight = models.PositiveIntegerField(default=1)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["alias_id", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["alias", "provider", "model"], name="target_unique_in_alias"),
        ]

    def __str__(self) -> str:
        return f"{self.provider_id}/{self.model}"

"""The rate limits that a tier, a tenant and a key carry as columns."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

#: Above this a bucket's counter would leave the integers that Lua holds exactly (limit x 60,000 < 2^53).
MAX_PER_MINUTE = 150_000_000_000


class Algorithm(models.TextChoices):
    TOKEN_BUCKET = "token_bucket"
    SLIDING_WINDOW = "sliding_window"


def _limit(name: str, text: str) -> models.BigIntegerField:  # type: ignore[type-arg]
    return models.BigIntegerField(
        name,
        null=True,
        blank=True,
        help_text=text,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_PER_MINUTE)],
    )


class RateLimits(models.Model):
    """Empty means: not limited here (a tier or tenant above may still limit)."""

    rpm = _limit("RPM", "Requests per minute.")
    tpm = _limit("TPM", "Tokens per minute.")
    concurrency = _limit("concurrency", "Requests in flight at once.")
    user_rpm = _limit("user RPM", "Requests per minute of each user.")
    user_tpm = _limit("user TPM", "Tokens per minute of each user.")
    algorithm = models.CharField(max_length=20, choices=Algorithm.choices, default=Algorithm.TOKEN_BUCKET)

    class Meta:
        abstract = True

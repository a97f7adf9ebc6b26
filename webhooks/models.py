"""Who is told: endpoints, the messages due to them, and every attempt to deliver one."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from tenants.encryption import EncryptedTextField
from tenants.models import Tenant


def every_event() -> list[str]:
    return ["*"]


class MessageState(models.TextChoices):
    PENDING = "pending"
    DELIVERED = "delivered"
    EXHAUSTED = "exhausted"
    CANCELLED = "cancelled"


class Endpoint(models.Model):
    """A receiver of a tenant. Event types are globs."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=1000)
    events = models.JSONField(default=every_event)
    secret = EncryptedTextField(purpose="webhook secret", blank=True)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=100, blank=True, editable=False)
    sequence = models.BigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["tenant_id", "id"]
        constraints = [models.UniqueConstraint(fields=["tenant", "url"], name="endpoint_url_unique_in_tenant")]

    def __str__(self) -> str:
        return self.url.partition("?")[0]  # the query may carry a token


class Message(models.Model):
    """One event for one receiver: the bytes signed are the bytes stored and sent. No endpoint: a request's own URL."""

    id = models.CharField(max_length=40, primary_key=True)  # evt_…
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(Endpoint, null=True, on_delete=models.PROTECT, related_name="messages")
    url = models.CharField(max_length=1000)
    type = models.CharField(max_length=40)
    request_id = models.CharField(max_length=64, blank=True)
    body = models.BinaryField()
    state = models.CharField(max_length=10, choices=MessageState.choices, default=MessageState.PENDING)
    attempts_made = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="message_due", condition=models.Q(state="pending")),
            models.Index(fields=["endpoint", "-created_at"], name="message_endpoint_newest"),
            models.Index(fields=["-created_at"], name="message_newest"),
        ]

    def __str__(self) -> str:
        return self.id


class Attempt(models.Model):
    """One try to deliver a message."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField(default=timezone.now)
    http_status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    response = models.TextField(blank=True)  # at most 1 KiB
    duration_ms = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["message_id", "number"]
        constraints = [models.UniqueConstraint(fields=["message", "number"], name="attempt_number_unique")]

    def __str__(self) -> str:
        return f"{self.message_id} #{self.number}"

"""The record: append-only chains of audit events."""

from __future__ import annotations

from django.db import models


class ChainHead(models.Model):
    """The last link of a chain: the only audit row that changes, and recomputable from the events."""

    chain = models.PositiveSmallIntegerField(primary_key=True)
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.chain}:{self.seq}"


class AuditEvent(models.Model):
    """One event. `body` is its canonical JSON text, the very bytes that were hashed; the columns are for searching."""

    id = models.CharField(max_length=36, primary_key=True)  # UUIDv7
    chain = models.PositiveSmallIntegerField()
    seq = models.BigIntegerField()
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    time = models.DateTimeField()
    kind = models.CharField(max_length=40, default="request")  # request, or a control-plane event type
    tenant = models.CharField(max_length=63, blank=True)
    key_id = models.CharField(max_length=32, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=16, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=40, blank=True)
    body = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="auditevent_seq_unique_in_chain")]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="auditevent_tenant_newest"),
            models.Index(fields=["tenant", "request_id"], name="auditevent_request"),
            models.Index(fields=["-time"], name="auditevent_time"),
        ]

    def __str__(self) -> str:
        return self.id

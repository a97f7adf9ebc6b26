"""What a key may be used for."""

from __future__ import annotations

INFERENCE = "inference"
AUDIT_READ = "audit:read"
ADMIN = "admin"
SCOPES = (INFERENCE, AUDIT_READ, ADMIN)

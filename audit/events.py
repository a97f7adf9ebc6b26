"""The event catalogue: everything that is ever recorded. Webhooks are derived from it, so nothing is told that was not
recorded first.

ADD AN EVENT = ADD ONE LINE here.
"""

from __future__ import annotations

REQUEST = "request"  # one per request that passed authentication; see docs/audit.md for its fields

TENANT_CREATED = "tenant.created"
TENANT_UPDATED = "tenant.updated"
KEY_CREATED = "key.created"
KEY_UPDATED = "key.updated"
KEY_ROTATED = "key.rotated"
KEY_REVOKED = "key.revoked"
CONFIG_APPLIED = "config.applied"
OBJECT_CREATED = "object.created"  # through the admin; `subject` says what
OBJECT_UPDATED = "object.updated"
OBJECT_DELETED = "object.deleted"

#: Every kind there is: the recorder takes no other.
KINDS = frozenset(value for name, value in globals().items() if name.isupper())

"""What applying a file changes: rows compared with what the file wants, and each difference remembered for people."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Model

from tenants.config_version import bump_config_version

Row = TypeVar("Row", bound=Model)
Values = dict[str, Any]
#: Columns that are shown as "set" or "not set" only.
SECRET_FIELDS = ("api_key", "secret", "webhook_secret")
HIDDEN_FIELDS = (*SECRET_FIELDS, "headers")
#: Columns that say whose a row is, which its subject says already.
OWNER_FIELDS = ("tenant_id", "key_id", "alias_id", "provider_id")
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Change:
    """One row made, changed or removed. `subject` is a path such as `tenants/acme/keys/app`; no secret is in it."""

    action: str  # create | update | remove
    subject: str
    tenant: str = ""
    before: Values | None = None
    after: Values | None = None

    def line(self) -> str:
        sign = {"create": "+", "update": "~", "remove": "-"}[self.action]
        if self.action != "update" or not self.before or not self.after:
            return f"{sign} {self.subject}"
        parts = [f"{name}: {self.before[name]} -> {value}" for name, value in self.after.items()]
        return f"{sign} {self.subject}  {', '.join(parts)}"


@dataclass
class ChangeLog:
    """Everything one application of a file does, and the version that its changes make together."""

    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version: int | None = None

    def in_new_version(self) -> int:
        """The version of this application: raised once, with the first change."""
        if self.version is None:
            self.version = bump_config_version()
        return self.version

    def add(self, change: Change) -> None:
        self.in_new_version()
        self.changes.append(change)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A row as the file wants it."""

    subject: str
    values: Values
    only_new: Values = field(default_factory=dict)  # set when the row is made, never compared
    tenant: str = ""


def sync_rows(
    log: ChangeLog, model: type[Row], existing: Mapping[Any, Row], wanted: Mapping[Any, Wanted]
) -> tuple[list[Row], list[Row]]:
    """Make and change rows of `model` until `existing` is as `wanted`. Gives the rows made and the rows changed."""
    created, updated = [], []
    for identity, want in wanted.items():
        row = existing.get(identity)
        if row is None:
            created.append(model(**want.values, **want.only_new))
            log.add(Change(action="create", subject=want.subject, tenant=want.tenant, after=shown(want.values)))
            continue
        before = {name: getattr(row, name) for name, value in want.values.items() if getattr(row, name) != value}
        if not before:
            continue
        after = {name: want.values[name] for name in before}
        log.add(
            Change(
                action="update",
                subject=want.subject,
                tenant=want.tenant,
                before=shown(before),
                after={
                    name: f"{value} (changed)" if name in HIDDEN_FIELDS else value
                    for name, value in shown(after).items()
                },
            )
        )
        for name, value in after.items():
            setattr(row, name, value)
        row.save(update_fields=list(after))
        updated.append(row)
    made = model._default_manager.bulk_create(created, batch_size=BATCH)
    return made, updated


def remove_rows(log: ChangeLog, rows: Iterable[tuple[Row, str, str]]) -> list[Row]:
    """Delete (row, subject, tenant slug) each."""
    removed = list(rows)
    for _, subject, tenant in removed:
        log.add(Change(action="remove", subject=subject, tenant=tenant))
    if removed:
        model = type(removed[0][0])
        model._default_manager.filter(pk__in=[row.pk for row, _, _ in removed]).delete()
    return [row for row, _, _ in removed]


def shown(values: Mapping[str, Any]) -> Values:
    """`values` as people and the audit log may see them."""
    return {name: _shown_value(name, value) for name, value in values.items() if name not in OWNER_FIELDS}


def _shown_value(name: str, value: Any) -> Any:
    if name in SECRET_FIELDS:
        return "set" if value else "not set"
    if name == "headers":
        return dict.fromkeys(value, "set")  # a header may carry a credential
    if name == "url":
        return str(value).partition("?")[0]  # and so may a receiver's query
    if value is None or isinstance(value, bool | int | float | list | dict):
        return value
    return str(value)


def missing(existing: Mapping[Hashable, Row], wanted: Collection[Any]) -> list[tuple[Any, Row]]:
    """Rows that the file does not name."""
    return [(identity, row) for identity, row in existing.items() if identity not in wanted]

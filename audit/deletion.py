"""What keeps a row from being deleted, found with one indexed EXISTS for each kind of row.

Django's own collector reads every protected row to list it; on the ledger that is the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import CASCADE, PROTECT, RESTRICT, Model

#: Relations followed through rows that would be deleted along.
MAX_DEPTH = 3


def protecting_kinds(row: Model) -> list[str]:
    """Plural names of the kinds of rows that refer to `row`, or to what would be deleted with it, and must stay."""
    found = []
    for model, path in _protectors(type(row), "", MAX_DEPTH):
        name = str(model._meta.verbose_name_plural)
        if name not in found and model._base_manager.filter(**{path: row.pk}).exists():
            found.append(name)
    return found


def _protectors(model: type[Model], path: str, depth: int) -> Iterator[tuple[type[Model], str]]:
    for relation in model._meta.get_fields(include_hidden=True):
        if not relation.auto_created or relation.concrete or not (relation.one_to_many or relation.one_to_one):
            continue
        related: type[Model] = relation.related_model  # type: ignore[assignment]
        lookup = f"{relation.field.name}__{path}" if path else relation.field.name  # type: ignore[union-attr]
        on_delete = relation.on_delete  # type: ignore[union-attr]
        if on_delete in (PROTECT, RESTRICT):
            yield related, lookup
        elif on_delete is CASCADE and depth > 0:
            yield from _protectors(related, lookup, depth - 1)

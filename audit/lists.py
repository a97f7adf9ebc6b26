"""What all admin classes share: lists with only their own filters and one count at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin.options import IncorrectLookupParameters, ShowFacets
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.views import ChangeList

#: What the filters of Django and unfold put after a field's name.
FILTER_SUFFIXES = ("", "__exact", "__id__exact", "__isnull")
#: Rows of a table that only grows are counted up to here.
MAX_COUNTED = 5_000


class CappedPaginator(Paginator[Any]):
    """Counts to MAX_COUNTED and stops; later pages are reached by narrowing the list."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[:MAX_COUNTED].count()


class ByRelatedId(AutocompleteSelectFilter):
    """Rows of one other row, chosen by typing a part of its name."""

    def __init__(
        self, field: Any, request: HttpRequest, params: dict[str, list[str]], *rest: Any, **named: Any
    ) -> None:
        for name, values in params.items():
            if name.endswith("__id__exact") and any(value and not is_row_id(value) for value in values):
                raise IncorrectLookupParameters(name)
        super().__init__(field, request, params, *rest, **named)


def is_row_id(text: str) -> bool:
    """Whether a text can be the number of a row: what is longer than 64 bits, the database refuses to look for."""
    return text.isascii() and text.isdecimal() and len(text) < 19


class CountedOnce(ChangeList):
    """The number of rows in all is not asked for: without a filter it is the number of results."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.query and not self.get_filters_params():
            self.full_result_count = self.result_count


class BoundedAdmin:
    """A list takes the lookups of its own filters, so that a query string is no way to ask for anything else."""

    list_filter: ClassVar[Sequence[Any]] = ()
    list_per_page = 50
    list_filter_submit = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CountedOnce

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """No row has a NUL in its id, and PostgreSQL does not look for one."""
        return None if "\x00" in object_id else super().get_object(request, object_id, from_field)  # type: ignore[misc]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        name = lookup.partition("__")[0]
        columns = {field.name for field in self.model._meta.get_fields()}  # type: ignore[attr-defined]
        if name not in columns:
            return bool(super().lookup_allowed(lookup, value, request))  # type: ignore[misc]
        return any(_takes(item, lookup) for item in self.get_list_filter(request))  # type: ignore[attr-defined]


def _takes(list_filter: Any, lookup: str) -> bool:
    if isinstance(list_filter, str | tuple | list):
        path: str = list_filter if isinstance(list_filter, str) else list_filter[0]
        return lookup.removeprefix(path) in FILTER_SUFFIXES
    return bool(lookup == list_filter.parameter_name)

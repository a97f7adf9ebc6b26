"""What all lists of the admin share: only their own filters, one count at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin.options import ShowFacets
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.views import ChangeList

#: Rows of a table that only grows are counted up to here.
MAX_COUNTED = 5_000


class CappedPaginator(Paginator[Any]):
    """Counts to MAX_COUNTED and stops; later pages are reached by narrowing the list."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[:MAX_COUNTED].count()


class CountedOnce(ChangeList):
    """The number of rows in all is not asked for: without a filter it is the number of results."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.query and not self.get_filters_params():
            self.full_result_count = self.result_count


class BoundedList:
    """A list takes the lookups of its own filters, so that a query string is no way to ask for anything else."""

    list_filter: ClassVar[Sequence[Any]] = ()
    list_per_page = 50
    list_filter_submit = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CountedOnce

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        name = lookup.partition("__")[0]
        columns = {field.name for field in self.model._meta.get_fields()}  # type: ignore[attr-defined]
        if name not in columns:
            return bool(super().lookup_allowed(lookup, value, request))  # type: ignore[misc]
        return any(_takes(item, lookup) for item in self.get_list_filter(request))  # type: ignore[attr-defined]


def _takes(list_filter: Any, lookup: str) -> bool:
    if isinstance(list_filter, str | tuple | list):
        path: str = list_filter if isinstance(list_filter, str) else list_filter[0]
        return lookup == path or lookup.startswith(f"{path}__")
    return bool(lookup == list_filter.parameter_name)

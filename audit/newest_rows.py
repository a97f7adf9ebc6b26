"""Lists of tables that only grow: read-only, newest first, and bounded however many rows there are.

A list shows the newest rows (of one tenant, until a moment), WINDOW_ROWS at most, and filters look no further; what is
older is found by its id, or with an earlier `until`. So no page counts or scans the table.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar

from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import DateTimeField, Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import TextFilter
from unfold.views import ChangeList

from audit.lists import BoundedAdmin, CappedPaginator, CountedOnce

Row = TypeVar("Row", bound=Model)

#: How far back a list and its filters look.
WINDOW_ROWS = 50_000


class ReadOnlyAdmin(BoundedAdmin, ModelAdmin, Generic[Row]):
    """Rows that people look at and nobody changes here."""

    actions = None
    list_max_show_all = 0
    paginator = CappedPaginator
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UntilFilter(TextFilter):
    """The newest rows before a moment. What it does is done by NewestRowsAdmin, before the window is cut."""

    title = "latest time (UTC, such as 2026-01-31 12:00)"
    parameter_name = "until"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class NewestRows(CountedOnce):
    """Narrows the list to its window, unless an id is searched for."""

    root_queryset: QuerySet[Any]

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        if not self.query:
            self.root_queryset = self.model_admin.newest(self.root_queryset, self.params)
        return super().get_queryset(request, exclude_parameters).defer(*self.model_admin.not_listed)


class NewestRowsAdmin(ReadOnlyAdmin[Row]):
    """`newest_by` is an indexed column that rises with time: a UUIDv7 or a moment. `newest_by_of_tenant` is the one
    whose index begins with the tenant, `tenant_parameter` the filter that chooses one (empty: none has)."""

    newest_by: ClassVar[str] = "id"
    newest_by_of_tenant: ClassVar[str] = "id"
    tenant_parameter: ClassVar[str] = "tenant"
    tenant_lookup: ClassVar[str] = "tenant"
    #: Long columns that a list does not read.
    not_listed: ClassVar[tuple[str, ...]] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return NewestRows

    def get_ordering(self, request: HttpRequest) -> list[str]:
        return [f"-{self._column(request.GET)}"]

    def newest(self, rows: QuerySet[Any], parameters: Any) -> QuerySet[Any]:
        """The newest WINDOW_ROWS rows, of the chosen tenant and until the chosen moment."""
        column = self._column(parameters)
        if tenant := filter_text(parameters.get(self.tenant_parameter)):
            rows = rows.filter(**{self.tenant_lookup: self.tenant_value(tenant)})
        if until := filter_text(parameters.get("until")):
            moment = _moment(until)
            is_time = isinstance(self.model._meta.get_field(column), DateTimeField)
            rows = rows.filter(**{f"{column}__lt": moment if is_time else first_id_at(moment)})
        oldest = rows.order_by(f"-{column}").values_list(column, flat=True)[WINDOW_ROWS - 1 : WINDOW_ROWS]
        bound = next(iter(oldest), None)
        return rows if bound is None else rows.filter(**{f"{column}__gte": bound})

    def tenant_value(self, text: str) -> Any:
        return text

    def _column(self, parameters: Any) -> str:
        return self.newest_by_of_tenant if filter_text(parameters.get(self.tenant_parameter)) else self.newest_by


def first_id_at(moment: datetime) -> str:
    """A text that sorts before every UUIDv7 made at `moment` or later, and after all made earlier."""
    digits = f"{int(moment.timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}"


def filter_text(value: Any) -> str:
    """What a person wrote into a filter; the database takes no NUL."""
    return str(value or "").replace("\x00", "").strip()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if moment.timestamp() < 0:
            raise ValueError("before 1970")
    except (ValueError, OverflowError) as error:
        raise IncorrectLookupParameters from error
    return moment

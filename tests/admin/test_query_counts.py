"""A list costs the same number of queries whether it shows three rows or thirty, and that number is frozen here.

A higher number after a change is an N+1 or a look somewhere new: explain it, then write it down.
"""

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from billing.models import Budget, LedgerEntry, Price, Quota, UsageRollup
from proxy.models import ModelAlias, Provider
from tenants.models import ApiKey, Tenant, Tier
from tests.admin.pages import all_admins, list_url
from tests.admin.rows import Rows
from webhooks.models import Endpoint, Message

#: Two of each are the session and the person.
QUERIES = {
    ApiKey: 5,
    AuditEvent: 5,
    Budget: 4,
    Endpoint: 4,
    Group: 4,
    LedgerEntry: 5,
    Message: 5,
    ModelAlias: 4,
    Price: 4,
    Provider: 4,
    Quota: 4,
    Tenant: 5,
    Tier: 4,
    UsageRollup: 4,
    User: 4,
}


def queries_of(client, model):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        response = client.get(list_url(model))
    assert response.status_code == 200
    return response.context["cl"].result_list, [query["sql"] for query in captured]


def test_every_list_is_counted():
    assert {model for model, _ in all_admins()} == set(QUERIES)


@pytest.mark.parametrize("model", QUERIES, ids=lambda model: model._meta.label)
def test_a_list_costs_the_same_with_three_rows_and_with_thirty(root, db, model):
    rows = Rows().add(3)
    few, queries_for_few = queries_of(root, model)
    rows.add(27)
    many, queries_for_many = queries_of(root, model)
    if model not in (User, Group):
        assert len(few) >= 3
        assert len(many) >= 30
    assert len(queries_for_many) == len(queries_for_few), "\n".join(queries_for_many)
    assert len(queries_for_many) == QUERIES[model], "\n".join(queries_for_many)

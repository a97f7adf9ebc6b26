"""No page shows a stored secret: not to those who may change it, not to those who may look, not after a mistake."""

import pytest
from django.contrib.admin.models import LogEntry

from audit.models import AuditEvent
from proxy.models import Provider
from tests.admin.pages import all_admins, form_of, list_url, page_url
from webhooks.models import Endpoint


def leaks(response, rows):
    text = response.content.decode()
    return [secret for secret in rows.secrets if secret in text]


@pytest.mark.parametrize("who", ["root", "viewer"])
def test_no_page_shows_a_secret(request, rows, who):
    client = request.getfixturevalue(who)
    seen = 0
    for model, _ in all_admins():
        row = model._default_manager.first()
        urls = [list_url(model)]
        if row is not None:
            urls += [page_url(row), page_url(row, "history"), page_url(row, "delete")]
        for url in urls:
            response = client.get(url)
            assert leaks(response, rows) == [], url
            seen += response.status_code == 200
    assert seen > 30


def test_somebody_who_may_add_but_not_change_sees_none_either(staff, rows):
    """Django displays the fields of rows that one may not change as they are."""
    adder = staff("add_provider", "view_provider", "change_tenant", "add_jwtissuer", "view_jwtissuer", "view_endpoint")
    for row in (rows.providers[0], rows.tenants[0], rows.endpoints[0]):
        response = adder.get(page_url(row))
        assert response.status_code == 200
        assert leaks(response, rows) == []
        assert "set, ends in …" in response.content.decode()


def test_the_end_of_a_long_secret_is_shown(root, viewer, rows):
    for client in (root, viewer):
        assert f"nds in …{rows.providers[0].api_key[-4:]}" in client.get(page_url(rows.providers[0])).content.decode()
    short = Provider.objects.create(name="short", kind="openai", api_key="tiny-secret")
    assert "ends in" not in viewer.get(page_url(short)).content.decode()


def test_a_secret_that_was_typed_does_not_come_back_with_an_error(root, rows):
    for row, form_id, changes, typed in (
        (rows.providers[0], "provider_form", {"name": "", "api_key": "sk-typed-1234567890"}, "sk-typed-1234567890"),
        (rows.endpoints[0], "endpoint_form", {"url": "", "secret": "whsec_typed-123456"}, "whsec_typed-123456"),
        (rows.tenants[0], "tenant_form", {"name": "", "jwt-0-secret": "jwt-typed-123456789"}, "jwt-typed-123456789"),
    ):
        form = form_of(root.get(page_url(row)), form_id)
        response = root.post(page_url(row), form | changes)
        assert response.status_code == 200
        assert "This field is required" in response.content.decode()
        assert typed not in response.content.decode()


def test_a_new_secret_is_in_no_history_message_or_event(root, rows):
    new = "sk-brand-new-credential-0123456789"
    provider = rows.providers[0]
    form = form_of(root.get(page_url(provider)), "provider_form")
    response = root.post(page_url(provider), form | {"api_key": new}, follow=True)
    assert new not in response.content.decode()
    assert all(new not in f"{entry.object_repr}{entry.change_message}" for entry in LogEntry.objects.all())
    assert not AuditEvent.objects.filter(body__contains=new).exists()
    assert not Provider.objects.filter(name__contains=new).exists()


def test_the_query_of_a_receiver_is_for_those_who_may_change_it(root, viewer, rows):
    endpoint = Endpoint.objects.create(tenant=rows.tenants[0], url="https://hooks.example/in?token=QUERYTOKEN")
    assert "QUERYTOKEN" in root.get(page_url(endpoint)).content.decode()
    for client, url in (
        (viewer, page_url(endpoint)),
        (viewer, list_url(Endpoint)),
        (root, list_url(Endpoint)),
        (root, page_url(endpoint, "history")),
        (root, page_url(endpoint, "delete")),
    ):
        assert "QUERYTOKEN" not in client.get(url).content.decode(), url
    form = form_of(root.get(page_url(endpoint)), "endpoint_form")
    saved = root.post(page_url(endpoint), form | {"events": "request.*"}, follow=True)
    assert "QUERYTOKEN" not in saved.content.decode()
    event = AuditEvent.objects.get(kind="object.updated", body__contains=f"endpoint:{endpoint.pk}")
    assert "QUERYTOKEN" not in event.body
    assert '"url":"https://hooks.example/in"' in event.body

"""Models with their ordered targets, prices, tenants and webhook receivers: what can be entered and what cannot."""

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from billing.models import Price
from proxy.models import ModelAlias, Target
from tenants.models import ApiKey, Tenant
from tests.admin.conftest import texts_of
from tests.admin.pages import add_url, form_of, page_url
from webhooks.models import Endpoint


def test_targets_are_kept_in_the_order_of_the_page(root, rows):
    form = form_of(root.get(add_url(ModelAlias)), "modelalias_form") | {"name": "smart", "targets-TOTAL_FORMS": "2"}
    for number, (provider, position) in enumerate(zip(rows.providers, (1, 0), strict=True)):
        form |= {
            f"targets-{number}-provider": str(provider.pk),
            f"targets-{number}-model": "gpt-4o",
            f"targets-{number}-weight": "1",
            f"targets-{number}-position": str(position),
        }
    assert root.post(add_url(ModelAlias), form).status_code == 302
    names = [target.provider.name for target in Target.objects.filter(alias__name="smart")]
    assert names == ["provider-1", "provider-0"]


def test_the_providers_of_many_targets_are_read_once(root, rows):
    alias = rows.models[0]

    def statements():
        with CaptureQueriesContext(connection) as captured:
            assert root.get(page_url(alias)).status_code == 200
        return len(captured)

    few = statements()
    for number in range(10):
        Target.objects.create(alias=alias, provider=rows.providers[1], model=f"m{number}", position=number)
    assert statements() == few


def test_a_price_names_a_provider_that_there_is(root, rows):
    form = form_of(root.get(add_url(Price)), "price_form")
    given = {"provider": "nobody", "model": "gpt-4o", "input": "1", "output": "2"}
    assert "Select a valid choice" in root.post(add_url(Price), form | given).content.decode()
    assert root.post(add_url(Price), form | given | {"provider": "provider-0"}).status_code == 302


def test_a_price_outlives_its_provider(root, rows):
    price = Price.objects.create(provider="gone", model="x", input=1, output=1)
    form = form_of(root.get(page_url(price)), "price_form")
    assert root.post(page_url(price), form | {"output": "2"}).status_code == 302
    price.refresh_from_db()
    assert (price.provider, price.output) == ("gone", 2)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("slug", "Acme Inc", "lower-case letters"),
        ("slug", "tenant-0", "already exists"),
        ("name", "a\u202eb", "direction-changing"),
        ("allowed_models", "\n".join(f"m{number}" for number in range(201)), "At most 200 entries"),
        ("allowed_models", "", "required"),
        ("rpm", "-5", "greater than or equal to 1"),
    ],
)
def test_a_tenant_that_cannot_be_is_refused(root, rows, field, value, said):
    form = form_of(root.get(add_url(Tenant)), "tenant_form") | {"slug": "fresh", "name": "Fresh"}
    assert said in root.post(add_url(Tenant), form | {field: value}).content.decode()
    assert Tenant.objects.count() == 2


def test_a_slug_is_for_ever(root, rows):
    form = form_of(root.get(page_url(rows.tenants[0])), "tenant_form")
    assert root.post(page_url(rows.tenants[0]), form | {"slug": "other", "state": "suspended"}).status_code == 302
    rows.tenants[0].refresh_from_db()
    assert (rows.tenants[0].slug, rows.tenants[0].state) == ("tenant-0", "active")


def test_a_key_cannot_take_the_name_of_another(root, rows):
    other = ApiKey.objects.create(id="other0000000", tenant=rows.tenants[0], name="other")
    form = form_of(root.get(page_url(other)), "apikey_form")
    answer = root.post(page_url(other), form | {"name": "key-0"})
    assert "Another key of this tenant has this name" in answer.content.decode()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hooks.example/in", "must begin with https://"),
        ("https://127.0.0.1/in", "private network"),
        ("https://[::1]/in", "private network"),
        ("https://10.1.2.3/in", "private network"),
        ("https://169.254.169.254/latest", "private network"),
        ("https://localhost/in", "private network"),
        ("https://me:pw@hooks.example/in", "neither a user name nor a fragment"),
        ("https://hooks.example/in#x", "neither a user name nor a fragment"),
        ("https:///in", "must have a host"),
        ("https://hooks.example:99999/in", "is no URL"),
        ("https://hooks.example/a b", "without spaces"),
        ("javascript:alert(1)", "must begin with https://"),
        ("https://hooks.example/0", "already exists"),
    ],
)
def test_a_receiver_that_cannot_be_is_refused(root, rows, url, said):
    form = form_of(root.get(add_url(Endpoint)), "endpoint_form") | {"tenant": rows.tenants[0].pk, "url": url}
    assert said in root.post(add_url(Endpoint), form).content.decode()
    assert Endpoint.objects.count() == 2


def test_private_receivers_are_a_setting(root, rows, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    form = form_of(root.get(add_url(Endpoint)), "endpoint_form")
    given = {"tenant": rows.tenants[0].pk, "url": "http://127.0.0.1:9999/in"}
    assert root.post(add_url(Endpoint), form | given).status_code == 302


def test_switching_a_receiver_on_forgets_why_it_was_off(root, rows):
    endpoint = rows.endpoints[0]
    Endpoint.objects.filter(pk=endpoint.pk).update(enabled=False, disabled_reason="410")
    form = form_of(root.get(page_url(endpoint)), "endpoint_form")
    assert root.post(page_url(endpoint), form | {"enabled": "on"}).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.disabled_reason) == (True, "")


def test_who_comes_second_is_told_and_changes_nothing(root, rows, monkeypatch):
    """Two forms that were both right when they were sent."""

    def lose(self, *args, **kwargs):
        raise IntegrityError

    monkeypatch.setattr(Tenant, "save", lose)
    form = form_of(root.get(page_url(rows.tenants[0])), "tenant_form")
    answer = root.post(page_url(rows.tenants[0]), form | {"name": "Second"}, follow=True)
    assert texts_of(answer) == ["Nothing was saved. Someone else was faster."]

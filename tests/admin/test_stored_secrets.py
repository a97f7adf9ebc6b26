"""Credentials are write-only: an empty field keeps what is stored, a new one replaces it, a tick takes it away."""

import json

import pytest

from audit.models import AuditEvent
from proxy.models import Provider
from tenants.config_version import current_config_version
from tenants.models import JwtIssuer, Tenant
from tests.admin.pages import add_url, form_of, page_url
from tests.admin.test_create_key import secret_on
from tests.admin.test_rotate_and_revoke_keys import SENT, dialog_url
from webhooks.models import Endpoint


def save(client, row, form_id, **changes):
    answer = client.post(page_url(row), form_of(client.get(page_url(row)), form_id) | changes)
    assert answer.status_code == 302, answer.context["errors"]
    row.refresh_from_db()
    return row


def last_change():
    return json.loads(AuditEvent.objects.filter(kind="object.updated").latest("id").body)


def test_an_empty_credential_keeps_the_stored_one(root, rows):
    provider = rows.providers[0]
    stored = provider.api_key
    assert save(root, provider, "provider_form", base_url="https://api.example/v1").api_key == stored
    assert "secrets_changed" not in last_change()["after"]


def test_a_new_credential_replaces_it_and_the_record_says_only_that(root, rows):
    version = current_config_version()
    provider = save(root, rows.providers[0], "provider_form", api_key="sk-new-credential-0123456789")
    assert provider.api_key == "sk-new-credential-0123456789"
    change = last_change()
    assert change["after"]["secrets_changed"] == ["api_key"]
    assert change["before"]["api_key"] == change["after"]["api_key"] == "[secret]"
    assert current_config_version() == version + 1


def test_a_tick_takes_the_credential_away(root, rows):
    assert save(root, rows.providers[0], "provider_form", forget_api_key="on").api_key == ""
    assert last_change()["after"]["api_key"] == ""


def test_a_new_credential_and_a_tick_contradict_each_other(root, rows):
    form = form_of(root.get(page_url(rows.providers[0])), "provider_form")
    answer = root.post(page_url(rows.providers[0]), form | {"api_key": "sk-x" * 9, "forget_api_key": "on"})
    assert "not both" in answer.content.decode()


def test_a_credential_copied_with_something_else_is_refused(root, rows):
    form = form_of(root.get(page_url(rows.providers[0])), "provider_form")
    for typed in ("sk-x\u200b1234567890", "sk-x\u00a012345"):
        answer = root.post(page_url(rows.providers[0]), form | {"api_key": typed})
        assert "something else was copied along" in answer.content.decode()


def test_the_secret_of_a_token_issuer_is_kept_replaced_and_removed(root, rows):
    tenant = rows.tenants[0]
    stored = tenant.jwt.secret
    save(root, tenant, "tenant_form", name="Renamed")
    assert JwtIssuer.objects.get(tenant=tenant).secret == stored
    save(root, tenant, "tenant_form", **{"jwt-0-secret": "another-shared-secret"})
    assert JwtIssuer.objects.get(tenant=tenant).secret == "another-shared-secret"
    save(root, tenant, "tenant_form", **{"jwt-0-forget_secret": "on", "jwt-0-jwks_url": "https://id.example/jwks"})
    assert JwtIssuer.objects.get(tenant=tenant).secret == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jwt-0-forget_secret": "on"}, "Give a shared secret or a key set"),
        ({"jwt-0-jwks_url": "https://id.example/jwks"}, "not both"),
        ({"jwt-0-algorithms": ["RS256"]}, "RS256 cannot be checked with a secret"),
        ({"jwt-0-forget_secret": "on", "jwt-0-jwks_url": "https://me:pw@id.example/jwks"}, "without user name"),
    ],
)
def test_a_token_issuer_needs_one_way_to_check(root, rows, changes, said):
    form = form_of(root.get(page_url(rows.tenants[0])), "tenant_form")
    assert said in root.post(page_url(rows.tenants[0]), form | changes).content.decode()


def test_a_receiver_without_a_secret_gets_one_that_is_shown_once(root, rows):
    form = form_of(root.get(add_url(Endpoint)), "endpoint_form")
    answer = root.post(add_url(Endpoint), form | {"tenant": rows.tenants[0].pk, "url": "https://new.example/in"})
    endpoint = Endpoint.objects.get(url="https://new.example/in")
    assert answer["Location"] == page_url(endpoint, "secret")
    assert secret_on(root.get(answer["Location"])) == endpoint.secret
    assert endpoint.secret.startswith("whsec_")
    assert secret_on(root.get(answer["Location"])) is None


def test_a_receiver_with_a_given_secret_is_not_shown_it(root, rows):
    form = form_of(root.get(add_url(Endpoint)), "endpoint_form")
    given = {"tenant": rows.tenants[0].pk, "url": "https://new.example/in", "secret": "whsec_given-by-the-receiver"}
    answer = root.post(add_url(Endpoint), form | given, follow=True)
    assert Endpoint.objects.get(url="https://new.example/in").secret == "whsec_given-by-the-receiver"
    assert "whsec_given" not in answer.content.decode()


@pytest.mark.parametrize(
    ("kind", "name", "field"),
    [(Endpoint, "renew_secret", "secret"), (Tenant, "renew_webhook_secret", "webhook_secret")],
)
def test_a_renewed_secret_is_shown_once_and_recorded_without_it(root, rows, kind, name, field):
    row = kind.objects.first()
    old = getattr(row, field)
    version = current_config_version()
    answer = root.post(dialog_url(row, name), SENT)
    row.refresh_from_db()
    new = getattr(row, field)
    assert new != old
    assert secret_on(root.get(answer["Location"])) == new
    assert secret_on(root.get(answer["Location"])) is None
    event = json.loads(AuditEvent.objects.latest("id").body)
    assert event["after"]["secrets_changed"] == [field]
    assert event["reason"] == "it leaked"
    assert new not in json.dumps(event)
    assert current_config_version() == version + 1


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ('{"Authorization": "Bearer x"}', "carries a credential"),
        ('{"x-my-api-key": "x"}', "carries a credential"),
        ('{"x-team": 5}', "is no header"),
        ('{"x team": "a"}', "is no header"),
        ('{"x-team": "a\\nb"}', "is no header"),
        ('["x-team"]', "Write an object of texts"),
        ("{", "valid JSON"),
    ],
)
def test_extra_headers_are_texts_and_no_credentials(root, rows, headers, said):
    form = form_of(root.get(page_url(rows.providers[0])), "provider_form")
    assert said in root.post(page_url(rows.providers[0]), form | {"headers": headers}).content.decode()


def test_a_kind_without_an_address_of_its_own_needs_one(root, db):
    form = form_of(root.get(add_url(Provider)), "provider_form") | {"name": "own", "kind": "openai_compatible"}
    assert "no address of its own" in root.post(add_url(Provider), form).content.decode()
    aws = form | {"kind": "bedrock"}
    assert "needs the region" in root.post(add_url(Provider), aws).content.decode()
    for address in ("ftp://x", "http://u:p@x", "http://x?y", "http://x/../y", "nonsense"):
        assert "The address " in root.post(add_url(Provider), form | {"base_url": address}).content.decode()
    assert root.post(add_url(Provider), form | {"base_url": "http://10.0.0.5:8000/v1"}).status_code == 302

"""doctor finds what is wrong, and says it without a secret."""

import io
import json

import pytest
from django.core.management import call_command

from audit.models import ChainHead
from proxy.models import Provider
from tenants.models import Tenant
from tests.gatewaysite.configuring import FULL, apply

pytestmark = pytest.mark.django_db


def doctor():
    """Exit status, and findings by check."""
    out, status = io.StringIO(), 0
    try:
        call_command("doctor", "--json", stdout=out)
    except SystemExit as end:
        status = int(end.code or 0)
    report = json.loads(out.getvalue())
    assert report["ok"] == (status == 0)
    return status, {(finding["check"], finding["result"]): finding["detail"] for finding in report["findings"]}


def test_a_healthy_installation_passes():
    apply(FULL)
    status, findings = doctor()
    assert status == 0
    assert {check for check, result in findings if result == "ok"} >= {
        "database",
        "migrations",
        "store",
        "providers",
        "audit",
    }


def test_a_provider_that_cannot_be_called_fails():
    Provider.objects.create(name="bad", kind="openai_compatible")
    status, findings = doctor()
    assert (status, findings["providers", "failed"]) == (1, "bad: has no base_url")


def test_bedrock_without_a_region_fails_and_needs_no_credential_of_its_own():
    row = Provider.objects.create(name="aws", kind="bedrock")
    assert doctor()[1]["providers", "failed"] == "aws: has no region"
    row.region = "eu-west-1"
    row.save()
    status, findings = doctor()
    assert (status, findings["providers", "ok"]) == (0, "aws: complete")


def test_a_provider_without_a_credential_is_a_warning():
    Provider.objects.create(name="bare", kind="openai")
    status, findings = doctor()
    assert (status, findings["providers", "warning"]) == (0, "bare: has no api_key")


def test_a_secret_that_no_key_opens_fails(settings):
    apply(FULL)
    settings.FIELD_ENCRYPTION_KEYS = ("b3RoZXItZW5jcnlwdGlvbi1rZXktb2YtMzItYnl0ZXM=",)
    status, findings = doctor()
    assert status == 1
    assert "FIELD_ENCRYPTION_KEYS" in findings["secrets", "failed"]


def test_a_chain_whose_end_is_missing_fails():
    apply(FULL)
    head = ChainHead.objects.filter(seq__gt=0)[0]
    ChainHead.objects.filter(pk=head.pk).update(seq=head.seq + 1)
    status, findings = doctor()
    assert (status, findings["audit", "failed"]) == (1, f"chain {head.chain}: its end is missing")


def test_a_store_that_is_away_fails(settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    status, findings = doctor()
    assert (status, findings["store", "failed"]) == (1, "REDIS_URL does not answer (ConnectionError)")


def test_a_broken_configuration_file_fails(settings, tmp_path):
    path = tmp_path / "tollbar.yaml"
    path.write_text("version: 1\ntenants: [{slug: acme, foo: 1}]\n")
    settings.GATEWAY_CONFIG = str(path)
    status, findings = doctor()
    assert (status, findings["configuration file", "failed"]) == (1, "tenants[0].foo: unknown field")
    assert not Tenant.objects.exists()

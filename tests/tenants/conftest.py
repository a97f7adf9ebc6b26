"""A tenant with one key."""

import pytest

from tenants.models import Tenant
from tenants.services import IssuedKey, create_key, create_tenant


@pytest.fixture
def acme(db: None) -> Tenant:
    return create_tenant(slug="acme", name="Acme", actor="test")


@pytest.fixture
def app(acme: Tenant) -> IssuedKey:
    return create_key(tenant=acme, name="app", actor="test")

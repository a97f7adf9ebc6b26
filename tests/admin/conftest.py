"""One cast for the admin: somebody who may do everything, somebody who may only look, and rows of every kind."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from audit.models import AuditEvent
from tests.admin.rows import Rows

EventsOf = Callable[[str], list[AuditEvent]]


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """A password is made slow to try; a test that makes one need not wait."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def rows(db: None) -> Rows:
    return Rows().add(2)


@pytest.fixture
def root(db: None) -> Client:
    """A superuser, alice."""
    client = Client()
    client.force_login(User.objects.create_superuser("alice", "alice@example.org", "correct horse"))
    return client


@pytest.fixture
def staff(db: None) -> Callable[..., Client]:
    """staff("change_apikey", …): somebody with these permissions."""

    def make(*codenames: str, name: str = "carol") -> Client:
        user = User.objects.create_user(name, password="correct horse", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def viewer(db: None) -> Client:
    """Somebody, bob, who may look at everything and change nothing."""
    user = User.objects.create_user("bob", password="correct horse", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(user)
    return client


def texts_of(response: Any) -> list[str]:
    """The messages that a followed redirect ended with."""
    return [str(message) for message in response.context["messages"]]

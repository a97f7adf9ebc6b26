"""A running gateway and a real browser in front of its admin. Without Chromium these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Response, sync_playwright

from tests.fakes.gateway import Gateway

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
PASSWORD = "correct horse battery staple"
CONFIG = {
    "providers": [{"name": "main", "kind": "mock"}, {"name": "spare", "kind": "mock"}],
    "models": [
        {"name": "smart", "targets": [{"provider": "main", "model": "echo"}, {"provider": "spare", "model": "echo"}]}
    ],
    "prices": [{"provider": "main", "model": "echo", "input": "1", "output": "2"}],
    "tiers": [{"name": "standard", "limits": {"rpm": 600}}],
    "tenants": [{"slug": "acme", "name": "Acme", "tier": "standard", "budgets": [{"usd": "10", "per": "month"}]}],
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(
        tmp_path_factory.mktemp("browser"),
        DJANGO_SUPERUSER_USERNAME="alice",
        DJANGO_SUPERUSER_EMAIL="alice@example.org",
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    )
    gateway.migrate().apply(CONFIG)
    gateway.manage("createsuperuser", "--noinput")
    gateway.serve()
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("needs Chromium: set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Admin:
    """alice in the admin, and what her browser complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", self._broken)
        page.on("response", self._answered)

    def log_in(self) -> Admin:
        self.go("/admin/")
        self.page.fill("#id_username", "alice")
        self.page.fill("#id_password", PASSWORD)
        self.page.press("#id_password", "Enter")
        self.page.wait_for_url(f"{self.url}/admin/")
        return self

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _broken(self, error: Error) -> None:
        self.complaints.append(f"error: {error}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")


@pytest.fixture
def admin(gateway: Gateway, browser: Browser) -> Iterator[Admin]:
    """Every complaint of the browser, such as a violation of the Content-Security-Policy, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    admin = Admin(context.new_page(), gateway.url).log_in()
    yield admin
    context.close()
    assert admin.complaints == []

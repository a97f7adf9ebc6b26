"""The admin in a real browser: every page loads without a complaint, and the work of a day can be done."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Admin

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LISTS = [
    "tenants/tenant",
    "tenants/apikey",
    "tenants/tier",
    "proxy/provider",
    "proxy/modelalias",
    "billing/price",
    "billing/budget",
    "billing/quota",
    "billing/ledgerentry",
    "billing/usagerollup",
    "webhooks/endpoint",
    "webhooks/message",
    "audit/auditevent",
    "auth/user",
    "auth/group",
]
WITH_ROWS = ["tenants/tenant", "tenants/tier", "proxy/provider", "proxy/modelalias", "billing/price", "billing/budget"]


def models_answer(admin: Admin, secret: str) -> int:
    return httpx.get(
        f"{admin.url}/v1/models", headers={"authorization": f"Bearer {secret}"}, trust_env=False
    ).status_code


def make_key(admin: Admin, name: str) -> str:
    """The secret, as the page shows it."""
    page = admin.go("/admin/tenants/apikey/add/")
    page.click(".select2-selection")
    page.fill(".select2-search__field", "acm")
    page.click(".select2-results__option:has-text('acme')")
    page.fill("#id_name", name)
    page.click("button[name=_save]")
    page.wait_for_selector("#shown-once")
    return page.input_value("#secret")


def test_every_page_loads_without_a_complaint(admin):
    for path in LISTS:
        page = admin.go(f"/admin/{path}/")
        expect(page.locator("#changelist")).to_be_visible()
        if path in WITH_ROWS:
            page.click("#result_list tbody a >> nth=0")
            expect(page.locator("#content-main form")).to_be_visible()
    expect(admin.go("/admin/").locator("#refusals")).to_be_visible()


def test_a_key_is_shown_once_works_and_ends_when_it_is_revoked(admin):
    secret = make_key(admin, "app")
    assert models_answer(admin, secret) == 200
    admin.page.reload()
    expect(admin.page.locator("#shown-once")).to_contain_text("Nothing to show")
    assert secret not in admin.page.content()

    admin.page.click("text=Go on to app")
    admin.page.click("a:has-text('Revoke')")
    admin.page.fill("#id_reason", "it leaked")
    assert models_answer(admin, secret) == 200  # the open dialog has changed nothing
    admin.page.click("button:has-text('Revoke the key')")
    expect(admin.page.locator("#main")).to_contain_text("is revoked")
    admin.page.wait_for_timeout(1000)
    assert models_answer(admin, secret) == 401


def test_after_a_rotation_both_secrets_work_and_the_new_one_is_shown_once(admin):
    old = make_key(admin, "twice")
    admin.page.click("text=Go on to twice")
    admin.page.click("a:has-text('Rotate')")
    admin.page.select_option("#id_overlap", "1h")
    admin.page.click("button:has-text('Make a new secret')")
    admin.page.wait_for_selector("#shown-once")
    new = admin.page.input_value("#secret")
    admin.page.wait_for_timeout(1000)
    assert new != old
    assert [models_answer(admin, secret) for secret in (old, new)] == [200, 200]
    admin.page.go_back()
    assert new not in admin.page.content()


def test_a_budget_is_added_to_a_tenant_on_its_tab(admin):
    page = admin.go("/admin/tenants/tenant/")
    page.click("text=acme")
    page.click("#tabs-items >> text=Budgets")
    page.click("text=Add another Budget")
    page.fill("#id_budgets-1-usd", "2.50")
    page.select_option("#id_budgets-1-per", "day")
    page.click("button[name=_continue]")
    expect(page.locator("#main")).to_contain_text("was changed successfully")
    assert page.input_value("#id_budgets-1-usd").startswith("2.5")


def test_targets_change_places_by_dragging(admin):
    page = admin.go("/admin/proxy/modelalias/")
    page.click("text=smart")
    handles = page.locator("#targets-data .cursor-move")
    expect(handles).to_have_count(2)
    upper, lower = (handles.nth(number).bounding_box() for number in (0, 1))
    page.mouse.move(lower["x"] + 10, lower["y"] + 10)
    page.mouse.down()
    for step in range(1, 11):
        page.mouse.move(lower["x"] + 10, lower["y"] + (upper["y"] - 25 - lower["y"]) * step / 10)
    page.mouse.up()
    page.click("button[name=_continue]")
    expect(page.locator("#main")).to_contain_text("successfully")
    first = page.locator("select[name=targets-0-provider] option[selected]")
    assert first.inner_text() == "spare"


def test_a_suspended_tenant_is_refused_until_it_is_resumed(admin):
    secret = make_key(admin, "halted")
    for button, submit, expected in (("Suspend", "Suspend the tenant", 403), ("Resume", "Resume the tenant", 200)):
        page = admin.go("/admin/tenants/tenant/")
        page.click("#result_list a:has-text('acme')")
        page.click(f"a:has-text('{button}')")
        page.click(f"button:has-text('{submit}')")
        expect(page.locator("#main")).to_contain_text("acme is")
        page.wait_for_timeout(1500)
        assert models_answer(admin, secret) == expected


def test_the_dark_theme_has_no_white_page(gateway, browser):
    context = browser.new_context(color_scheme="dark")
    admin = Admin(context.new_page(), gateway.url).log_in()
    admin.page.wait_for_function("document.documentElement.classList.contains('dark')")
    for selector in ("#main", ".tollbar-card"):
        colour = admin.page.locator(selector).first.evaluate("node => getComputedStyle(node).backgroundColor")
        assert colour not in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"), selector
    context.close()
    assert admin.complaints == []

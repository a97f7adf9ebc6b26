"""No page needs more than the Content-Security-Policy allows: own files, no inline script, no handler in a tag."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.urls import reverse

from gatewaysite.content_security import POLICY
from tests.admin.pages import add_url, all_admins, list_url, page_url

SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
DATA_BLOCK = re.compile(r'type="application/json"')
HANDLER = re.compile(r"<[a-z][^>]*\son(?:click|load|error|change|submit|focus|input)\s*=", re.IGNORECASE)
ADDRESS = re.compile(r'\b(?:src|href)="([^"]*)"')


@pytest.fixture
def pages(root, rows):
    urls = [reverse("admin:index"), reverse("admin:password_change")]
    for model, admin_class in all_admins():
        urls.append(list_url(model))
        row = model._default_manager.first()
        if row is not None:
            urls += [page_url(row), page_url(row, "history"), page_url(row, "delete")]
        if admin_class.has_add_permission.__qualname__.split(".")[0] != "ReadOnlyAdmin":
            urls.append(add_url(model))
    urls += [page_url(rows.keys[0], "secret"), page_url(rows.keys[0]).replace("change", "rotate")]
    return [(url, root.get(url, follow=True)) for url in urls]


def test_the_policy_is_on_every_page(pages):
    for url, page in pages:
        assert page.headers["Content-Security-Policy"] == POLICY, url


def test_no_page_has_an_inline_script_or_handler(pages):
    for url, page in pages:
        text = page.content.decode()
        inline = [match["code"] for match in SCRIPT.finditer(text) if "src=" not in match["attributes"]]
        assert [code for code in inline if code.strip() and not DATA_BLOCK.search(code)] == [], url
        assert HANDLER.findall(text) == [], url


def test_every_file_is_our_own_and_there(pages):
    seen = set()
    for url, page in pages:
        for address in ADDRESS.findall(page.content.decode()):
            assert not address.startswith(("http:", "//")), (url, address)
            if address.startswith("/static/"):
                seen.add(address.removeprefix("/static/").partition("?")[0])
    assert "tollbar/admin.css" in seen
    assert [path for path in sorted(seen) if finders.find(path) is None] == []

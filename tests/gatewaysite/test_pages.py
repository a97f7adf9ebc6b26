"""What every page that people see carries, and who is locked out of the admin."""

import pytest
from django.contrib.auth import get_user_model

pytestmark = pytest.mark.django_db


def test_pages_forbid_inline_scripts_and_frames(client):
    answer = client.get("/admin/login/")
    policy = dict(part.split(" ", 1) for part in answer["Content-Security-Policy"].split("; "))
    assert policy["script-src"] == "'self' 'unsafe-eval'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_static_files_come_without_a_collecting_step(client):
    answer = client.get("/static/unfold/css/styles.css")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/css")
    assert len(answer.content) == int(answer["Content-Length"]) > 1000
    assert client.get("/static/../manage.py").status_code == 404
    not_modified = client.get("/static/unfold/css/styles.css", headers={"If-Modified-Since": answer["Last-Modified"]})
    assert (not_modified.status_code, not_modified.content) == (304, b"")


def test_five_wrong_passwords_lock_the_account_for_that_address(client):
    get_user_model().objects.create_superuser("root", "", "the right one")

    def login(password, **headers):
        data = {"username": "root", "password": password}
        return client.post("/admin/login/", data, headers=headers).status_code

    wrong = [login(f"wrong {number}", **{"X-Forwarded-For": f"10.0.0.{number}"}) for number in range(6)]
    assert wrong == [200, 200, 200, 200, 429, 429]
    assert login("the right one") == 429


def test_a_password_is_right_until_then(client):
    get_user_model().objects.create_superuser("root", "", "the right one")
    assert client.post("/admin/login/", {"username": "root", "password": "the right one"}).status_code == 302

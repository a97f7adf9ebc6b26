"""Two processes that begin at once agree on the demo's secrets."""

import json
from concurrent.futures import ThreadPoolExecutor

from gatewaysite.demo_secrets import FILE_NAME, demo_secrets, remember_demo_secret


def test_whoever_is_first_decides_for_all(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: demo_secrets(tmp_path / "var"), range(16)))
    assert all(secrets == made[0] for secrets in made)
    assert [path.name for path in (tmp_path / "var").iterdir()] == [FILE_NAME]


def test_a_remembered_secret_stays(tmp_path):
    assert remember_demo_secret(tmp_path, "DEMO_KEY", "first") == "first"
    assert remember_demo_secret(tmp_path, "DEMO_KEY", "second") == "first"
    kept = json.loads((tmp_path / FILE_NAME).read_text())
    assert kept["DEMO_KEY"] == "first"
    assert kept["SECRET_KEY"] == demo_secrets(tmp_path)["SECRET_KEY"]
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600

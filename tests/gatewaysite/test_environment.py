"""Settings are read once; a wrong one refuses to start and is named."""

import base64

import pytest

from gatewaysite.env import SettingError, read_environment
from tests.environment import settings_for_tests

GOOD = {name: value for name, value in settings_for_tests().items() if name not in ("DATABASE_URL", "STATE_DIR")}
LOOPBACK_ONLY = {"ALLOWED_HOSTS": "127.0.0.1,localhost"}


def read(**changes):
    return read_environment({**GOOD, **changes})


def test_the_defaults_are_those_documented():
    env = read()
    assert env.database["NAME"].endswith("/var/tollbar.sqlite3")
    assert env.state_dir.name == "var"
    assert (env.rate_limit_redis_failure_policy, env.budget_redis_failure_policy) == ("fail_open", "fail_closed")
    assert env.max_request_size_bytes == 2_097_152
    assert (env.drain_seconds, env.otel_genai, env.log_level, env.workers) == (60, "compat", "INFO", 1)
    assert env.provider_allow_private_networks
    assert not (env.webhook_allow_private_networks)
    assert not (env.chaos_enabled)
    assert not (env.demo)
    assert not (env.debug)


@pytest.mark.parametrize("name", ["SECRET_KEY", "KEY_PEPPER", "FIELD_ENCRYPTION_KEYS"])
@pytest.mark.parametrize("value", ["", "   ", "change-me-please-change-me-please", "<your secret here, long enough>"])
def test_an_empty_or_example_secret_refuses_and_is_named(name, value):
    with pytest.raises(SettingError, match=rf"^{name}\b"):
        read(**{name: value})


@pytest.mark.parametrize(
    "value",
    [
        "abc",
        "not a fernet key at all, but long",
        base64.urlsafe_b64encode(bytes(32)).decode(),
        f"{GOOD['FIELD_ENCRYPTION_KEYS']},x",
    ],
)
def test_what_is_no_fernet_key_refuses(value):
    with pytest.raises(SettingError, match=r"^FIELD_ENCRYPTION_KEYS\b"):
        read(FIELD_ENCRYPTION_KEYS=value)


def test_several_fernet_keys_keep_their_order():
    second = base64.urlsafe_b64encode(bytes(range(32))).decode()
    assert read(FIELD_ENCRYPTION_KEYS=f"{second}, {GOOD['FIELD_ENCRYPTION_KEYS']}").field_encryption_keys == (
        second,
        GOOD["FIELD_ENCRYPTION_KEYS"],
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "maybe"),
        ("MAX_REQUEST_SIZE_BYTES", "2MB"),
        ("MAX_REQUEST_SIZE_BYTES", "-1"),
        ("MAX_REQUEST_SIZE_BYTES", "nan"),
        ("DRAIN_SECONDS", "forever"),
        ("RATE_LIMIT_REDIS_FAILURE_POLICY", "open"),
        ("BUDGET_REDIS_FAILURE_POLICY", "closed"),
        ("OTEL_GENAI", "newest"),
        ("LOG_LEVEL", "loud"),
        ("REDIS_URL", "localhost:6379"),
        ("REDIS_URL", "http://localhost"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "nonsense"),
        ("GATEWAY_CONFIG", "/nowhere/at/all.yaml"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,proxy"),
        ("SECRET_KEY_FILE", "/nowhere/at/all"),
        ("WEB_CONCURRENCY", "0"),
    ],
)
def test_a_wrong_value_refuses_and_names_its_setting(name, value):
    with pytest.raises(SettingError, match=rf"^{name}\b") as caught:
        read(**{name: value})
    assert "\n" not in str(caught.value)


def test_a_secret_may_come_from_a_file(tmp_path):
    path = tmp_path / "key"
    path.write_text("  a-secret-from-a-file-0123456789\n")
    assert read(SECRET_KEY="", SECRET_KEY_FILE=str(path)).secret_key == "a-secret-from-a-file-0123456789"


def test_a_secret_beginning_with_a_dollar_is_no_reference():
    assert read(KEY_PEPPER="$SECRET_KEY-and-more-characters").key_pepper == "$SECRET_KEY-and-more-characters"


def test_https_is_expected_where_others_can_reach_it():
    assert read(ALLOWED_HOSTS="gateway.example").https
    assert not read(**LOOPBACK_ONLY).https
    assert not read(ALLOWED_HOSTS="gateway.example", HTTPS="false").https
    assert read(**LOOPBACK_ONLY, HTTPS="true").https


def test_state_lies_beside_the_sqlite_file_unless_told_otherwise(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    assert read(DATABASE_URL=url).state_dir == tmp_path
    assert read(DATABASE_URL=url, STATE_DIR="/elsewhere").state_dir.as_posix() == "/elsewhere"
    assert read(DATABASE_URL="postgres://u:p@h/d").state_dir.name == "var"


def test_postgresql_urls_are_understood():
    database = read(DATABASE_URL="postgres://u:p%40ss@db.example:5433/tollbar").database
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"], database["NAME"]) == (
        "u",
        "p@ss",
        "db.example",
        5433,
        "tollbar",
    )


def test_the_demo_makes_its_secrets_once_for_its_owner_alone(tmp_path):
    demo = {"DEMO": "true", "DATABASE_URL": f"sqlite:///{tmp_path / 'x.sqlite3'}"}
    first, second = read_environment(demo), read_environment(demo)
    assert first.secret_key == second.secret_key
    assert first.field_encryption_keys == second.field_encryption_keys
    assert len({first.secret_key, first.key_pepper, first.field_encryption_keys[0]}) == 3
    assert not first.debug
    assert (tmp_path / "demo-secrets.json").stat().st_mode & 0o777 == 0o600


def test_a_secret_that_is_set_wins_in_the_demo_too(tmp_path):
    demo = {"DEMO": "true", "STATE_DIR": str(tmp_path), "SECRET_KEY": "my-own-secret-key-0123456789"}
    assert read_environment(demo).secret_key == "my-own-secret-key-0123456789"

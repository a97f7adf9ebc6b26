"""A log entry is one JSON line: no secret, no character that a terminal would obey."""

import io
import json
import logging

import pytest
import structlog

from gatewaysite.logging import logging_config, masked
from tenants.keys import generate


@pytest.fixture
def logged():
    """Log with the product's formatter; gives the lines written."""
    config = logging_config("DEBUG")
    formatter = config["formatters"]["json"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        formatter["()"](foreign_pre_chain=formatter["foreign_pre_chain"], processors=formatter["processors"])
    )
    logger = logging.getLogger("tests.log_lines")
    logger.addHandler(handler)
    logger.propagate = False

    def lines(log):
        log(logger)
        return stream.getvalue().splitlines()

    yield lines
    logger.removeHandler(handler)


def test_control_characters_and_line_ends_stay_inside_one_line(logged):
    hostile = "a\r\nb\x1b[31m\u202e\u2028%s{}${jndi:ldap://x}"
    (line,) = logged(lambda logger: logger.warning("user %s", hostile))
    assert json.loads(line)["event"] == f"user {hostile}"
    assert line.isascii()
    assert line.isprintable()


def test_credentials_are_masked_wherever_they_stand(logged):
    key = generate("0123456789ab", "live")
    texts = (
        key,
        f"Bearer {key}",
        "sk-ant-0123456789abcdef",
        "GET /v1/models?api_key=abcdef HTTP",
        "bearer eyJh.eyJz.c2ln",
    )
    (line,) = logged(lambda logger: logger.warning("%s %s %s %s", *texts[:4], extra={"why": texts[4]}))
    for secret in (key, "sk-ant", "abcdef", "eyJh"):
        assert secret not in line


def test_the_public_id_of_a_key_stays():
    assert masked(f"key {generate('0123456789ab', 'live')} refused") == "key tb_0123456789ab_*** refused"


def test_extras_are_kept_and_objects_are_not(logged):
    (line,) = logged(lambda logger: logger.info("loaded", extra={"version": 3, "request": object()}))
    entry = json.loads(line)
    assert entry["version"] == 3
    assert "request" not in entry
    assert (entry["level"], entry["logger"]) == ("info", "tests.log_lines")


def test_an_exception_is_part_of_its_line(logged):
    def fail(logger):
        try:
            raise ValueError("because")
        except ValueError:
            logger.exception("failed")

    (line,) = logged(fail)
    assert "ValueError: because" in json.loads(line)["exception"]


def test_what_a_request_bound_is_on_its_lines(logged):
    with structlog.contextvars.bound_contextvars(request_id="req_1"):
        (line,) = logged(lambda logger: logger.info("x"))
    assert json.loads(line)["request_id"] == "req_1"

"""Every command of manage.py keeps the promise: writers have --dry-run, readers have --json."""

from django.core.management import get_commands, load_command_class

from tests.architecture.sources import APPS

WRITERS = {
    "apply_config",
    "create_key",
    "deliver_webhooks",
    "revoke_keys",
    "rotate_keys",
    "seed_demo",
    "sync_prices",
}
READERS = {
    "check_providers",
    "cost_report",
    "doctor",
    "export_audit",
    "export_config",
    "list_keys",
    "top_requests",
    "usage_report",
    "verify_audit",
    "verify_ledger",
}
PROCESSES = {"drain_events", "serve"}
# --json beside --dry-run, and a reader whose format is an option of its own.
ALSO_JSON = {"create_key", "rotate_keys"}
JSON_BY_FORMAT = {"usage_report"}


def _own_commands() -> dict[str, set[str]]:
    """Name -> its options."""
    options = {}
    for name, app in get_commands().items():
        if app in APPS:
            parser = load_command_class(app, name).create_parser("manage.py", name)
            options[name] = set(parser._option_string_actions)
    return options


def test_every_command_is_a_writer_a_reader_or_a_process():
    assert set(_own_commands()) - WRITERS - READERS - PROCESSES == set()


def test_every_writer_has_a_dry_run():
    commands = _own_commands()
    assert {name for name in WRITERS & set(commands) if "--dry-run" not in commands[name]} == set()


def test_every_reader_has_json():
    commands = _own_commands()
    readers = (READERS - JSON_BY_FORMAT | ALSO_JSON) & set(commands)
    assert {name for name in readers if "--json" not in commands[name]} == set()
    assert {name for name in JSON_BY_FORMAT & set(commands) if "--format" not in commands[name]} == set()

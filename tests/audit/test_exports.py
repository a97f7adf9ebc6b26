"""export_audit and the verifier that an auditor runs elsewhere, without Tollbar."""

import json
import random
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from audit import verifier
from audit.chain import verify_chains
from audit.models import AuditEvent
from audit.recorder import record, record_change
from tests.recording import MOMENT_MS, request_event

pytestmark = pytest.mark.django_db

DAY_MS = 86_400_000


@pytest.fixture
def recorded() -> None:
    """Twelve events of two tenants in two chains, on three days, with odd texts, and a change."""
    texts = ["plain", "naïve – “quoted”", "日本語", "😀", 'a"b\\c', "line\u2028break", "nul\0tab\t"]
    for number in range(12):
        slug = "acme" if number % 3 else "globex"
        at_ms = MOMENT_MS + number % 3 * DAY_MS
        record([request_event(3 if number % 2 else 4, slug, at_ms=at_ms, user=texts[number % len(texts)])])
    record_change("key.created", actor="admin:ada", subject="key:k", before=None, after={"a": 1}, tenant="acme")


def exported(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("export_audit", *arguments, stdout=out)
    return out.getvalue().split("\n")[:-1]


def run_verifier(tmp_path: Path, lines: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """As an auditor does: the one file, elsewhere, without this project on the path."""
    copy, export = tmp_path / "verifier.py", tmp_path / "export.jsonl"
    copy.write_text(Path(verifier.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    export.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-I", str(copy), str(export), *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)


def faults(lines: list[str], *, partial: bool = False) -> list[str]:
    return verifier.verify([line.encode() + b"\n" for line in lines], verifier.Walk(partial=partial))


def test_every_line_is_the_event_with_its_place(recorded):
    lines = exported()
    assert len(lines) == 13
    for line in lines:
        event = json.loads(line)
        row = AuditEvent.objects.get(id=event["id"])
        assert {name: event.pop(name) for name in ("chain", "seq", "prev_hash", "hash")} == {
            "chain": row.chain,
            "seq": row.seq,
            "prev_hash": row.prev_hash,
            "hash": row.hash,
        }
        assert event == json.loads(row.body)


def test_an_export_holds_on_another_machine(recorded, tmp_path):
    done = run_verifier(tmp_path, exported())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "13 events in 3 chains hold.\n"


def test_any_changed_character_of_any_line_is_found(recorded):
    lines = exported()
    choose = random.Random(7)
    for _ in range(300):
        number = choose.randrange(len(lines))
        place = choose.randrange(len(lines[number]))
        other = "7" if lines[number][place] != "7" else "3"
        forged = lines.copy()
        forged[number] = lines[number][:place] + other + lines[number][place + 1 :]
        assert faults(forged), f"character {place} of line {number}"


def test_a_missing_a_repeated_and_an_exchanged_line_are_found(recorded):
    lines = exported()
    for number in range(len(lines) - 1):
        event = json.loads(lines[number])
        is_last_of_chain = json.loads(lines[number + 1])["chain"] != event["chain"]
        if not is_last_of_chain:
            assert faults(lines[:number] + lines[number + 1 :])
            assert faults([*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]])
        assert faults([*lines[: number + 1], lines[number], *lines[number + 1 :]])


def test_the_first_bad_event_is_named_and_the_status_is_2(recorded, tmp_path):
    lines = exported()
    bad = json.loads(lines[1])
    lines[1] = lines[1].replace('"status":"success"', '"status":"refused"')
    done = run_verifier(tmp_path, lines, "--json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert [(item["chain"], item["seq"], item["id"]) for item in document["broken"]] == [
        (bad["chain"], bad["seq"], bad["id"])
    ]


def test_a_second_value_smuggled_in_for_a_field_is_found(recorded):
    lines = exported()
    lines[0] = '{"status":"failed",' + lines[0][1:]
    assert faults(lines)


def test_lines_cut_off_at_the_end_are_found_with_earlier_heads(recorded, tmp_path):
    lines = exported()
    heads = tmp_path / "heads.json"
    out = StringIO()
    call_command("verify_audit", "--json", stdout=out)
    heads.write_text(out.getvalue())
    assert run_verifier(tmp_path, lines, "--heads", str(heads)).returncode == 0
    assert run_verifier(tmp_path, lines[:-1]).returncode == 0
    cut = run_verifier(tmp_path, lines[:-1], "--heads", str(heads))
    assert cut.returncode == 2
    assert "events at its end are missing" in cut.stdout


@pytest.mark.parametrize("line", ["not json", '{"id":"x"}', '{"a":1,"chain":256,"seq":1}', "{}"])
def test_what_is_no_exported_line_is_told_with_its_number(recorded, line):
    assert faults([*exported()[:2], line]) == ["line 3 is not as it was exported"]


def test_the_heads_must_be_heads(recorded, tmp_path):
    other = tmp_path / "other.json"
    other.write_text("[]")
    done = run_verifier(tmp_path, exported(), "--heads", str(other))
    assert done.returncode == 2
    assert "verify_audit --json" in done.stderr


# ---------------------------------------------------------------- parts of the record


def test_one_tenants_events_are_exported_alone_and_hold_as_a_part(recorded):
    lines = exported("--tenant", "globex")
    assert {json.loads(line)["tenant"] for line in lines} == {"globex"}
    assert len(lines) == 4
    assert faults(lines, partial=True) == []
    assert faults(lines) != []  # as a whole record it has gaps
    forged = [line.replace("0.000250", "0.000001") for line in lines]
    assert len(faults(forged, partial=True)) == 2  # two chains, the first bad event of each


@pytest.mark.parametrize(
    ("arguments", "days"),
    [
        (("--from", "2026-03-15"), {15, 16}),
        (("--to", "2026-03-15"), {14, 15}),
        (("--from", "2026-03-15", "--to", "2026-03-15"), {15}),
        (("--to", "2026-03-15T09:26:53"), {14}),
        (("--from", "2026-03-15T10:26:54+01:00"), {16}),
    ],
)
def test_days_are_exported_with_both_ends(recorded, arguments, days):
    requests = [event for line in exported(*arguments) if (event := json.loads(line)).get("kind") is None]
    assert {int(event["time"][8:10]) for event in requests} == days


def test_a_time_that_is_none_is_a_usage_error():
    with pytest.raises(CommandError, match="no time") as error:
        call_command("export_audit", "--from", "yesterday")
    assert error.value.returncode == 2


def test_what_holds_in_the_database_holds_in_its_export(recorded):
    assert verify_chains().ok
    assert faults(exported()) == []

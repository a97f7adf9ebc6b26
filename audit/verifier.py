"""Check an exported audit log offline: python verifier.py EXPORT.jsonl (or - for standard input).

One file, standard library only: copy it to any machine. The export must be whole, as `manage.py export_audit` without
filters prints it. Exit status 0 when every chain holds, 2 with the first bad event of each chain that does not.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from typing import Any

DOMAIN = b"tollbar-audit-1"
GENESIS = "0" * 64
LINK_FIELDS = ("chain", "seq", "prev_hash", "hash")


def link_hash(chain: int, seq: int, prev_hash: str, body: str) -> str:
    """SHA-256(domain ‖ chain (1 byte) ‖ seq (8 bytes, big-endian) ‖ previous hash ‖ SHA-256(body)), hex."""
    link = DOMAIN + bytes((chain,)) + seq.to_bytes(8, "big") + bytes.fromhex(prev_hash)
    return hashlib.sha256(link + hashlib.sha256(body.encode()).digest()).hexdigest()


def canonical(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def verify(lines: Iterable[str]) -> tuple[int, list[str]]:
    """How many events were read, and a sentence for the first bad event of each broken chain."""
    last: dict[int, tuple[int, str]] = {}
    broken: dict[int, str] = {}
    count = 0
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            chain, seq, prev_hash, own_hash = (event.pop(name) for name in LINK_FIELDS)
            problem = _problem(chain, seq, prev_hash, own_hash, canonical(event), last.get(chain, (0, GENESIS)))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            return count, [*broken.values(), f"line {number} is no exported event: {error!r}"]
        count += 1
        if problem and chain not in broken:
            broken[chain] = f"chain {chain} is broken at seq {seq} (event {event.get('id')}): {problem}"
        last[chain] = (seq, own_hash)
    return count, list(broken.values())


def _problem(chain: int, seq: int, prev_hash: str, own_hash: str, body: str, last: tuple[int, str]) -> str | None:
    if seq != last[0] + 1:
        return f"seq {last[0] + 1} is missing"
    if prev_hash != last[1]:
        return "it does not name the hash of the event before it"
    if own_hash != link_hash(chain, seq, prev_hash, body):
        return "its content does not match its hash"
    return None


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: verifier.py EXPORT.jsonl\n")
        return 2
    if arguments[0] == "-":
        count, broken = verify(sys.stdin)
    else:
        with open(arguments[0], encoding="utf-8") as export:
            count, broken = verify(export)
    for sentence in broken:
        sys.stdout.write(sentence + "\n")
    if not broken:
        sys.stdout.write(f"{count} events verified, every chain holds.\n")
    return 2 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

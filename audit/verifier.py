"""Check an exported audit log offline:

    python verifier.py EXPORT.jsonl [--heads HEADS.json] [--partial] [--json]

One file, standard library only, nothing of Tollbar is imported: copy it to any machine. `-` reads standard input.
docs/audit.md specifies what is checked, byte by byte.

The export must be whole, as `manage.py export_audit` without filters prints it; with --partial events may be missing
(an export of one tenant or of some days): then each event is checked by itself and against neighbours that are there.
--heads takes what `manage.py verify_audit --json` printed earlier: every chain must still hold, at that place, the
event that was its last one then. Without it nobody can tell whether events at the end were cut off, or whether all of
the log was written anew.

Exit status 0 when everything holds, 2 with the first bad event of each chain that does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

DOMAIN = b"tollbar-audit-1"
GENESIS = "0" * 64
#: A line of an export: the event's canonical text, and before its closing brace the four fields of its link.
LINE = re.compile(
    rb'(\{.+),"chain":(\d{1,3}),"seq":(\d{1,18}),"prev_hash":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\r?\n?',
    re.DOTALL,
)
#: (chain, seq) -> the hash that must be there.
Anchors = dict[tuple[int, int], str]


class Link(NamedTuple):
    """One event: its place in its chain, and its canonical text."""

    chain: int
    seq: int
    prev_hash: str
    hash: str
    body: bytes


@dataclass(frozen=True)
class Broken:
    """The first event of a chain that does not hold, and why."""

    chain: int
    seq: int
    id: str
    why: str

    def __str__(self) -> str:
        return f"chain {self.chain} is broken at seq {self.seq} (event {self.id or 'none'}): {self.why}"


@dataclass
class Walk:
    """Follows chains link by link. `anchors` must be met on the way."""

    anchors: Anchors = field(default_factory=dict)
    partial: bool = False
    count: int = 0
    gaps: int = 0
    last: dict[int, tuple[int, str]] = field(default_factory=dict)
    broken: dict[int, Broken] = field(default_factory=dict)

    def follow(self, link: Link) -> None:
        """Links of one chain come in the order of `seq`."""
        self.count += 1
        why = self._fault(link)
        if why:
            self.blame(link.chain, link.seq, why, link.body)
        self.last[link.chain] = (link.seq, link.hash)

    def blame(self, chain: int, seq: int, why: str, body: bytes = b"{}") -> None:
        """A chain does not hold at `seq`; only the first such place of a chain counts."""
        if chain not in self.broken:
            self.broken[chain] = Broken(chain, seq, _id_in(body), why)

    def finish(self) -> list[Broken]:
        """The first bad event of each broken chain, after the last link of all."""
        for (chain, seq), _ in sorted(self.anchors.items()):
            reached = self.last.get(chain, (0, GENESIS))[0]
            if reached < seq and not self.partial:
                self.blame(chain, reached, f"the chain once reached seq {seq}: events at its end are missing")
        return [self.broken[chain] for chain in sorted(self.broken)]

    def _fault(self, link: Link) -> str | None:
        seq, last_hash = self.last.get(link.chain, (0, GENESIS))
        follows = link.seq == seq + 1
        if not follows:
            if link.seq <= seq:
                return f"it comes after seq {seq}"
            if not self.partial:
                return f"seq {seq + 1} is missing"
            self.gaps += 1
        if follows and link.prev_hash != last_hash:
            return "it does not name the hash of the event before it"
        if link.hash != link_hash(link):
            return "its content or its place does not match its hash"
        if self.anchors.get((link.chain, link.seq), link.hash) != link.hash:
            return "another event was here when the heads were taken"
        return None


def link_hash(link: Link) -> str:
    """SHA-256(domain ‖ chain (1 byte) ‖ seq (8 bytes, big-endian) ‖ previous hash ‖ SHA-256(body)), hex."""
    place = bytes((link.chain,)) + link.seq.to_bytes(8, "big")
    content = hashlib.sha256(link.body).digest()
    return hashlib.sha256(DOMAIN + place + bytes.fromhex(link.prev_hash) + content).hexdigest()


def read_line(line: bytes) -> Link | None:
    """The link that a line of an export tells; None when it is no such line."""
    parts = LINE.fullmatch(line)
    if parts is None or int(parts[2]) > 255:
        return None
    return Link(int(parts[2]), int(parts[3]), parts[4].decode(), parts[5].decode(), parts[1] + b"}")


def _id_in(body: bytes) -> str:
    try:
        event: Any = json.loads(body)
        return str(event.get("id", ""))
    except (ValueError, AttributeError):
        return ""


def verify(lines: Iterable[bytes], walk: Walk) -> list[str]:
    """Walk over the lines of an export. A sentence for everything that does not hold."""
    strange = 0
    for number, line in enumerate(lines, 1):
        link = read_line(line)
        if link is not None:
            walk.follow(link)
        elif line.strip():
            strange = strange or number
    found = [str(broken) for broken in walk.finish()]
    return found + ([f"line {strange} is not as it was exported"] if strange else [])


def read_heads(text: str) -> Anchors:
    """The heads that `verify_audit --json` printed. Raises ValueError for anything else."""
    try:
        document: Any = json.loads(text)
        return {(int(head["chain"]), int(head["seq"])): str(head["hash"]) for head in document["heads"]}
    except (LookupError, TypeError, ValueError):
        raise ValueError("no heads in it: it must be what `manage.py verify_audit --json` printed") from None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="verifier.py", description="Check an exported audit log offline.")
    parser.add_argument("export", metavar="EXPORT", help="what export_audit printed; - for standard input")
    parser.add_argument("--heads", metavar="FILE", help="what verify_audit --json printed earlier")
    parser.add_argument("--partial", action="store_true", help="the export is of one tenant or of some days")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        anchors = read_heads(_text_of(options.heads)) if options.heads else {}
        walk = Walk(anchors, partial=options.partial)
        if options.export == "-":
            found = verify(sys.stdin.buffer, walk)
        else:
            with open(options.export, "rb") as export:
                found = verify(export, walk)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"verifier.py: {error}\n")
        return 2
    _tell(walk, found, as_json=options.json)
    return 2 if found else 0


def _tell(walk: Walk, found: list[str], *, as_json: bool) -> None:
    if as_json:
        broken = [asdict(item) for item in walk.finish()]
        told = {"ok": not found, "events": walk.count, "gaps": walk.gaps, "broken": broken, "faults": found}
        sys.stdout.write(json.dumps(told) + "\n")
        return
    for sentence in found:
        sys.stdout.write(sentence + "\n")
    if not found:
        gaps = f", {walk.gaps} gaps" if walk.partial else ""
        sys.stdout.write(f"{walk.count} events in {len(walk.last)} chains hold{gaps}.\n")


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Which tool call a fragment of a stream belongs to.

OpenAI numbers calls by `index`, gives id, type and name on the first fragment of each and only arguments after that.
Others send every call with index 0, or none, repeat id or name on every fragment, invent a new id for each, or give no
id at all. `CallJoiner` numbers calls in the order in which they open and tells what each fragment adds.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from proxy.errors import UpstreamFault

JSON = dict[str, Any]

#: The most calls of one choice, and what is kept of their arguments (characters, and 64 a fragment).
MAX_CALLS = 1024
MAX_KEPT = 1 << 20


class Function(msgspec.Struct):
    """`input` is what a custom tool has in place of arguments."""

    name: str | None = None
    arguments: str | None = None
    input: str | None = None


class Fragment(msgspec.Struct):
    """One entry of `delta.tool_calls`."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: Function | None = None
    custom: Function | None = None
    extra_content: Any = None


class Piece(msgspec.Struct):
    """What a fragment adds to call `number`; the first piece of a call has `name`."""

    number: int
    id: str
    name: str | None
    arguments: str
    custom: bool = False
    extra_content: Any = None


class _Open(msgspec.Struct):
    id: str
    name: str
    key: int | None
    custom: bool
    arguments: list[str]
    begun: bool = False  # some of its arguments came


class CallJoiner:
    """State of one choice of one stream."""

    __slots__ = ("_by_id", "_by_index", "_kept", "_orderly", "_salt", "calls")

    def __init__(self) -> None:
        self.calls: list[_Open] = []
        self._by_index: dict[int | None, int] = {}
        self._by_id: dict[str, int] = {}
        self._orderly = True  # so far upstream's numbers are ours
        self._salt = ""
        self._kept = 0

    def is_orderly(self, fragments: list[Fragment]) -> bool:
        """Whether a client may get these fragments as they are."""
        opened = len(self.calls)
        seen: set[int] = set()
        for fragment in fragments:
            function = fragment.function or fragment.custom
            index = fragment.index
            if function is None or index is None or index in seen:
                return False
            seen.add(index)
            if 0 <= index < len(self.calls):
                if fragment.id or function.name:
                    return False
            elif index == opened and fragment.type and function.name and self._is_new(fragment.id):
                opened += 1
            else:
                return False
        return self._orderly

    def _is_new(self, call_id: str | None) -> bool:
        return bool(call_id) and call_id not in self._by_id

    def join(self, fragments: list[Fragment]) -> list[Piece]:
        """What the fragments add, in order. Raises UpstreamFault for a call without a name, and for too many."""
        pieces = []
        for fragment in fragments:
            function = fragment.function or fragment.custom or Function()
            arguments = function.arguments or function.input or ""
            number = self._number(fragment, function)
            if number is None:
                number = self._open(fragment, function)
                call = self.calls[number]
                piece = Piece(number, call.id, call.name, arguments, call.custom, fragment.extra_content)
            else:
                call = self.calls[number]
                piece = Piece(number, call.id, None, arguments, call.custom, fragment.extra_content)
            call.begun = call.begun or bool(arguments)
            if arguments and self._kept < MAX_KEPT:
                call.arguments.append(arguments)
                self._kept += len(arguments) + 64
            pieces.append(piece)
        return pieces

    def _number(self, fragment: Fragment, function: Function) -> int | None:
        """The open call that a fragment continues; None when it opens a new one."""
        name = function.name
        at_index = self._by_index.get(fragment.index)
        if fragment.index is None and not (fragment.id or name):
            at_index = len(self.calls) - 1 if self.calls else None
        if fragment.id:
            known = self._by_id.get(fragment.id)
            if known is not None and (not name or known == at_index or fragment.index is None):
                return known
            return at_index if not name else None
        if not name or at_index is None:
            return at_index
        call = self.calls[at_index]
        return at_index if name == call.name and not _is_whole("".join(call.arguments)) else None

    def _open(self, fragment: Fragment, function: Function) -> int:
        if not function.name:
            raise UpstreamFault("protocol", "a tool call without a name", status=200)
        number = len(self.calls)
        if number >= MAX_CALLS:
            raise UpstreamFault("protocol", "a stream of too many tool calls", status=200)
        call_id = fragment.id
        if not call_id or call_id in self._by_id:
            self._salt = self._salt or uuid.uuid4().hex[:20]
            call_id = f"call_{self._salt}{number}"
        call = _Open(call_id, function.name, fragment.index, fragment.custom is not None, [])
        self.calls.append(call)
        self._by_id[call_id] = number
        self._by_index[fragment.index] = number
        self._orderly = self._orderly and fragment.index == number and call_id == fragment.id
        return number


def merged_fragments(pieces: list[Piece]) -> list[JSON]:
    """Pieces as orderly entries of `delta.tool_calls`, at most one a call."""
    entries: dict[int, JSON] = {}
    for piece in pieces:
        kind, text = ("custom", "input") if piece.custom else ("function", "arguments")
        entry = entries.get(piece.number)
        if entry is None:
            entry = entries[piece.number] = {"index": piece.number}
            if piece.name is not None:
                entry |= {"id": piece.id, "type": kind, kind: {"name": piece.name, text: ""}}
            else:
                entry[kind] = {text: ""}
        entry[kind][text] += piece.arguments
        if piece.extra_content is not None:
            entry["extra_content"] = piece.extra_content
    return [entries[number] for number in sorted(entries)]


def _is_whole(arguments: str) -> bool:
    try:
        msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return False
    return True

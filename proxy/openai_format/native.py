"""What differs between the APIs of one OpenAI-style provider that clients speak, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from proxy.context import Answer, Call, Relay

JSON = dict[str, Any]


class NativeApi(msgspec.Struct, frozen=True):
    """One API of a provider whose clients' bodies and answers pass through.

    path          below the base URL
    pass_through  a 2xx body as the client's answer; raises UpstreamFault when it is none
    relay         hands a stream of it on; None: it does not stream
    body          the client's own body with the limit of output where admission set one (a new object: the model's
                  name is put into it); None: the adapter's own way
    """

    path: str
    pass_through: Callable[[bytes], Answer]
    relay: Callable[[Call], Relay] | None = None
    body: Callable[[Call], JSON] | None = None

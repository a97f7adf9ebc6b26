"""AWS's side of a request to Bedrock: a bearer token, or a signature (Signature Version 4) made by botocore.

Credentials come from botocore's own chain: environment, profile (assumed roles included), web identity, container,
instance. They are loaded and refreshed in a thread, once for all who wait, and used until they are about to expire. A
bearer token in AWS_BEARER_TOKEN_BEDROCK goes before them, as in AWS's SDKs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING

from proxy.context import ProviderRequest
from proxy.errors import UpstreamFault

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials

logger = logging.getLogger(__name__)

SERVICE = "bedrock"
TOKEN_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK"

#: How long a request waits for credentials, and how long it is remembered that there are none (seconds).
WAIT_SECONDS = 15.0
REMEMBER_SECONDS = 5.0
#: Of a call for credentials (STS, SSO): to connect and to read (seconds).
CONNECT_SECONDS, READ_SECONDS = 3, 5


class AwsSigner:
    """Signs for any region with the credentials of this process."""

    def __init__(self) -> None:
        self._credentials: Credentials | None = None  # refreshes itself when asked, and blocks meanwhile
        self._frozen: ReadOnlyCredentials | None = None  # what it held when it was asked last
        self._loading: asyncio.Task[None] | None = None
        self._loaded_at = -REMEMBER_SECONDS
        self._failure = ""

    async def sign(self, request: ProviderRequest) -> ProviderRequest:
        """`request`, authorized. Raises UpstreamFault `credential` when there are no credentials."""
        region = request.aws_region
        if region is None:
            return request
        if token := os.environ.get(TOKEN_VARIABLE, "").strip():
            headers = request.headers | {"authorization": f"Bearer {token}"}
        else:
            headers = signed_headers(request, region, await self._usable())
        return ProviderRequest(request.url, headers, request.body)

    async def _usable(self) -> ReadOnlyCredentials:
        if not self._lasts(None) and time.monotonic() - self._loaded_at >= REMEMBER_SECONDS:
            await self._load_once()
        if not self._lasts(0):
            raise UpstreamFault("credential", f"no AWS credentials: {self._failure}")
        return self._frozen

    def _lasts(self, seconds: int | None) -> bool:
        """Whether there are credentials for so long; None: until botocore wants new ones (15 minutes ahead)."""
        if self._frozen is None:
            return False
        refresh_needed = getattr(self._credentials, "refresh_needed", None)  # only those that expire have it
        return refresh_needed is None or not refresh_needed(seconds)

    async def _load_once(self) -> None:
        """One load for all who wait; one who leaves does not take it from the others."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.shield(self._loading)
        except TimeoutError:
            self._failure = "they did not come in time"

    async def _load(self) -> None:
        try:
            self._credentials, self._frozen = await asyncio.to_thread(_load, self._credentials)
        except _NotLoaded as error:
            self._failure = str(error)
        finally:
            self._loaded_at = time.monotonic()
            self._loading = None


class _NotLoaded(Exception):
    """Why there are no credentials, in words that hold none."""


def signed_headers(request: ProviderRequest, region: str, credentials: ReadOnlyCredentials) -> dict[str, str]:
    """The headers of `request`, its signature among them. Its path must be sent as it stands in `url`."""
    from botocore.auth import SigV4Auth  # noqa: PLC0415  (botocore takes 40 MB: only for those who use Bedrock)
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415

    signed = AWSRequest("POST", request.url, headers=request.headers, data=request.body)
    SigV4Auth(credentials, SERVICE, region).add_auth(signed)
    return dict(signed.headers.items())


def _load(known: Credentials | None) -> tuple[Credentials, ReadOnlyCredentials]:
    """Find credentials, or refresh the ones that are known. Blocks; runs in a thread."""
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    try:
        if known is None:
            session = Session()
            retries = {"total_max_attempts": 2}
            session.set_default_client_config(
                Config(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries=retries)
            )
            known = session.get_credentials()
        if known is None:
            raise _NotLoaded("none were found")
        return known, known.get_frozen_credentials()
    except (BotoCoreError, ClientError, OSError, ValueError, KeyError, RuntimeError) as error:
        logger.warning("no AWS credentials", extra={"why": type(error).__name__})
        raise _NotLoaded(type(error).__name__) from None

"""AWS on a loopback port: its check of a signature, written from the specification, and what gives credentials.

Signature Version 4 as in "Create a signed AWS API request" of the IAM user guide; nothing of botocore is used here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

#: Gives the status and the body of an answer.
Answerer = Callable[["Raw"], tuple[int, bytes]]


@dataclass
class Raw:
    """A request as it stood on the wire; header names are lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class FakeAws:
    def __init__(self, answer: Answerer) -> None:
        self.answer = answer
        self.requests: list[Raw] = []
        self.url = ""
        self.asked = asyncio.Event()  # a request came
        self.open = asyncio.Event()  # answers wait for it
        self.open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = lines[0].split(" ")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Raw(method, target, headers, body)
            self.requests.append(request)
            self.asked.set()
            await self.open.wait()
            status, answer = self.answer(request)
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(answer)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + answer)
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def fake_aws(answer: Answerer) -> AsyncIterator[FakeAws]:
    fake = FakeAws(answer)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        fake.open.set()
        server.close()


def assume_role_answer(key: str, secret: str, token: str, expires: str) -> bytes:
    """What STS says to AssumeRole; `expires` is a time in ISO 8601."""
    return f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
      <Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
      <SessionToken>{token}</SessionToken><Expiration>{expires}</Expiration></Credentials>
      <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
    </AssumeRoleResult></AssumeRoleResponse>""".encode()


def instance_metadata(key: str, secret: str, expires: str) -> Answerer:
    """The metadata service of an instance that has a role."""
    credentials = {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": key,
        "SecretAccessKey": secret,
        "Token": "instance-token",
        "Expiration": expires,
        "LastUpdated": "2020-01-01T00:00:00Z",
    }

    def answer(request: Raw) -> tuple[int, bytes]:
        if request.method == "PUT":
            return 200, b"metadata-token"
        return 200, b"role" if request.target.endswith("/security-credentials/") else json.dumps(credentials).encode()

    return answer


def signature_problem(request: Raw, key: str, secret: str, scope: tuple[str, str]) -> str | None:
    """Why AWS would refuse the signature of `request`; None when it would not. `scope` is region and service."""
    kind, _, rest = request.headers.get("authorization", "").partition(" ")
    if kind != "AWS4-HMAC-SHA256":
        return "not signed"
    fields = dict(entry.strip().split("=", 1) for entry in rest.split(","))
    moment = request.headers["x-amz-date"]
    credential = "/".join((moment[:8], *scope, "aws4_request"))
    if fields["Credential"] != f"{key}/{credential}":
        return f"credential {fields['Credential']}"
    signed = fields["SignedHeaders"].split(";")
    if "host" not in signed or signed != sorted(signed):
        return f"signed headers {signed}"
    text = "\n".join(("AWS4-HMAC-SHA256", moment, credential, _digest(_canonical(request, signed).encode())))
    signing_key = f"AWS4{secret}".encode()
    for step in credential.split("/"):
        signing_key = _mac(signing_key, step)
    expected = _mac(signing_key, text).hex()
    return None if hmac.compare_digest(expected, fields["Signature"]) else "the signature does not match"


def _canonical(request: Raw, signed: list[str]) -> str:
    """The path as it stood on the wire, encoded once more: every service but S3 wants that."""
    path, _, query = request.target.partition("?")
    pairs = sorted(query.split("&")) if query else []
    headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in signed)
    return "\n".join(
        (
            request.method,
            quote(path, safe="/-_.~"),
            "&".join(pairs),
            headers,
            ";".join(signed),
            _digest(request.body),
        )
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()

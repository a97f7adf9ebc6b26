"""What `serve` says when it is ready: where the admin is, and in demo mode a call that works."""

from __future__ import annotations

from django.conf import settings

from gatewaysite.demo_secrets import FILE_NAME as DEMO_FILE
from gatewaysite.demo_secrets import read_demo_secrets

ADMIN_LOGIN = "admin"
DEMO_MODEL = "demo-chat"


def banner(host: str, port: int) -> str:
    """Lines for people. The demo's login and key are shown, no other installation's are known here."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host  # noqa: S104
    base = f"http://{shown}:{port}"
    lines = ["", f"Tollbar serves {base}", f"  admin     {base}/admin/", f"  API docs  {base}/v1/docs"]
    demo = _demo()
    if demo.get("ADMIN_PASSWORD"):
        lines[2] += f"   login: {ADMIN_LOGIN}   password: {demo['ADMIN_PASSWORD']}"
    if demo.get("DEMO_KEY"):
        lines += ["", f"Demo API key: {demo['DEMO_KEY']}", "", "Try it:", *_curl(base, demo["DEMO_KEY"])]
    return "\n".join([*lines, ""])


def _demo() -> dict[str, str]:
    path = settings.STATE_DIR / DEMO_FILE
    return read_demo_secrets(path) if settings.DEMO and path.exists() else {}


def _curl(base: str, key: str) -> list[str]:
    return [
        f"  curl {base}/v1/chat \\",
        f"    -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\",
        f'    -d \'{{"model": "{DEMO_MODEL}", "messages": [{{"role": "user", "content": "Hello!"}}]}}\'',
    ]

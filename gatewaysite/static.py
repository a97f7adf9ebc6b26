"""Static files of the admin and the API docs, straight from the packages: nothing to collect, nothing from a CDN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise, but the answer is in memory: an ASGI server cannot stream a synchronous file, and they are small."""

    def add_files(self, root: str, prefix: str | None = None) -> None:
        if Path(root).is_dir():  # STATIC_ROOT is there only where somebody collected the files
            super().add_files(root, prefix)

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found: Any = static_file.get_response(str(request.method), request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status), headers=dict(found.headers))
        if "Content-Type" not in dict(found.headers):
            del response["Content-Type"]
        return response

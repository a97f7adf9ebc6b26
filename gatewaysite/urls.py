"""What Django answers: people's pages and the reads of the control plane. The data plane is in gatewaysite.asgi."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from gatewaysite.health import healthz, readyz
from gatewaysite.metrics import metrics
from proxy.v1 import api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("v1/", api.urls),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
]

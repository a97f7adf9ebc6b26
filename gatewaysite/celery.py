"""The Celery application: JSON only, acknowledged after the work, a static beat schedule.

Tasks are short and idempotent. What must happen later is a row with a due time that a task looks for; never a long
countdown. On the embedded store there is no broker: the server's own job loop does the same work.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gatewaysite.settings")

app = Celery("tollbar")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_max_tasks_per_child=1000,
    task_time_limit=300,
    task_soft_time_limit=240,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 600},
    timezone="UTC",
    beat_schedule={},
)
app.autodiscover_tasks()

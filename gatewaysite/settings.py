"""Django's settings, all from gatewaysite.env. What each variable of the environment does: docs/settings.md."""

from __future__ import annotations

from typing import Any

import django_stubs_ext

from gatewaysite import unfold
from gatewaysite.env import BASE_DIR, environment
from gatewaysite.logging import configure_structlog, logging_config

# Lets typed declarations such as ModelAdmin[Tenant] stand at run time.
django_stubs_ext.monkeypatch()

ENVIRONMENT = environment()

# ---------------------------------------------------------------------------------------------------- Tollbar's own

DEMO = ENVIRONMENT.demo
STATE_DIR = ENVIRONMENT.state_dir
KEY_PEPPER = ENVIRONMENT.key_pepper
FIELD_ENCRYPTION_KEYS = ENVIRONMENT.field_encryption_keys
REDIS_URL = ENVIRONMENT.redis_url
GATEWAY_CONFIG = ENVIRONMENT.gateway_config
RATE_LIMIT_REDIS_FAILURE_POLICY = ENVIRONMENT.rate_limit_redis_failure_policy
BUDGET_REDIS_FAILURE_POLICY = ENVIRONMENT.budget_redis_failure_policy
MAX_REQUEST_SIZE_BYTES = ENVIRONMENT.max_request_size_bytes
CHAOS_ENABLED = ENVIRONMENT.chaos_enabled
WEBHOOK_ALLOW_PRIVATE_NETWORKS = ENVIRONMENT.webhook_allow_private_networks
PROVIDER_ALLOW_PRIVATE_NETWORKS = ENVIRONMENT.provider_allow_private_networks
METRICS_TOKEN = ENVIRONMENT.metrics_token
LOG_LEVEL = ENVIRONMENT.log_level
OTEL_EXPORTER_OTLP_ENDPOINT = ENVIRONMENT.otel_exporter_otlp_endpoint
OTEL_GENAI = ENVIRONMENT.otel_genai
DRAIN_SECONDS = ENVIRONMENT.drain_seconds
RESERVATION_GRACE_SECONDS = ENVIRONMENT.reservation_grace_seconds
WORKERS = ENVIRONMENT.workers
TRUSTED_PROXIES = ENVIRONMENT.trusted_proxies

# ---------------------------------------------------------------------------------------------------------- Django

SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
ROOT_URLCONF = "gatewaysite.urls"
ASGI_APPLICATION = "gatewaysite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
FORMAT_MODULE_PATH = ["gatewaysite.formats"]

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "gatewaysite.admin_app.TollbarAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "ninja",
    "audit",
    "tenants",
    "billing",
    "proxy",
    "webhooks",
    "gatewaysite",
]

MIDDLEWARE = [
    "gatewaysite.request_ids.RequestIdMiddleware",
    "gatewaysite.errors.JsonErrorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "gatewaysite.content_security.ContentSecurityMiddleware",
    "gatewaysite.static.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# -------------------------------------------------------------------------------------------------------- database

DATABASES: dict[str, dict[str, Any]] = {"default": {**ENVIRONMENT.database, "ATOMIC_REQUESTS": False}}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # IMMEDIATE takes the write lock when a transaction begins: two writers wait for each other instead of failing.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-8000;",
    }
    STATE_DIR.mkdir(parents=True, exist_ok=True)
else:
    # Under ASGI every request has a thread of its own, so a connection kept open would never be used again. The long
    # threads (drain, snapshot) keep theirs anyhow. `?conn_max_age=60` in DATABASE_URL is for WSGI-like servers.
    DATABASES["default"].setdefault("CONN_MAX_AGE", 0)
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)

# ---------------------------------------------------------------------------------------------------- cache, jobs

if REDIS_URL.startswith(("redis://", "rediss://")):
    CACHES: dict[str, dict[str, Any]] = {
        "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS_URL, "KEY_PREFIX": "tb:django"}
    }
else:  # embedded; clusters and sentinels: nothing that is cached must be shared
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
DJANGO_REDIS_IGNORE_EXCEPTIONS = True
SESSION_ENGINE = "django.contrib.sessions.backends.db"
CELERY_BROKER_URL = ENVIRONMENT.celery_broker_url

# -------------------------------------------------------------------------------------------------------- security

_HTTPS = ENVIRONMENT.https
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.csrf_trusted_origins)
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = _HTTPS
# Programs do not follow a redirect with their key: only people's pages are moved to https.
SECURE_REDIRECT_EXEMPT = [r"^v1/", r"^api/", r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 365 * 86400 if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _HTTPS
SILENCED_SYSTEM_CHECKS = [
    "security.W021",  # preloading is a promise of a whole domain, made by its owner with the browsers' vendors
    "models.W047",  # SQLite cannot hold these constraints itself; forms and the configuration file check them too
]
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_REQUEST_SIZE_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000
DATA_UPLOAD_MAX_NUMBER_FILES = 10
FILE_UPLOAD_MAX_MEMORY_SIZE = MAX_REQUEST_SIZE_BYTES

AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 1  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False
AXES_IPWARE_META_PRECEDENCE_ORDER = ["REMOTE_ADDR"]  # forwarding headers are the server's business (TRUSTED_PROXIES)

# ---------------------------------------------------------------------------------------------------- static files

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [folder for folder in [BASE_DIR / "static"] if folder.is_dir()]
WHITENOISE_USE_FINDERS = True  # no collectstatic step
WHITENOISE_AUTOREFRESH = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# ----------------------------------------------------------------------------------------------------------- admin

UNFOLD = unfold.UNFOLD

# --------------------------------------------------------------------------------------------------------- logging

configure_structlog()
LOGGING = logging_config(LOG_LEVEL)

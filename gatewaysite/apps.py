from django.apps import AppConfig


class GatewaysiteConfig(AppConfig):
    name = "gatewaysite"
    verbose_name = "Tollbar"

    def ready(self) -> None:
        from gatewaysite import checks  # noqa: F401  (registers them)

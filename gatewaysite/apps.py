from django.apps import AppConfig


class GatewaysiteConfig(AppConfig):
    name = "gatewaysite"
    verbose_name = "Tollbar"

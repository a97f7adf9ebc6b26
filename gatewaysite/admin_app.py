"""Puts our site in the place of django.contrib.admin's. (Entries of INSTALLED_APPS are imported before any model.)"""

from django.contrib.admin.apps import AdminConfig


class TollbarAdminConfig(AdminConfig):
    default_site = "gatewaysite.admin_site.TollbarAdminSite"

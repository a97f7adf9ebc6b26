"""What must hold of tenants and keys beyond what their columns say. Forms, serializers and services all ask here."""

from __future__ import annotations

import ipaddress

from django.core.exceptions import ValidationError

from tenants.models import ApiKey
from tenants.names import fault_of_name
from tenants.scopes import SCOPES


def check_name(text: str) -> None:
    """Raises ValidationError for a name that hides or reorders text."""
    if fault := fault_of_name(text):
        raise ValidationError({"name": f"The name {fault}."})


def check_key(key: ApiKey) -> None:
    """Raises ValidationError for a key whose name, scopes, models or networks cannot be."""
    check_name(key.name)
    if not _is_list_of_texts(key.scopes) or not set(key.scopes) <= set(SCOPES) or not key.scopes:
        raise ValidationError({"scopes": f"Name at least one of {', '.join(SCOPES)}."})
    if not _is_list_of_texts(key.allowed_models):
        raise ValidationError({"allowed_models": 'Give a list of model names, such as ["gpt-*"].'})
    if not _is_list_of_texts(key.cidrs):
        raise ValidationError({"cidrs": 'Give a list of networks, such as ["10.0.0.0/8"].'})
    for text in key.cidrs:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise ValidationError({"cidrs": f"{text[:50]!r} is no network such as 10.0.0.0/8."}) from error


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)

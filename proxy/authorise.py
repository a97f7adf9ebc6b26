"""What a principal may do: the tenant's state, its scopes, the network it calls from, whom it may speak for."""

from __future__ import annotations

import ipaddress

from proxy.errors import BadRequest, Forbidden
from proxy.exchange import Principal


def authorise(principal: Principal, scope: str | None, address: str) -> None:
    """Raises Forbidden: tenant_suspended, insufficient_scope or ip_not_allowed. `address` is the socket's peer.

    `scope` None: any scope will do (reads of one's own usage and limits).
    """
    if not principal.tenant.active:
        raise Forbidden("This tenant is suspended.", code="tenant_suspended")
    if scope is not None and scope not in principal.scopes:
        raise Forbidden(f"This credential lacks the scope '{scope}'.", code="insufficient_scope")
    if principal.key is not None and principal.key.cidrs:
        _check_network(principal, address)


def _check_network(principal: Principal, address: str) -> None:
    assert principal.key is not None
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        raise Forbidden("This key may not be used from this address.", code="ip_not_allowed") from None
    if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
        peer = peer.ipv4_mapped
    if not any(peer in network for network in principal.key.cidrs):
        raise Forbidden("This key may not be used from this address.", code="ip_not_allowed")


def effective_user(principal: Principal, named: str | None) -> str | None:
    """The user a request counts for: a token's subject, or the one a key may name."""
    if principal.user is not None:
        return principal.user
    if named is None or principal.key is None or not principal.key.may_speak_for_users:
        return None
    if "\x00" in named:
        raise BadRequest("user must not hold NUL characters.", param="user")
    return named

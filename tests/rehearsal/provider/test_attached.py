"""What tests rely on when Terraforms attach to one provider: they never meet in it."""

from types import SimpleNamespace
from typing import Any

import pytest
from tf.gen import tfplugin_pb2 as pb

from rehearsal.provider import schema, values
from rehearsal.provider.api import Api
from tests import attached


def _call(providers: attached.Providers, peer: str, name: str, request: Any) -> Any:
    """A call as gRPC makes it for a connection."""
    handler = providers.service(SimpleNamespace(method=f"/tfplugin6.Provider/{name}"))
    assert handler is not None
    assert handler.unary_unary is not None
    return handler.unary_unary(request, SimpleNamespace(peer=lambda: peer))  # type: ignore[arg-type]


def _configure(providers: attached.Providers, peer: str) -> None:
    it = schema.load_provider()
    block = values.encode(schema.complete(it.block, {}), it.type)
    request = pb.ConfigureProvider.Request(config=pb.DynamicValue(msgpack=block))
    assert not _call(providers, peer, "ConfigureProvider", request).diagnostics


def _read(providers: attached.Providers, peer: str) -> str:
    """What a read of a network answers that is nowhere to be found."""
    it = schema.load("resources", "google_compute_network")
    state = values.encode(schema.complete(it.block, {"name": "net", "id": "x"}), it.type)
    request = pb.ReadResource.Request(
        type_name="google_compute_network", current_state=pb.DynamicValue(msgpack=state)
    )
    answer = _call(providers, peer, "ReadResource", request)
    return " ".join(found.summary + found.detail for found in answer.diagnostics)


def test_one_terraforms_provider_is_not_configured_by_another() -> None:
    providers = attached.Providers({})
    _configure(providers, "one")
    assert "has not configured the provider" in _read(providers, "another")


def test_each_cloud_has_an_environment_of_its_own() -> None:
    clouds = [attached.Providers({"GOOGLE_PROJECT": project}) for project in ("one", "two")]
    for providers in clouds:
        _configure(providers, "terraform")
    assert [providers.of("terraform")._connection().project for providers in clouds] == [
        "one",
        "two",
    ]


def test_a_port_that_is_used_again_gets_a_fresh_connection_to_google(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[Api] = []
    monkeypatch.setattr(Api, "close", lambda api: closed.append(api))  # noqa: PLW0108 - bound to it
    providers = attached.Providers({})
    _configure(providers, "port")
    first = providers.of("port")._connection()
    _configure(providers, "port")
    assert closed == [first]
    assert providers.of("port")._connection() is not first


def test_an_interrupt_is_for_one_terraform_alone() -> None:
    providers = attached.Providers({})
    for peer in ("one", "another"):
        _configure(providers, peer)
    _call(providers, "one", "StopProvider", pb.StopProvider.Request())
    stopped = [providers.of(peer)._connection().cancel.is_set() for peer in ("one", "another")]
    assert stopped == [True, False]

"""The provider's side of Terraform's plugin protocol 6.

Everything that knows Google is behind `Implementations`; here requests meet the schema, the
validation and the planning. Each answer says that the provider has HashiCorp's plugin SDK's type
system ("legacy"), since only then may a plan set defaults of attributes that are not computed.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import grpc
from tf.gen import tfplugin_pb2 as pb

from rehearsal.provider import messages, planning, schema, validation, values
from rehearsal.provider.resource import UNKNOWN, DataSource, PartialError, Resource, State
from rehearsal.provider.schema import Kind, Schema

if TYPE_CHECKING:  # a start that does not need it does not load it
    from rehearsal.provider.api import Api

SERVICE: Final = "tfplugin6.Provider"


@dataclass(frozen=True, slots=True)
class Implementations:
    """What stands behind the schema."""

    resources: Mapping[str, Resource]  # resource types by name
    data_sources: Mapping[str, DataSource]
    # from the decoded provider block and the environment to the connection
    connect: Callable[[Mapping[str, Any], Mapping[str, str]], Api]


class Provider:
    """The provider: one method per call of the protocol.

    `load`: gives the implementations; called when they are first needed, because a process that
    only validates needs none.
    """

    def __init__(
        self, load: Callable[[], Implementations], environ: Mapping[str, str] = os.environ
    ) -> None:
        self._load = load
        self._environ = environ
        self._api: Api | None = None

    @functools.cached_property
    def _implementations(self) -> Implementations:
        return self._load()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a gRPC server needs to serve the provider; other calls answer UNIMPLEMENTED."""
        calls: dict[str, Callable[[Any], Any]] = {
            "GetMetadata": self.metadata,
            "GetProviderSchema": self.schema,
            "GetFunctions": self.functions,
            "ValidateProviderConfig": self.validate_provider,
            "ValidateResourceConfig": self.validate_resource,
            "ValidateDataResourceConfig": self.validate_data_source,
            "ConfigureProvider": self.configure,
            "StopProvider": self.stop,
            "UpgradeResourceState": self.upgrade,
            "ReadResource": self.read,
            "PlanResourceChange": self.plan,
            "ApplyResourceChange": self.apply,
            "ImportResourceState": self.import_state,
            "ReadDataSource": self.read_data_source,
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: grpc.unary_unary_rpc_method_handler(
                    functools.partial(_answer, call, getattr(pb, name).Response),
                    request_deserializer=getattr(pb, name).Request.FromString,
                    response_serializer=getattr(pb, name).Response.SerializeToString,
                )
                for name, call in calls.items()
            },
        )

    def metadata(self, _request: Any) -> Any:
        """The names of the types."""
        return pb.GetMetadata.Response(
            server_capabilities=_capabilities(),
            resources=[
                pb.GetMetadata.ResourceMetadata(type_name=name)
                for name in schema.names("resources")
            ],
            data_sources=[
                pb.GetMetadata.DataSourceMetadata(type_name=name) for name in schema.names("data")
            ],
        )

    def schema(self, _request: Any) -> Any:
        """The whole schema."""
        response = pb.GetProviderSchema.Response(
            server_capabilities=_capabilities(),
            provider=messages.schema(schema.load_provider()),
        )
        kinds: tuple[tuple[Any, Kind], ...] = (
            (response.resource_schemas, "resources"),
            (response.data_source_schemas, "data"),
        )
        for schemas, kind in kinds:
            for name in schema.names(kind):
                schemas[name].CopyFrom(messages.schema(schema.load(kind, name)))
        return response

    def functions(self, _request: Any) -> Any:
        """None: the modules call no function of the provider."""
        return pb.GetFunctions.Response()

    def validate_provider(self, request: Any) -> Any:
        """Findings in the provider block."""
        return pb.ValidateProviderConfig.Response(
            diagnostics=_findings(schema.load_provider(), request)
        )

    def validate_resource(self, request: Any) -> Any:
        """Findings in a resource block."""
        return pb.ValidateResourceConfig.Response(
            diagnostics=_findings(schema.load("resources", request.type_name), request)
        )

    def validate_data_source(self, request: Any) -> Any:
        """Findings in a data block."""
        return pb.ValidateDataResourceConfig.Response(
            diagnostics=_findings(schema.load("data", request.type_name), request)
        )

    def configure(self, request: Any) -> Any:
        """Take the provider block; what is not known yet counts as not configured."""
        config = _decode(request.config, schema.load_provider())
        known = {name: None if value is UNKNOWN else value for name, value in config.items()}
        self.close()
        self._api = self._implementations.connect(known, self._environ)
        return pb.ConfigureProvider.Response()

    def stop(self, _request: Any) -> Any:
        """End what is under way, soon and in order; the process stays until it is told to go."""
        if self._api is not None:
            self._api.cancel.set()
        return pb.StopProvider.Response()

    def close(self) -> None:
        """Close the connections to Google; whoever ends the process needs not."""
        if self._api is not None:
            self._api.close()

    def upgrade(self, request: Any) -> Any:
        """A stored state, in the shape of today's schema."""
        it = schema.load("resources", request.type_name)
        state = values.decode_json(request.raw_state.json, it.type)
        upgraded = _encode(schema.complete(it.block, state), it)
        return pb.UpgradeResourceState.Response(upgraded_state=upgraded)

    def read(self, request: Any) -> Any:
        """The object as it is now."""
        it = schema.load("resources", request.type_name)
        state = _decode(request.current_state, it)
        found = self._resource(request.type_name).read(self._connection(), copy.deepcopy(state))
        if found is not None:
            found = planning.settle(it.block, schema.complete(it.block, found), state)
        return pb.ReadResource.Response(new_state=_encode(found, it), private=request.private)

    def plan(self, request: Any) -> Any:
        """What would change, and whether that takes another object."""
        it = schema.load("resources", request.type_name)
        proposed = _decode(request.proposed_new_state, it)
        if proposed is None:
            return pb.PlanResourceChange.Response(
                planned_state=request.proposed_new_state, planned_private=request.prior_private
            )
        prior = _decode(request.prior_state, it)
        planned = self._planned(request.type_name, it, prior, proposed)
        replacing = () if prior is None else planning.replacements(it.block, prior, planned)
        return pb.PlanResourceChange.Response(
            planned_state=_encode(planned, it),
            requires_replace=[messages.path(path) for path in replacing],
            planned_private=request.prior_private,
            legacy_type_system=True,
        )

    def _planned(self, name: str, it: Schema, prior: State | None, proposed: State) -> State:
        resource = self._resource(name)
        planned = planning.plan(it.block, prior, proposed, resource.suppress)
        planned = resource.customize(
            self._connection(), copy.deepcopy(prior), copy.deepcopy(planned)
        )
        return schema.complete(it.block, planned)

    def apply(self, request: Any) -> Any:
        """Do what was planned; after a failure the answer says what is there."""
        it = schema.load("resources", request.type_name)
        prior = _decode(request.prior_state, it)
        planned = _decode(request.planned_state, it)
        findings = []
        state: State | None
        try:
            state = self._applied(request.type_name, prior, copy.deepcopy(planned))
        except PartialError as error:
            state = error.state
            findings.append(messages.finding(error.cause))
        except Exception as error:  # noqa: BLE001 - told to Terraform, with the state that stands
            state = prior
            findings.append(messages.finding(error))
        if state is not None:
            guide = planned or prior or {}
            state = planning.settle(it.block, schema.complete(it.block, state), guide)
        return pb.ApplyResourceChange.Response(
            new_state=_encode(state, it),
            private=request.planned_private,
            diagnostics=messages.diagnostics(findings),
            legacy_type_system=True,
        )

    def _applied(self, name: str, prior: State | None, planned: State | None) -> State | None:
        resource, api = self._resource(name), self._connection()
        if prior is None:
            return resource.create(api, planned or {})
        if planned is None:
            resource.delete(api, prior)
            return None
        return resource.update(api, prior, planned)

    def import_state(self, request: Any) -> Any:
        """The least state of an object that Terraform then reads."""
        it = schema.load("resources", request.type_name)
        state = self._resource(request.type_name).import_state(self._connection(), request.id)
        imported = pb.ImportResourceState.ImportedResource(
            type_name=request.type_name, state=_encode(schema.complete(it.block, state), it)
        )
        return pb.ImportResourceState.Response(imported_resources=[imported])

    def read_data_source(self, request: Any) -> Any:
        """What Google answers; arguments that the answer leaves out stay as configured."""
        it = schema.load("data", request.type_name)
        config = _decode(request.config, it)
        source = self._implementations.data_sources[request.type_name]
        found = source.read(self._connection(), dict(config))
        state = schema.complete(it.block, config | found)
        return pb.ReadDataSource.Response(state=_encode(state, it))

    def _resource(self, name: str) -> Resource:
        return self._implementations.resources[name]

    def _connection(self) -> Api:
        if self._api is None:
            raise RuntimeError("Terraform has not configured the provider")
        return self._api


def _answer(
    call: Callable[[Any], Any], response: Any, request: Any, _context: grpc.ServicerContext
) -> Any:
    """Call, and turn what goes wrong into the diagnostics of an answer."""
    try:
        return call(request)
    except Exception as error:  # noqa: BLE001 - one failing call must not end the plugin
        return response(diagnostics=messages.diagnostics([messages.finding(error)]))


def _capabilities() -> Any:
    return pb.ServerCapabilities(get_provider_schema_optional=True)


def _findings(it: Schema, request: Any) -> list[Any]:
    return messages.diagnostics(validation.validate(it.block, _decode(request.config, it)))


def _decode(value: Any, it: Schema) -> Any:
    if value.msgpack:
        return values.decode(value.msgpack, it.type)
    return values.decode_json(value.json, it.type)


def _encode(value: State | None, it: Schema) -> Any:
    return pb.DynamicValue(msgpack=values.encode(value, it.type))

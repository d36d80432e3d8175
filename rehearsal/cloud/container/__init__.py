"""Kubernetes Engine v1: clusters, node pools, their operations, the versions on offer.

Clusters and pools are resources of a location; what the nodes are made of is Compute Engine's:
each pool has a template and a managed instance group in each of its zones, as with Google.
"""

from rehearsal.cloud.container import clusters, node_pools, operations, versions
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Reply, Request

_PLACE = "projects/{project}/locations/{location}"
_CLUSTER = f"{_PLACE}/clusters/{{cluster}}"
_POOL = f"{_CLUSTER}/nodePools/{{pool}}"

routes = Routes(
    {
        f"GET {_PLACE}/serverConfig": versions.server_config,
        f"GET {_PLACE}/operations": operations.every,
        f"GET {_PLACE}/operations/{{operation}}": operations.get,
        f"GET {_PLACE}/clusters": clusters.every,
        f"POST {_PLACE}/clusters": clusters.create,
        f"POST {_CLUSTER}:setResourceLabels": clusters.set_labels,
        f"POST {_CLUSTER}:setMaintenancePolicy": clusters.set_maintenance,
        f"POST {_CLUSTER}:setLegacyAbac": clusters.set_field("legacyAbac"),
        f"POST {_CLUSTER}:setNetworkPolicy": clusters.set_field("networkPolicy"),
        f"POST {_CLUSTER}:setLogging": clusters.set_field("loggingService"),
        f"POST {_CLUSTER}:setMonitoring": clusters.set_field("monitoringService"),
        f"POST {_CLUSTER}:setLocations": clusters.set_field("locations"),
        f"GET {_POOL}": node_pools.get,
        f"PUT {_POOL}": node_pools.update,
        f"DELETE {_POOL}": node_pools.delete,
        f"POST {_POOL}:setSize": node_pools.set_size,
        f"POST {_POOL}:setManagement": node_pools.setting("management", "SET_NODE_POOL_MANAGEMENT"),
        f"POST {_POOL}:setAutoscaling": node_pools.setting("autoscaling", "UPDATE_NODE_POOL"),
        f"GET {_CLUSTER}/nodePools": node_pools.every,
        f"POST {_CLUSTER}/nodePools": node_pools.create,
        f"GET {_CLUSTER}": clusters.get,
        f"PUT {_CLUSTER}": clusters.update,
        f"DELETE {_CLUSTER}": clusters.delete,
    },
    api="container.v1",
)


def service(request: Request, store: Store) -> Reply:
    """Answer a request below /container/v1/."""
    versions.upgrade_clusters(request, store)
    return routes(request, store)

"""The Kubernetes API of each simulated cluster, at the path /kubernetes/ENDPOINT.

Real are the paths, server-side apply with the ownership of fields, strict checks against the
schemas of definitions, and the objects. The controllers are simulated: nothing runs between
requests, so each request first lets happen what was due by then (`controllers`).
"""

from rehearsal.cloud.kubernetes import api, controllers, kinds
from rehearsal.cloud.kubernetes.changes import Refusal, no_such_path
from rehearsal.cloud.kubernetes.objects import World
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Reply, Request


def service(request: Request, store: Store) -> Reply:
    """Answer a request to a cluster's API."""
    try:
        return _answer(request, store)
    except Refusal as refusal:
        return refusal.reply()


def _answer(request: Request, store: Store) -> Reply:
    """The answer of the cluster that the path begins with."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Refusal(401, "Unauthorized")
    endpoint, _, path = request.path.partition("/")
    cluster = kinds.find_cluster(request, store, endpoint)
    if cluster is None:
        raise no_such_path()
    world = World(request, store, cluster)
    controllers.make_givens(world)
    controllers.let_pass(world)
    # A change is made to what the last request left, and has its effects before it is answered.
    if request.method == "GET":
        controllers.catch_up(world)
        return api.answer(world, path)
    reply = api.answer(world, path)
    controllers.catch_up(world)
    return reply

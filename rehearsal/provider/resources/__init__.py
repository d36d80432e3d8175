"""The resource types and data sources: those that a root in `terraform/` has.

Adding one is its schema (`trim.py`), a table of where the API differs from it (`shapes.py`), and a
line here.
"""

from collections.abc import Mapping

from rehearsal.provider.resource import DataSource, Resource
from rehearsal.provider.resources import (
    cluster,
    dashboard,
    data,
    filestore,
    group,
    iam,
    image,
    pool,
    storage,
    template,
    vpc,
)

RESOURCES: Mapping[str, Resource] = {
    "google_compute_firewall": vpc.FIREWALL,
    "google_compute_instance_group_manager": group.RESOURCE,
    "google_compute_instance_template": template.RESOURCE,
    "google_compute_network": vpc.NETWORK,
    "google_compute_resize_request": group.RESIZE_REQUEST,
    "google_compute_resource_policy": vpc.POLICY,
    "google_compute_router": vpc.ROUTER,
    "google_compute_router_nat": vpc.NAT,
    "google_compute_subnetwork": vpc.SUBNETWORK,
    "google_container_cluster": cluster.RESOURCE,
    "google_container_node_pool": pool.RESOURCE,
    "google_filestore_instance": filestore.RESOURCE,
    "google_monitoring_dashboard": dashboard.RESOURCE,
    "google_project_iam_member": iam.PROJECT_MEMBER,
    "google_service_account": iam.ACCOUNT,
    "google_service_account_iam_member": iam.ACCOUNT_MEMBER,
    "google_storage_bucket_iam_member": iam.BUCKET_MEMBER,
    "google_storage_bucket_object": storage.RESOURCE,
}

DATA_SOURCES: Mapping[str, DataSource] = {
    "google_compute_default_service_account": data.DEFAULT_ACCOUNT,
    "google_compute_image": image.DATA,
    "google_compute_network": vpc.DATA_NETWORK,
    "google_compute_subnetwork": vpc.DATA_SUBNETWORK,
    "google_container_engine_versions": data.VERSIONS,
    "google_project": data.PROJECT,
}

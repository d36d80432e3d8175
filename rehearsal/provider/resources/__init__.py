"""The resource types and data sources, one module per noun.

Adding one is a module that describes it with the tables of `fields` and `rest`, and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.provider.resources import (
    container_cluster,
    container_engine_versions,
    container_node_pool,
    default_service_account,
    filestore_instance,
    group,
    image,
    monitoring_dashboard,
    project,
    project_iam_member,
    project_service,
    service_account,
    service_account_iam_member,
    storage_bucket,
    storage_bucket_iam_member,
    storage_bucket_object,
    template,
    vpc,
    zones,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.provider.resource import DataSource, Resource

RESOURCES: Mapping[str, Resource] = {
    "google_compute_firewall": vpc.RESOURCE_FIREWALL,
    "google_compute_instance_group_manager": group.RESOURCE,
    "google_compute_instance_template": template.RESOURCE,
    "google_compute_network": vpc.RESOURCE_NETWORK,
    "google_compute_resize_request": group.RESIZE_REQUEST,
    "google_compute_resource_policy": vpc.RESOURCE_POLICY,
    "google_compute_router": vpc.RESOURCE_ROUTER,
    "google_compute_router_nat": vpc.RESOURCE_NAT,
    "google_compute_subnetwork": vpc.RESOURCE_SUBNETWORK,
    "google_container_cluster": container_cluster.RESOURCE,
    "google_container_node_pool": container_node_pool.RESOURCE,
    "google_filestore_instance": filestore_instance.RESOURCE,
    "google_monitoring_dashboard": monitoring_dashboard.RESOURCE,
    "google_project_iam_member": project_iam_member.RESOURCE,
    "google_project_service": project_service.RESOURCE,
    "google_service_account": service_account.RESOURCE,
    "google_service_account_iam_member": service_account_iam_member.RESOURCE,
    "google_storage_bucket": storage_bucket.RESOURCE,
    "google_storage_bucket_iam_member": storage_bucket_iam_member.RESOURCE,
    "google_storage_bucket_object": storage_bucket_object.RESOURCE,
}

DATA_SOURCES: Mapping[str, DataSource] = {
    "google_compute_default_service_account": default_service_account.DATA,
    "google_compute_image": image.DATA,
    "google_compute_network": vpc.DATA_NETWORK,
    "google_compute_subnetwork": vpc.DATA_SUBNETWORK,
    "google_compute_zones": zones.DATA,
    "google_container_engine_versions": container_engine_versions.DATA,
    "google_project": project.DATA,
}

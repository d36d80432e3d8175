"""What Google adds to a cluster that its maker has not said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDONS: Final[Mapping[str, Any]] = {
    "httpLoadBalancing": {},
    "horizontalPodAutoscaling": {},
    "kubernetesDashboard": {"disabled": True},
    "networkPolicyConfig": {"disabled": True},
    "dnsCacheConfig": {"enabled": True},
    "gcePersistentDiskCsiDriverConfig": {"enabled": True},
}

CLUSTER: Final[Mapping[str, Any]] = {
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
    "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
    "monitoringConfig": {
        "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
        "managedPrometheusConfig": {"enabled": True},
    },
    "masterAuth": {
        "clusterCaCertificate": "UkVIRUFSU0FM",
        "clientCertificateConfig": {},
    },
    "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
    "authenticatorGroupsConfig": {},
    "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
    "nodePoolDefaults": {
        "nodeConfigDefaults": {"loggingConfig": {"variantConfig": {"variant": "DEFAULT"}}}
    },
    "nodePoolAutoConfig": {"nodeKubeletConfig": {"insecureKubeletReadonlyPortEnabled": False}},
    "securityPostureConfig": {
        "mode": "BASIC",
        "vulnerabilityMode": "VULNERABILITY_MODE_UNSPECIFIED",
    },
    "shieldedNodes": {"enabled": True},
    "releaseChannel": {"channel": "REGULAR"},
    "rbacBindingConfig": {
        "enableInsecureBindingSystemUnauthenticated": True,
        "enableInsecureBindingSystemAuthenticated": True,
    },
    "enterpriseConfig": {"clusterTier": "STANDARD"},
    "podAutoscaling": {"hpaProfile": "HPA_PROFILE_UNSPECIFIED"},
    "anonymousAuthenticationConfig": {"mode": "ENABLED"},
    "secretManagerConfig": {"enabled": False},
    "nodeIpv4CidrSize": 24,
}

IP_ALLOCATION: Final[Mapping[str, Any]] = {
    "podCidrOverprovisionConfig": {},
    "defaultPodIpv4RangeUtilization": 0.001,
    "networkTierConfig": {"networkTier": "NETWORK_TIER_DEFAULT"},
}

AUTHORIZED_NETWORKS: Final[Mapping[str, Any]] = {"gcpPublicCidrsAccessEnabled": True}
"""Of control planes that are reached by IP."""

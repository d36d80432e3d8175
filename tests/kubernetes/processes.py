"""A Kubernetes with a real Kueue on loopback, for as long as a test session."""

import base64
import contextlib
import copy
import datetime as dt
import ipaddress
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from provision.kinds.gke.kubernetes import kueue
from provision.kinds.gke.kubernetes.client import Cluster
from provision.time.deadline import TransientError

STAYS = "aiinfra.test/stays"
"""The annotation of pods that do not end by themselves."""

_READY = 90.0
_CONTROLLERS = (
    "job-controller,garbage-collector-controller,namespace-controller,"
    "serviceaccount-controller,ttl-after-finished-controller,node-lifecycle-controller,"
    "persistentvolume-binder-controller"
)


@dataclass
class ControlPlane:
    """The programs, what they listen on, and where they keep things."""

    programs: Mapping[str, Path]
    folder: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    ports: dict[str, int] = field(default_factory=dict)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = (
            *("etcd", "peer", "api", "webhook", "health", "metrics", "kcm", "scheduler", "kwok"),
            *("jobset-webhook", "jobset-health", "ray-health", "ray-metrics"),
        )
        self.ports = dict(zip(names, _free_ports(len(names)), strict=True))

    @property
    def url(self) -> str:
        """Of the Kubernetes API."""
        return f"https://127.0.0.1:{self.ports['api']}"

    @property
    def certificate(self) -> Path:
        """Of the Kubernetes API, signed by itself."""
        return self.folder / "certs" / "apiserver.crt"

    def cluster(self) -> Cluster:
        """A client that may do everything."""
        return Cluster(self.url, lambda _: self.token, str(self.certificate))

    def start_api(self) -> None:
        """Start etcd and the API server."""
        _write_keys(self.folder)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{self.token},admin,admin,system:masters\n")
        tokens.chmod(0o600)
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peer"))
        self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        self._start(
            "kube-apiserver",
            f"--etcd-servers={client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.ports['api']}",
            f"--cert-dir={self.folder / 'certs'}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
        )
        self._await("kube-apiserver", lambda: self._is_ready(f"{self.url}/readyz"))
        _write_kubeconfig(self)

    def start_kueue(self) -> None:
        """Start Kueue; its manifest has to be there, turned to loopback."""
        certs = self.folder / "kueue-certs"
        certs.mkdir()
        configuration = self.folder / "kueue.yaml"
        configuration.write_text(yaml.safe_dump(_kueue_configuration(self, certs)))
        self._start("kueue", f"--config={configuration}", "--zap-log-level=2")
        # What a kubelet does: the certificates that Kueue has made become files.
        self._await("kueue", lambda: self._copy_certificates(certs))
        self._await(
            "kueue", lambda: self._is_ready(f"http://127.0.0.1:{self.ports['health']}/readyz")
        )

    def start_jobset(self) -> str:
        """Start JobSet's controller; the authority by which its webhooks are known, in PEM."""
        certs = self.folder / "jobset-certs"
        certs.mkdir()
        authority = _write_certificate(certs)
        configuration = self.folder / "jobset.yaml"
        configuration.write_text(yaml.safe_dump(_jobset_configuration(self, certs)))
        self._start("jobset", f"--config={configuration}")
        ready = f"http://127.0.0.1:{self.ports['jobset-health']}/readyz"
        self._await("jobset", lambda: self._is_ready(ready))
        return authority

    def start_ray_operator(self) -> None:
        """Start what makes pods of RayClusters and RayJobs; their kinds have to be there."""
        self._start(
            "kuberay",
            "--enable-leader-election=false",
            f"--metrics-addr=127.0.0.1:{self.ports['ray-metrics']}",
            f"--health-probe-bind-address=127.0.0.1:{self.ports['ray-health']}",
        )
        self._await(
            "kuberay", lambda: self._is_ready(f"http://127.0.0.1:{self.ports['ray-health']}/readyz")
        )

    def start_nodes(self, stages: Path) -> None:
        """Start what runs jobs: controllers, the scheduler, and kwok for the kubelets."""
        kubeconfig = f"--kubeconfig={self.folder / 'kubeconfig'}"
        common = (kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1")
        self._start(
            "kube-controller-manager",
            *common,
            f"--secure-port={self.ports['kcm']}",
            f"--cert-dir={self.folder / 'kcm-certs'}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--controllers={_CONTROLLERS}",
        )
        self._start(
            "kube-scheduler",
            *common,
            f"--secure-port={self.ports['scheduler']}",
            f"--cert-dir={self.folder / 'scheduler-certs'}",
        )
        self._start(
            "kwok",
            kubeconfig,
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            f"--server-address=127.0.0.1:{self.ports['kwok']}",
            f"--config={stages}",
        )

    def stop(self) -> None:
        """End all programs, the last one first."""
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._running.append(
                subprocess.Popen(
                    [str(self.programs[name]), *arguments],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=os.environ | {"KUBECONFIG": str(self.folder / "kubeconfig")},
                )
            )

    def _await(self, name: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _READY
        while not holds():
            if time.monotonic() > end or self._running[-1].poll() is not None:
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                raise RuntimeError(f"{name} is not ready:\n{log[-4000:]}")
            time.sleep(0.1)

    def _is_ready(self, url: str) -> bool:
        try:
            answer = requests.get(
                url,
                headers={"Authorization": f"Bearer {self.token}"},
                verify=str(self.certificate),
                timeout=5,
            )
        except (requests.ConnectionError, OSError):
            # OSError: the certificate is not written yet.
            return False
        return answer.text == "ok"

    def _copy_certificates(self, folder: Path) -> bool:
        try:
            secret = self.cluster().find(
                "v1", "Secret", "kueue-webhook-server-cert", "kueue-system"
            )
        except TransientError:
            return False
        data: dict[str, str] = (secret or {}).get("data") or {}
        for name, value in data.items():
            (folder / name).write_bytes(base64.b64decode(value))
        return "tls.crt" in data


@contextlib.contextmanager
def running(programs: Mapping[str, Path], folder: Path) -> Iterator[ControlPlane]:
    """A control plane whose API answers; ended at the end, whatever happens."""
    plane = ControlPlane(programs, folder)
    try:
        plane.start_api()
        yield plane
    finally:
        plane.stop()


def on_loopback(things: Sequence[Mapping[str, Any]], port: int) -> list[dict[str, Any]]:
    """A manifest whose program runs beside the cluster: webhooks call 127.0.0.1, no pods."""
    kept = []
    for thing in things:
        kind, name = thing["kind"], thing["metadata"]["name"]
        if kind in ("Deployment", "APIService") or (
            kind == "Service" and name != "kueue-webhook-service"
        ):
            continue
        changed = dict(thing)
        if kind == "Service":
            ports = [{"port": port, "protocol": "TCP"}]
            changed["spec"] = {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports}
        for settings in _client_configs(changed):
            settings["service"]["port"] = port
        kept.append(changed)
    return kept


def _client_configs(thing: Mapping[str, Any]) -> list[dict[str, Any]]:
    configs = [webhook["clientConfig"] for webhook in thing.get("webhooks", [])]
    if thing["kind"] == "CustomResourceDefinition":
        webhook = thing["spec"].get("conversion", {}).get("webhook")
        configs += [webhook["clientConfig"]] if webhook else []
    return configs


def _kueue_configuration(plane: ControlPlane, certs: Path) -> dict[str, Any]:
    ports = plane.ports
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['health']}"},
        "metrics": {"bindAddress": f"127.0.0.1:{ports['metrics']}"},
        "webhook": {"host": "127.0.0.1", "port": ports["webhook"], "certDir": str(certs)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "clientConnection": {"qps": 50, "burst": 100},
        "integrations": {
            "frameworks": [
                "batch/job",
                "jobset.x-k8s.io/jobset",
                "ray.io/rayjob",
                "ray.io/raycluster",
            ]
        },
        # Those of a cluster whose pods claim interfaces: the others have none to count.
        "featureGates": {"VisibilityOnDemand": False, **kueue.NO_CLAIMS},
        # As the manager gets it, in seconds in place of minutes; enough of them that a busy machine
        # has made a job's pods again before it counts as a job that does not come back.
        "waitForPodsReady": kueue.WAIT_FOR_PODS_READY
        | {"timeout": "20s", "recoveryTimeout": "15s"}
        | {"requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 1}},
    }


def _jobset_configuration(plane: ControlPlane, certs: Path) -> dict[str, Any]:
    ports = plane.ports
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports['jobset-health']}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": ports["jobset-webhook"], "certDir": str(certs)},
        "leaderElection": {"leaderElect": False},
        # Its own would be kept in one folder of the machine, whoever runs it.
        "internalCertManagement": {"enable": False},
    }


def called_directly(things: Sequence[Mapping[str, Any]], port: int, authority: str) -> list[Any]:
    """Webhooks' configurations, by which the API calls a port of this machine and no service."""
    changed = copy.deepcopy(list(things))
    for settings in (settings for thing in changed for settings in _client_configs(thing)):
        path = settings.pop("service")["path"]
        settings["url"] = f"https://127.0.0.1:{port}{path}"
        settings["caBundle"] = base64.b64encode(authority.encode()).decode()
    return changed


def _write_certificate(folder: Path) -> str:
    """Write a server's key and certificate for this machine, signed by itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    (folder / "tls.crt").write_bytes(text)
    private = folder / "tls.key"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    return text.decode()


def _write_keys(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = folder / "accounts.key"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    (folder / "accounts.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _write_kubeconfig(plane: ControlPlane) -> None:
    path = plane.folder / "kubeconfig"
    cluster = {"server": plane.url, "certificate-authority": str(plane.certificate)}
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "admin", "user": {"token": plane.token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
                "current-context": "test",
            }
        )
    )
    path.chmod(0o600)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]

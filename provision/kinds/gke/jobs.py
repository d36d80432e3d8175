"""Jobs on a GKE cluster: each is a JobSet, a RayJob or a Job of tasks, whose pods keep its log.

Here they are listed, made, entered and deleted; how far each is: `job_course`.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.kinds import job_folder
from provision.kinds.gke import control_plane, preview
from provision.kinds.gke.job_course import CANCELLED, PODS, Courses, shape_of
from provision.kinds.gke.kubernetes import job_pods, kueue, pods, run_jobs, stages
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.lifecycle import pricing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.deployment.kind import Needs, WayIn
    from provision.documents.job import Job
    from provision.files.archive import Archive
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool

_TAKEN: Final = 409


class GkeJobs(Courses):
    """The jobs of a cluster."""

    def needs(self, spec: JobSpec) -> Needs:
        """Its nodes, and the price of those that come for it."""
        room = preview.room(self._facts, spec, lambda: self._made)
        made = self._made.get(room.pool.name)
        listed = pricing.known(self._context, self._cloud)
        coming = self._coming(room, made)
        return preview.needs(replace(spec, nodes=room.nodes), room, made, coming, listed)

    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Write the folder and the job, and make its JobSet, RayJob or Job."""
        control_plane.require_settings(self._folder, self._record)
        control_plane.require_accounts(self._cloud, self._record)
        self._ask(lambda: stages.require_sources(self._cluster, self._facts), "look at its account")
        room = preview.room(self._facts, spec, lambda: self._made)
        pool = room.pool
        spec, shape = replace(spec, nodes=room.nodes), run_jobs.shape(spec.ray, spec.array)
        listed, made = pricing.known(self._context, self._cloud), self._made.get(pool.name)
        machine = job_folder.machine(made, listed) if made else {}
        taken = [it["metadata"]["name"] for it in self._things()]
        name = self.put(spec, archive, machine, taken)
        where = self._folder.location
        sent = archive.sha256 if archive else spec.files
        folder = f"{where.folder}/{job_folder.name_of(sent)}" if sent else ""
        wanted = run_jobs.Wanted(
            name=name,
            spec=spec,
            pool=pool,
            nodes=room.nodes,
            slots=room.slots,
            bucket=where.bucket,
            folder=folder,
            told=f"{where.folder}/{PODS}/jobs/{name}/",
        )
        try:
            facts = self._facts.also_having(spec.secrets, spec.mounts)
            thing = shape.build(facts, wanted)
            thing = self._facts.mirrored(thing, but=spec.image)
            self._ask(lambda: self._cluster.create(thing), f"submit {name}")
        except KubernetesError as error:
            # A request whose answer was lost is repeated, and finds what it made.
            if error.code != _TAKEN or self._thing(name, shape) is None:
                self.forget(name)
                raise
        return name

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last; first those that others have submitted."""
        return [*(it.name for it in self._others()), *self.ours()]

    def unfinished(self, *, every: bool = False) -> Sequence[str]:
        """The names of those of Run that are not over."""
        known = self.ours()
        if not known:
            return ()
        going = (it for it in self._things() if run_jobs.SHAPES[it["kind"]].end(it) is None)
        alive = {it["metadata"]["name"] for it in going}
        mine = [it for it in known if it in alive]
        return [it for it in mine if every or not self.ends_cluster(it)]

    def inside(self, job: Job) -> str:
        """In each of its pods."""
        shape = shape_of(self.asked(job.name) or {})
        selector = shape.selector(job.name, None)
        return f"kubectl get pods -l {selector}, then kubectl exec <POD> -- nvidia-smi"

    def way_in(self, job: Job, rank: int) -> WayIn:
        """By kubectl, with a configuration for this cluster alone."""
        asked = self.asked(job.name)
        if asked is None:
            raise job_folder.of_others(job.name, f"kubectl exec, in a pod of {job.name}")
        job_folder.require_rank(job, rank)
        of = self._record
        cluster = names.CLUSTER.of(of.name_prefix)
        before = control_plane.get_credentials(cluster, of.region, of.project_id)
        found = self._pods(job.name, shape_of(asked))
        return job_pods.way_in(found, job, rank, before, self._cluster.for_kubectl)

    def cancel(self, job: Job) -> None:
        """Delete its object, with which its pods, its place in the queue and its requests go."""
        asked = self.asked(job.name)
        if asked is None:
            raise job_folder.of_others(job.name, f"kubectl delete {job.name.lower()}")
        why = job.failure.words if job.failure else ""
        shape = shape_of(asked)
        if job.tasks:  # nothing else says it when its Job is gone
            done, failed = run_jobs.ended(self._thing(job.name, shape) or {})
            why = f"{len(done)}/{len(failed)} {why}"
        note = f"{self.now()} {why}".strip()
        self._folder.write_once(CANCELLED.at(job.name), note, "text/plain")
        self._ask(
            lambda: self._cluster.delete(shape.api, shape.kind, job.name, kueue.NAMESPACE),
            f"cancel {job.name}",
        )

    def _things(self) -> list[Object]:
        return self._ask(
            lambda: [
                thing
                for it in run_jobs.SHAPES.values()
                for thing in self._cluster.all(it.api, it.kind, kueue.NAMESPACE)
            ],
            "list the jobs",
        )

    @functools.cached_property
    def _made(self) -> Mapping[str, Pool]:
        return control_plane.made(self._document, self._facts)

    def _coming(self, room: preview.Room, made: Pool | None) -> int:
        """How many nodes come for a job: a queued pool's never wait for another one."""
        pool = room.pool
        if made is None or pool.queued:
            return room.machines
        if made.size.count is not None:
            return 0
        label = f"{kueue.POOL_LABEL}={pool.name}"
        there = self._all("count nodes", "v1", "Node", "", label)
        used = pods.used(self._all("count nodes", "v1", "Pod"))
        usable = (it["metadata"]["name"] for it in there if not it["spec"].get("unschedulable"))
        free = sum((pool.gpus - used[it]) // room.gpus if room.gpus else 1 for it in usable)
        return max(0, -((free - room.pods) // room.parts))

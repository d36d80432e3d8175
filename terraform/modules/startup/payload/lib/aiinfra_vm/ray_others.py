"""What others run on this VM's Ray head: what its job API lists, less the jobs of Run.

The head writes it beside its lease, where the tool reads it. How a job was begun is left out: a
command may have a secret in it.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from aiinfra_vm import ray_process
from aiinfra_vm.ray_job import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiinfra_vm.storage import Folder

_NAME = "jobs.json"
_ALIVE = ("PENDING", "RUNNING")
_MOST = 100
_SECONDS = 5  # for Ray's dashboard; far less than a lease lasts


class Others:
    """The jobs of others, as they were last written by this life of a head."""

    def __init__(self, folder: Folder, token: Path) -> None:
        self._folder = folder
        self._token = token
        self._written: list[dict[str, Any]] | None = None

    def forget(self) -> None:
        """Write at the next look in any case: another head may have written since."""
        self._written = None

    def note(self, address: str) -> None:
        """Write them, if they are not what they were.

        Raises:
            OSError: Ray or Cloud Storage does not answer, or refuses.
        """
        found = list(_alive(self._listed(address)))[:_MOST]
        if found != self._written:
            self._folder.write(_NAME, {"jobs": found})
            self._written = found

    def _listed(self, address: str) -> list[dict[str, Any]]:
        # No proxy of the environment is for this VM's own address, so no urllib.
        port = ray_process.ports()["dashboard"]
        connection = http.client.HTTPConnection(address, port, timeout=_SECONDS)
        try:
            token = self._token.read_text("ascii")
            connection.request("GET", "/api/jobs/", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise OSError(f"Ray's job API answers {answer.status}")
            listed: list[dict[str, Any]] = json.loads(body)
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"Ray's job API: {error!r}") from error
        finally:
            connection.close()
        return listed


def _alive(listed: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that are not over; a program that joined by `ray.init` has no name but its number."""
    for job in listed:
        if job.get("status") in _ALIVE and job.get("metadata") != OURS:
            name = job.get("submission_id") or job.get("job_id")
            began = (job.get("start_time") or 0) / 1000  # Ray has milliseconds
            yield {"name": name, "state": job["status"], "since": began}

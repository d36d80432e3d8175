"""Cloud Storage as it is served: with what VMs write there, and locks that are held."""

from rehearsal.cloud import vm_agents, vm_queue
from rehearsal.cloud.storage import held_locks
from rehearsal.cloud.storage.json_api import json_api as _json_api
from rehearsal.cloud.storage.upload import media as _media
from rehearsal.cloud.storage.upload import upload as _upload

json_api = vm_agents.agree(vm_queue.among(vm_agents.among(held_locks.among(_json_api))))
media = vm_agents.agree(vm_queue.among(vm_agents.among(held_locks.among(_media))))
upload = vm_queue.among(vm_agents.among(held_locks.among(_upload)))

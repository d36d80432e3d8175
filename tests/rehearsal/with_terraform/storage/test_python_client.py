"""google-cloud-storage, as the program uses it, against the simulated Cloud Storage."""

import hashlib

import pytest
from google.api_core import exceptions
from google.cloud import storage

_MEGABYTE = 1024 * 1024


def test_a_bucket_is_as_it_was_asked_for(client: storage.Client, bucket: storage.Bucket) -> None:
    found = client.get_bucket(bucket.name)
    assert found.project_number == 123456789012
    assert found.location == "US-CENTRAL1"
    assert found.versioning_enabled
    assert found.iam_configuration.uniform_bucket_level_access_enabled
    assert found.iam_configuration.public_access_prevention == "enforced"
    assert bucket.name in [it.name for it in client.list_buckets()]


def test_a_bucket_can_be_changed_and_looked_up(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    bucket.labels = {"team": "ml"}
    bucket.patch()
    assert client.get_bucket(bucket.name).labels == {"team": "ml"}
    assert client.lookup_bucket("loom-missing") is None
    assert bucket.test_iam_permissions(["storage.objects.get", "storage.objects.list"]) == [
        "storage.objects.get",
        "storage.objects.list",
    ]


def test_a_name_that_somebody_has_is_refused(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    with pytest.raises(exceptions.Conflict, match="you already own it"):
        client.create_bucket(bucket.name)
    with pytest.raises(exceptions.Conflict, match="bucket name is not available"):
        client.create_bucket(bucket.name, project="another-project")


def test_a_strangers_bucket_may_not_be_read(client: storage.Client) -> None:
    client.create_bucket("stranger-state", project="foreign-corp")
    with pytest.raises(exceptions.Forbidden, match=r"does not have storage\.buckets\.get access"):
        client.get_bucket("stranger-state")
    with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.get access"):
        client.bucket("stranger-state").blob("x").download_as_bytes()


@pytest.mark.parametrize("size", [0, 5, 9 * _MEGABYTE + 17])
def test_what_is_uploaded_is_downloaded(bucket: storage.Bucket, size: int) -> None:
    content = hashlib.sha256(b"seed").digest() * (size // 32 + 1)
    blob = bucket.blob("files/a b%2F.tar.gz", chunk_size=_MEGABYTE)
    blob.upload_from_string(content[:size], content_type="application/gzip")
    again = bucket.blob("files/a b%2F.tar.gz")
    assert again.download_as_bytes() == content[:size]
    again.reload()
    assert (again.size, again.content_type) == (size, "application/gzip")


def test_a_part_of_an_object_can_be_read(bucket: storage.Bucket) -> None:
    blob = bucket.blob("text")
    blob.upload_from_string("0123456789")
    assert blob.download_as_bytes(start=2, end=4) == b"234"
    assert blob.download_as_bytes(start=7) == b"789"


def test_objects_are_listed_by_folder(client: storage.Client, bucket: storage.Bucket) -> None:
    for name in ("a/1", "a/2", "a/b/3", "a/c/4", "d"):
        bucket.blob(name).upload_from_string(name)
    listed = client.list_blobs(bucket, prefix="a/", delimiter="/", page_size=1)
    assert [blob.name for blob in listed] == ["a/1", "a/2"]
    assert listed.prefixes == {"a/b/", "a/c/"}
    everything = client.list_blobs(bucket, page_size=2)
    assert [blob.name for blob in everything] == ["a/1", "a/2", "a/b/3", "a/c/4", "d"]


def test_an_object_is_made_only_under_its_condition(bucket: storage.Bucket) -> None:
    blob = bucket.blob("deployment.json")
    blob.upload_from_string("{}", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed, match="pre-conditions you specified"):
        bucket.blob("deployment.json").upload_from_string("{}", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.delete(if_generation_match=1)
    blob.delete(if_generation_match=blob.generation)
    assert not blob.exists()


def test_old_generations_are_kept_until_they_are_deleted(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    blob = bucket.blob("state")
    blob.upload_from_string("first")
    first = blob.generation
    blob.upload_from_string("second")
    assert bucket.blob("state", generation=first).download_as_bytes() == b"first"
    assert len(list(client.list_blobs(bucket, versions=True))) == 2
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    for version in client.list_blobs(bucket, versions=True):
        version.delete()
    bucket.delete()
    assert client.lookup_bucket(bucket.name) is None


def test_a_list_begins_where_it_is_to_and_is_by_nothing_that_is_not_simulated(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    for name in ("log/1", "log/2", "log/3"):
        bucket.blob(name).upload_from_string(name)

    later = client.list_blobs(bucket, prefix="log/", start_offset="log/2")
    assert [it.name for it in later] == ["log/2", "log/3"]
    with pytest.raises(exceptions.MethodNotImplemented, match="endOffset is not part of"):
        list(client.list_blobs(bucket, end_offset="log/2"))


def test_metadata_of_an_object_can_be_changed(bucket: storage.Bucket) -> None:
    blob = bucket.blob("x")
    blob.upload_from_string("x")
    blob.metadata = {"colour": "red"}
    blob.patch()
    again = bucket.get_blob("x")
    assert again is not None
    assert (again.metadata, again.metageneration) == ({"colour": "red"}, 2)
    blob.metadata = {"colour": None}
    blob.patch()
    reread = bucket.get_blob("x")
    assert reread is not None
    assert not reread.metadata


def test_a_policy_is_read_and_set(client: storage.Client, bucket: storage.Bucket) -> None:
    policy = bucket.get_iam_policy()
    policy["roles/storage.objectViewer"].add("user:ada@example.com")
    bucket.set_iam_policy(policy)
    kept = client.bucket(bucket.name).get_iam_policy()
    assert kept["roles/storage.objectViewer"] == {"user:ada@example.com"}
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.set_iam_policy(policy)

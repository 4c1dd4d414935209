"""Backends to hold to the one promise: a directory, a store in memory, and a real S3 server."""

import pytest
from fsspec.config import conf
from fsspec.implementations.memory import MemoryFileSystem

from datasource_governance.artifacts.local import LocalArtifacts
from datasource_governance.artifacts.remote import RemoteArtifacts
from datasource_governance_tests.artifacts.places import TENANT, Place
from datasource_governance_tests.postgres import unique_name


@pytest.fixture(scope="session")
def s3():
    """An S3 server of this process, and the options by which fsspec reaches it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = conf.get("s3")
    conf["s3"] = {
        "endpoint_url": f"http://{host}:{port}",
        "key": "key",
        "secret": "secret",
    }
    yield
    if before is None:
        del conf["s3"]
    else:
        conf["s3"] = before
    server.stop()


@pytest.fixture
def local(tmp_path):
    return Place(LocalArtifacts(tmp_path / "artifacts", TENANT), tmp_path / "artifacts")


@pytest.fixture
def memory(tmp_path):
    name = unique_name("store")
    yield Place(RemoteArtifacts(f"memory://{name}", TENANT, tmp_path / "uploads"), f"/{name}")
    if MemoryFileSystem().exists(f"/{name}"):
        MemoryFileSystem().rm(f"/{name}", recursive=True)


@pytest.fixture
def bucket(s3, tmp_path):
    import s3fs

    name = unique_name("store").replace("_", "-")
    s3fs.S3FileSystem().mkdir(name)
    return Place(RemoteArtifacts(f"s3://{name}/kept", TENANT, tmp_path / "uploads"), name)


@pytest.fixture(params=["local", "memory", "bucket"])
def place(request):
    """Every backend in turn."""
    return request.getfixturevalue(request.param)

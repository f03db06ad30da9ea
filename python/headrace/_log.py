"""Carries events of the core to ``logging.getLogger("headrace")``.

The core's threads only put events into a queue and never wait for Python; the queue is emptied by
the calls that users make anyway, so no thread of the core can block on a log handler.
"""

from __future__ import annotations

import logging

from headrace import _core

logger = logging.getLogger("headrace")
logger.addHandler(logging.NullHandler())


def drain() -> None:
    """Logs what the core has queued."""
    if not _core.log_pending():
        return
    for level, event, text in _core.take_log():
        logger.log(level, "%s: %s", event, text, extra={"event": event})

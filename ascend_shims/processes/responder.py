"""Answering, in a process with shims, how its gaps stand."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from .address import ASKS_STATES, SUPPORTED, address, is_trusted, peer

__all__ = ["Responder"]

log = logging.getLogger("ascend_shims")


class Responder:
    """A thread that sends a report, or a summary, to whoever of the same user connects.

    It runs only while something is applied, waiting or failed, and blocks in
    `accept` in between, so it costs nothing.
    """

    def __init__(
        self,
        report: Callable[[], dict[str, Any]],
        summary: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self._report = report
        self._summary = summary or report
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._socket is not None or not SUPPORTED:
            return
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(address(os.getpid()))
            listener.listen(8)
        except OSError:
            # A second copy of the toolkit in this process answers already.
            listener.close()
            return
        thread = threading.Thread(
            target=self._serve,
            args=(listener,),
            name="ascend-shims-responder",
            daemon=True,
        )
        try:
            thread.start()
        except Exception as error:  # noqa: BLE001 - what is applied is not less so
            listener.close()
            log.warning("this process cannot answer `shims status`: %s", error)
            return
        except BaseException:
            listener.close()
            raise
        self._socket, self._thread = listener, thread

    def stop(self) -> None:
        listener, self._socket = self._socket, None
        if listener is not None:
            # A close alone does not wake the thread that waits in `accept`.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            # The address is free only when the thread has let go of it, and a
            # start that follows at once needs it.
            if self._thread is not None and self._thread.ident != threading.get_ident():
                self._thread.join(timeout=5)

    def restart_in_child(self) -> None:
        """After a fork: the thread stayed behind, and the address is the parent's."""
        listener, self._socket = self._socket, None
        if listener is not None:
            # Only this process's copy of the descriptor: a shutdown would end
            # the parent's listening too.
            listener.close()
            self.start()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, asker = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                if is_trusted(peer(connection)[1]):
                    connection.settimeout(5)
                    connection.sendall(self._answer(asker))

    def _answer(self, asker: str | bytes) -> bytes:
        try:
            brief = asker[: len(ASKS_STATES)] == ASKS_STATES.encode()
            return json.dumps((self._summary if brief else self._report)()).encode()
        except Exception as error:  # noqa: BLE001
            # The thread must live on, and the asker must be told.
            return json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()

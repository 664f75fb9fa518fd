"""A report that follows a study: served to this machine alone, made anew when there is something new."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Callable
from typing import Any

from euda.errors import EudaError
from euda.reports import page, report
from euda.reports.report import Subject

HOST = "127.0.0.1"


class Follower:
    """The page of a subject, made anew when the metrics have changed."""

    def __init__(self, subject: Subject, say: Callable[[str], None], with_certificates: bool) -> None:
        self._subject, self._say, self._with_certificates = subject, say, with_certificates
        self._lock, self._stamp, self._content = threading.Lock(), None, b""

    def stamp(self) -> str:
        """Changes when there is something new."""
        return report.stamp(self._subject)

    def page(self) -> bytes:
        """The page as of now."""
        with self._lock:
            now = self.stamp()
            if now != self._stamp:
                found = report.gather(self._subject, self._say, self._with_certificates)
                self._content = page.build(dataclasses.replace(found, stamp=now)).encode()
                self._stamp = now
            return self._content


def make_server(follower: Follower, port: int = 0) -> http.server.ThreadingHTTPServer:
    """A server on loopback; `server_port` says where."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer with the page or its stamp, and only to a browser that asked for this machine by name."""
            host = self.headers.get("Host", "").rpartition(":")[0]
            if host not in (HOST, "localhost"):
                return self._answer(403, "text/plain", b"this page is for this machine only\n")
            if self.path == "/stamp":
                return self._answer(200, "text/plain", follower.stamp().encode())
            if self.path in ("/", f"/{report.PAGE}"):
                return self._page()
            return self._answer(404, "text/plain", b"there is only one page here\n")

        def _page(self) -> None:
            try:
                self._answer(200, "text/html; charset=utf-8", follower.page())
            except EudaError as error:
                self._answer(500, "text/plain; charset=utf-8", f"{error}\n".encode())

        def _answer(self, code: int, kind: str, content: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing about each request."""

    try:
        return http.server.ThreadingHTTPServer((HOST, port), Handler)
    except OverflowError:
        raise EudaError(f"a port is a number from 0 to 65535, not {port}") from None
    except OSError as error:
        raise EudaError(f"cannot serve on port {port}: {error.strerror}; choose another with --port") from None

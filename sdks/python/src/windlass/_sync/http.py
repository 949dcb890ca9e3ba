"""Connections of the blocking client: `http.client`, kept open, one for each request that is under way."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from typing import Dict, Iterator, List, Optional, Set, Tuple, Union

from windlass._wire import ANSWER_TIMEOUT, CONNECT_TIMEOUT, Address, Request, error_of, is_readable
from windlass.errors import Interrupted, TimedOut, Unreachable

Connection = Union[http.client.HTTPConnection, http.client.HTTPSConnection]
#: Errors of a connection that broke.
BROKEN = (OSError, http.client.HTTPException)


class Transport:
    """A pool of connections to one server; threads may share it."""

    def __init__(self, address: Address, headers: Dict[str, str], timeout: float = ANSWER_TIMEOUT) -> None:
        self._address, self._headers, self._timeout = address, headers, timeout
        self._idle: List[Connection] = []
        self._busy: Set[Connection] = set()
        self._lock = threading.Lock()
        self._tls = ssl.create_default_context() if address.is_tls else None

    def send(self, request: Request) -> Tuple[int, bytes, Optional[str]]:
        """Sends a request once; returns the status, the body and `Retry-After`."""
        connection = self._take()
        base = self._address.base
        with self._lock:
            self._busy.add(connection)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(self._timeout + request.wait)
            headers = self._headers
            if request.body is not None:
                headers = {**headers, "Content-Type": "application/json"}
            connection.request(request.method, self._address.prefix + request.path, request.body, headers)
            response = connection.getresponse()
            body = response.read()
        except socket.timeout:
            connection.close()
            raise TimedOut(f"{base} did not answer in time") from None
        except BROKEN as error:
            connection.close()
            raise Interrupted(f"the connection to {base} broke: {error or type(error).__name__}") from None
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(connection)
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return response.status, body, response.headers.get("Retry-After")

    def lines(self, request: Request, last_id: Optional[str]) -> Iterator[str]:
        """Opens a stream of events, and yields its lines until the server ends it."""
        connection = self._open(self._timeout)
        base = self._address.base
        headers = {**self._headers, "Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        try:
            connection.request(request.method, self._address.prefix + request.path, None, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise error_of(response.status, response.read(), response.headers.get("Retry-After"))
            for line in response:
                yield line.decode("utf-8", "replace").rstrip("\r\n")
        except socket.timeout:
            raise Interrupted(f"the stream of {base} fell silent") from None
        except BROKEN as error:
            raise Interrupted(f"the stream of {base} broke: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def close(self) -> None:
        """Closes the idle connections; a later request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def interrupt(self) -> None:
        """Breaks the requests that are under way in other threads."""
        with self._lock:
            socks = [connection.sock for connection in self._busy]
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except (OSError, AttributeError):
                # It closed by itself meanwhile.
                pass

    def _take(self) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open(self._timeout)
            # A server that went away closed it: a request on it would break, and might not be repeatable.
            if connection.sock is not None and not is_readable(connection.sock):
                return connection
            connection.close()

    def _open(self, timeout: float) -> Connection:
        host, port = self._address.host, self._address.port
        connection: Connection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unreachable(f"{self._address.base} does not answer: {error}") from None
        connection.sock.settimeout(timeout)
        return connection

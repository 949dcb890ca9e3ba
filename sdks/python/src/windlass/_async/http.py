"""Connections of the async client: HTTP/1.1 over the streams of `asyncio`, kept open."""

from __future__ import annotations

import asyncio
import ssl
from typing import AsyncIterator, Dict, List, Optional, Set, Tuple

from windlass._wire import ANSWER_TIMEOUT, CONNECT_TIMEOUT, Address, Request, error_of, is_readable
from windlass.errors import Interrupted, TimedOut, Unreachable

#: Bytes of a line of an answer: an event has a whole entry of a journal on one.
LINE_MAX = 64 << 20
#: Errors of a connection that broke, or that speaks another protocol.
BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)


class Connection:
    """One connection, for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.loop = asyncio.get_running_loop()

    def is_usable(self) -> bool:
        if self.reader.at_eof() or self.writer.is_closing() or self.loop is not asyncio.get_running_loop():
            return False
        # The loop may not have seen yet that the server closed it.
        sock = self.writer.get_extra_info("socket")
        return sock is not None and not is_readable(sock)

    def close(self) -> None:
        if not self.loop.is_closed():
            self.writer.close()

    async def ask(self, head: bytes, body: Optional[bytes]) -> Tuple[int, Dict[str, str]]:
        """Sends a request; returns the status and the headers of the answer."""
        self.writer.write(head + (body or b""))
        await self.writer.drain()
        status_line = (await self._line()).split(" ", 2)
        if len(status_line) < 2 or not status_line[0].startswith("HTTP/1."):
            raise ValueError("the answer is no HTTP/1.1")
        headers: Dict[str, str] = {}
        while True:
            line = await self._line()
            if not line:
                return int(status_line[1]), headers
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()

    async def chunks(self, headers: Dict[str, str]) -> AsyncIterator[bytes]:
        """The body in pieces, as they come."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int((await self._line()).split(";")[0], 16)
                if size:
                    yield await self.reader.readexactly(size)
                # The line end after the piece; after the last one, trailers and an empty line.
                while await self._line() and not size:
                    pass
                if not size:
                    return
        elif "content-length" in headers:
            yield await self.reader.readexactly(int(headers["content-length"]))
        else:
            while True:
                piece = await self.reader.read(1 << 16)
                if not piece:
                    return
                yield piece

    async def _line(self) -> str:
        line = await self.reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the server closed it")
        return line.decode("latin-1").rstrip("\r\n")


class AsyncTransport:
    """A pool of connections to one server, for one event loop at a time."""

    def __init__(self, address: Address, headers: Dict[str, str], timeout: float = ANSWER_TIMEOUT) -> None:
        self._address, self._headers, self._timeout = address, headers, timeout
        self._idle: List[Connection] = []
        self._busy: Set[Connection] = set()
        self._tls = ssl.create_default_context() if address.is_tls else None

    async def send(self, request: Request) -> Tuple[int, bytes, Optional[str]]:
        """Sends a request once; returns the status, the body and `Retry-After`."""
        connection = await self._take()
        base = self._address.base
        is_done = False
        self._busy.add(connection)
        try:
            status, headers, body = await asyncio.wait_for(
                self._exchange(connection, request), self._timeout + request.wait
            )
            is_done = headers.get("connection", "").lower() != "close"
        except asyncio.TimeoutError:
            raise TimedOut(f"{base} did not answer in time") from None
        except BROKEN as error:
            raise Interrupted(f"the connection to {base} broke: {error or type(error).__name__}") from None
        finally:
            self._busy.discard(connection)
            if is_done:
                self._idle.append(connection)
            else:
                connection.close()
        return status, body, headers.get("retry-after")

    async def _exchange(self, connection: Connection, request: Request) -> Tuple[int, Dict[str, str], bytes]:
        status, headers = await connection.ask(self._head(request, {}), request.body)
        if status in (204, 304):
            return status, headers, b""
        return status, headers, b"".join([piece async for piece in connection.chunks(headers)])

    async def lines(self, request: Request, last_id: Optional[str]) -> AsyncIterator[str]:
        """Opens a stream of events, and yields its lines until the server ends it."""
        connection = await self._open()
        base = self._address.base
        more = {"Accept": "text/event-stream"}
        if last_id is not None:
            more["Last-Event-ID"] = last_id
        try:
            status, headers = await asyncio.wait_for(
                connection.ask(self._head(request, more), None), self._timeout
            )
            pieces = connection.chunks(headers)
            if status != 200:
                body = b"".join([piece async for piece in pieces])
                raise error_of(status, body, headers.get("retry-after"))
            rest = b""
            while True:
                try:
                    piece = await asyncio.wait_for(pieces.__anext__(), self._timeout)
                except StopAsyncIteration:
                    return
                *complete, rest = (rest + piece).split(b"\n")
                for line in complete:
                    yield line.decode("utf-8", "replace").rstrip("\r")
        except asyncio.TimeoutError:
            raise Interrupted(f"the stream of {base} fell silent") from None
        except BROKEN as error:
            raise Interrupted(f"the stream of {base} broke: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def interrupt(self) -> None:
        """Breaks the requests that are under way."""
        for connection in list(self._busy):
            connection.close()

    async def aclose(self) -> None:
        """Closes the idle connections; a later request opens a new one."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _head(self, request: Request, more: Dict[str, str]) -> bytes:
        host = self._address.base.split("://")[1].split("/")[0]
        headers = {"Host": host, **self._headers, **more}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            headers["Content-Length"] = str(len(request.body))
        elif request.method != "GET":
            headers["Content-Length"] = "0"
        lines = [f"{request.method} {self._address.prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        return await self._open()

    async def _open(self) -> Connection:
        opening = asyncio.open_connection(
            self._address.host, self._address.port, ssl=self._tls, limit=LINE_MAX
        )
        try:
            return Connection(*await asyncio.wait_for(opening, CONNECT_TIMEOUT))
        except (OSError, asyncio.TimeoutError) as error:
            raise Unreachable(
                f"{self._address.base} does not answer: {error or 'no connection in time'}"
            ) from None

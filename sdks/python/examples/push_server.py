"""A push worker on the server of the standard library; any server of WSGI works the same way.

Set WINDLASS_PUSH_SECRET to whsec_… to accept signed calls only.
"""

from __future__ import annotations

import signal
import sys
from wsgiref.simple_server import make_server

from windlass import App
from windlass.push import Registration, WsgiHandlers

app = App()


@app.service
def shout(text: str) -> str:
    return text.upper()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = make_server("127.0.0.1", 0, WsgiHandlers(app))
    with Registration(app, f"http://127.0.0.1:{server.server_port}") as registration:
        registration.wait()
        print("registered as", registration.id, flush=True)
        server.serve_forever()

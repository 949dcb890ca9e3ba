"""The same node type for nodes with `exec_type: http`: it is called, and answers at once."""
import json, os, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:8070")
orders = {}  # at a provider: by key, so that the same call twice is one order

def image_generation(params, memo, key):
    """Done, suspended or failed: the answer is the body of a push worker's reply."""
    if memo is None:
        if not params.get("prompt"):
            return {"error": "there is nothing to draw: give a prompt", "retryable": False}
        orders.setdefault(key, 0)
        return {"suspend": {"memo": {"order": key}, "recheck_ms": 200}, "logs": ["ordered"]}
    orders[memo["order"]] = looks = orders.get(memo["order"], 0) + 1
    if looks < 3:
        return {"suspend": {"memo": memo, "recheck_ms": 200}}
    return {"result": {"type": "image", "urls": ["asset://pictures/%d.png" % looks]}}

class Calls(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = image_generation(call["params"], call.get("memo"), self.headers["Idempotency-Key"])
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

def live(url):
    card = {"id": "painter", "type": "http", "url": url, "services": ["image_generation"]}
    while True:  # registering again is a sign of life as well
        try:
            urllib.request.urlopen(SERVER + "/api/workers/register", json.dumps(card).encode(), timeout=5).close()
        except OSError:
            pass
        time.sleep(5)

server = ThreadingHTTPServer(("127.0.0.1", 0), Calls)
threading.Thread(target=live, args=("http://127.0.0.1:%d" % server.server_port,), daemon=True).start()
server.serve_forever()

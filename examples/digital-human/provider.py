"""A provider of moving pictures and voices that only pretends: python3 provider.py [ADDRESS-FILE]

    POST /jobs      {"kind", "input"} with an Idempotency-Key  ->  201 {"id", "status": "processing"}
    GET  /jobs/ID   ->  {"id", "status": "processing" | "completed" | "failed", "result" | "error"}

It behaves as such services do: a job takes its time, sometimes it is busy (503), sometimes a job fails half-way, and
some things it never does (422). A key that comes again gets the job it got before, unless that one failed.
A seed and the number of the request decide the faults, so every playing of the example meets the same ones.
"""
import itertools, json, os, random, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHORTEST, LONGEST = (float(part) for part in os.environ.get("PROVIDER_SECONDS", "1-3").split("-"))
FAULTS = float(os.environ.get("PROVIDER_FAULTS", "0.3"))
SEED = os.environ.get("PROVIDER_SEED", "4")
ENDINGS = {"video_motion": "mp4", "audio_tts": "mp3", "video_lipsync": "mp4"}

lock, asked, jobs, by_key = threading.Lock(), {}, {}, {}

def dice(kind, what):
    """The next throw for this kind of job."""
    nth = asked.setdefault((kind, what), itertools.count(1))
    return random.Random("%s/%s/%s/%d" % (SEED, kind, what, next(nth)))

def submit(order, key):
    kind = order.get("kind")
    if kind not in ENDINGS:
        return 422, {"error": "this provider does not make " + str(kind)}
    if "forbidden" in json.dumps(order.get("input")):
        return 422, {"error": "this text may not be spoken"}
    known = jobs.get(by_key.get(key))
    if known and show(known)[1]["status"] != "failed":
        return 200, show(known)[1]
    if dice(kind, "busy").random() < FAULTS:
        return 503, {"error": "busy: come again"}
    throw, number = dice(kind, "job"), len(jobs) + 1
    takes = throw.uniform(SHORTEST, LONGEST)
    job = {"id": "p-%d" % number, "kind": kind, "ready": time.monotonic() + takes, "seconds": round(takes, 2),
           "breaks": throw.random() < FAULTS, "nth": sum(1 for job in jobs.values() if job["kind"] == kind) + 1}
    jobs[job["id"]] = job
    by_key[key] = job["id"]
    return 201, show(job)[1]

def show(job):
    if time.monotonic() < job["ready"]:
        return 200, {"id": job["id"], "status": "processing"}
    if job["breaks"]:
        return 200, {"id": job["id"], "status": "failed", "error": "the machine was needed elsewhere"}
    url = "asset://%s-%d.%s" % (job["kind"], job["nth"], ENDINGS[job["kind"]])
    return 200, {"id": job["id"], "status": "completed", "result": {"urls": [url], "seconds": job["seconds"]}}

class Desk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        key = self.headers.get("Idempotency-Key")
        with lock:
            self.say(*submit(order, key) if key else (400, {"error": "an Idempotency-Key is needed"}))

    def do_GET(self):
        with lock:
            job = jobs.get(self.path.removeprefix("/jobs/"))
            self.say(*show(job) if job else (404, {"error": "there is no such job"}))

    def say(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PROVIDER_PORT", "0"))), Desk)
address = "http://127.0.0.1:%d" % server.server_port
print("the provider listens on", address, file=sys.stderr, flush=True)
if len(sys.argv) > 1:
    # Written whole or not at all: the script that starts the provider waits for this file.
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(address)
    os.replace(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()

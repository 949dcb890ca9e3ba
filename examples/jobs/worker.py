"""A worker for queues, with Python's standard library alone: python3 worker.py QUEUE…"""
import json, os, sys, threading, time, urllib.error, urllib.request

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:8070")
ME, QUEUES = "python-%d" % os.getpid(), sys.argv[1:] or ["default"]

class Hopeless(Exception):
    """Trying again cannot help."""

def thumbnail(payload, job):
    if "file" not in payload:
        raise Hopeless("a thumbnail needs a file")
    return {"made": "small-" + payload["file"], "attempt": job["attempt"]}

HANDLERS = {"thumbnail": thumbnail}

def post(path, body):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"unknown": True}
            if error.code not in (429, 503):  # busy, or shutting down
                raise SystemExit(error.read().decode())
        except OSError:
            pass  # away: it comes back, and so do we
        time.sleep(1)

def live(every, path, body, done):
    """Repeats a request: the heartbeat of the worker, or the extension of a lease."""
    while not done.wait(every):
        if post(path, body).get("unknown"):
            post("/api/workers/register", {"id": ME, "type": "async", "queues": QUEUES})

def work(job):
    end, done = {"id": job["id"], "lease": job["lease"]}, threading.Event()
    threading.Thread(target=live, args=(10, "/api/v1/jobs/extend", {"leases": [job["lease"]]}, done)).start()
    try:
        if job["service"] not in HANDLERS:
            raise Hopeless("this worker has no handler for " + job["service"])
        end.update(outcome="done", result=HANDLERS[job["service"]](job["input"] or {}, job))
    except Exception as error:
        end.update(outcome="failed", error=str(error) or repr(error), retryable=not isinstance(error, Hopeless))
    done.set()
    print(job["service"], end["outcome"], post("/api/v1/jobs/finish", {"results": [end]}), flush=True)

claimed, over = {}, threading.Event()
post("/api/workers/register", {"id": ME, "type": "async", "queues": QUEUES})
threading.Thread(target=live, args=(5, "/api/workers/heartbeat", {"id": ME}, over), daemon=True).start()
while not claimed.get("draining"):  # set by `windlass worker drain`
    claimed = post("/api/v1/jobs/claim", {"worker_id": ME, "queues": QUEUES, "wait_ms": 20000})
    for job in claimed["jobs"]:
        work(job)

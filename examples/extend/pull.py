"""A node type in Python: it comes for calls of `image_generation`, and holds none of them while a provider works."""
import json, os, sys, threading, time, urllib.error, urllib.request

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:8070")
SERVICE, ME = "image_generation", "painter-%d" % os.getpid()
orders = {}  # at a provider: by key, so that the same call twice is one order

def image_generation(params, memo, key):
    """Done, suspended or failed: the answer is an item of `finish`."""
    if memo is None:
        if not params.get("prompt"):
            return {"outcome": "failed", "error": "there is nothing to draw: give a prompt", "retryable": False}
        orders.setdefault(key, 0)
        return {"outcome": "suspended", "memo": {"order": key}, "recheck_ms": 200, "logs": [{"message": "ordered"}]}
    orders[memo["order"]] = looks = orders.get(memo["order"], 0) + 1
    if looks < 3:
        return {"outcome": "suspended", "memo": memo, "recheck_ms": 200}
    return {"outcome": "done", "result": {"type": "image", "urls": ["asset://pictures/%d.png" % looks]}}

def post(path, body):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)

def live():
    while True:  # registering again is a sign of life as well
        try:
            post("/api/workers/register", {"id": ME, "type": "async", "services": [SERVICE]})
        except OSError:
            pass
        time.sleep(5)

threading.Thread(target=live, daemon=True).start()
while True:
    try:
        jobs = post("/api/v1/jobs/claim", {"worker_id": ME, "services": [SERVICE], "wait_ms": 20000})["jobs"]
        for job in jobs:
            end = image_generation(job["params"], job.get("memo"), job["key"])
            post("/api/v1/jobs/finish", {"results": [dict(end, id=job["id"], lease=job["lease"])]})
    except OSError as error:
        print("the server is away:", error, file=sys.stderr, flush=True)
        time.sleep(1)

"""A worker that files documents, several at a time: python3 worker.py

Every operator of the flow is a service of its own name. Each takes FILE_MS; the documents are only pretended.
"""
import json, os, threading, time, urllib.error, urllib.request

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:8070")
SECONDS = int(os.environ.get("FILE_MS", "500")) / 1000
ME = "files-%d" % os.getpid()
AT_ONCE = 8

def name(docid):
    return docid.rsplit("/", 1)[-1]

def copy(params):
    return {"new_docid": params["destparent"] + "/" + name(params["docid"])}

def process(params):
    return {"new_docid": params["docid"] + "-processed"}

def merge(params):
    parts = [name(params["docid_" + letter]) for letter in "abc"]
    return {"new_docid": params["destparent"] + "/" + "+".join(parts)}

SERVICES = {"@files/copy": copy, "@files/process": process, "@files/merge": merge}

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

def register():
    post("/api/workers/register", {"id": ME, "type": "async", "services": list(SERVICES)})

def beat():
    while True:
        time.sleep(5)
        if post("/api/workers/heartbeat", {"id": ME}).get("unknown"):
            register()

def work(job):
    end = {"id": job["id"], "lease": job["lease"]}
    try:
        time.sleep(SECONDS)
        end.update(outcome="done", result=SERVICES[job["service"]](job["params"]))
    except Exception as error:
        end.update(outcome="failed", error=repr(error), retryable=False)
    post("/api/v1/jobs/finish", {"results": [end]})

def hand():
    """A thread that performs jobs beside the others."""
    claimed = {}
    while not claimed.get("draining"):  # set by `windlass worker drain`
        claimed = post("/api/v1/jobs/claim", {"worker_id": ME, "services": list(SERVICES), "wait_ms": 20000})
        for job in claimed["jobs"]:
            work(job)

register()
threading.Thread(target=beat, daemon=True).start()
hands = [threading.Thread(target=hand) for _ in range(AT_ONCE)]
for thread in hands:
    thread.start()
for thread in hands:
    thread.join()

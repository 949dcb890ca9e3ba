"""A worker between Windlass and a slow provider: PROVIDER=http://… python3 worker.py

It never waits for the provider. The first call of a node hands the work in and suspends with the provider's job as its
memo; from then on it is asked again every RECHECK_MS, with that memo, until the provider is done. Meanwhile this process
is free, and may even be gone: the run has its memo.
"""
import json, os, sys, threading, time, urllib.error, urllib.request

SERVER = os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:8070")
PROVIDER = os.environ["PROVIDER"]
RECHECK_MS = int(os.environ.get("RECHECK_MS", "500"))
SERVICES = ["video_motion", "audio_tts", "video_lipsync"]
ME = "digital-human-%d" % os.getpid()

class Hopeless(Exception):
    """Trying again cannot help."""

def call(url, body=None, headers=None, timeout=90):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)

def ask_provider(path, body=None, headers=None):
    try:
        return call(PROVIDER + path, body, headers, timeout=10)
    except urllib.error.HTTPError as error:
        said = json.load(error).get("error", "")
        raise (Exception if error.code in (429, 500, 502, 503, 504) else Hopeless)("the provider says: " + said)

def perform(job):
    """How a call ends: `done`, `suspended`, or an exception."""
    if "memo" not in job:
        # The key is the same for every attempt at this node, so the provider makes it once, even if this process dies.
        order = {"kind": job["service"], "input": job["params"]}
        at = ask_provider("/jobs", order, {"Idempotency-Key": job["key"]})
    else:
        at = ask_provider("/jobs/" + job["memo"]["provider_job"])
    if at["status"] == "completed":
        return {"outcome": "done", "result": at["result"]}
    if at["status"] == "failed":
        raise Exception("the provider failed: " + at["error"])
    return {"outcome": "suspended", "memo": {"provider_job": at["id"]}, "recheck_ms": RECHECK_MS}

def windlass(path, body):
    while True:
        try:
            return call(SERVER + path, body)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {"unknown": True}
            if error.code not in (429, 503):  # busy, or shutting down
                raise SystemExit(error.read().decode())
        except OSError:
            pass  # away: it comes back, and so do we
        time.sleep(1)

def register():
    windlass("/api/workers/register", {"id": ME, "type": "async", "services": SERVICES})

def beat():
    while True:
        time.sleep(5)
        if windlass("/api/workers/heartbeat", {"id": ME}).get("unknown"):
            register()

def work(job):
    try:
        end = perform(job)
    except Exception as error:
        retryable = not isinstance(error, Hopeless)
        end = {"outcome": "failed", "error": str(error) or repr(error), "retryable": retryable}
    print(job["node"], "attempt", job["attempt"], end["outcome"], end.get("error", ""), file=sys.stderr, flush=True)
    return {"id": job["id"], "lease": job["lease"], **end}

register()
threading.Thread(target=beat, daemon=True).start()
# One at a time: each may keep the provider busy for 10 s, and a job that waited here for others would lose its lease.
claim, claimed = {"worker_id": ME, "services": SERVICES, "max": 1, "wait_ms": 20000}, {}
while not claimed.get("draining"):  # set by `windlass worker drain`
    claimed = windlass("/api/v1/jobs/claim", claim)
    if claimed["jobs"]:
        windlass("/api/v1/jobs/finish", {"results": [work(job) for job in claimed["jobs"]]})

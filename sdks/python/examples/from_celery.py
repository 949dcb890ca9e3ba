"""The program of docs/from-celery.md: python -m windlass worker from_celery:app, then python from_celery.py"""

from windlass import App, Fatal
from windlass.flow import Flow

app = App()


@app.service(queue="pictures")
def fetch(url: str) -> str:
    if not url.startswith("https://"):
        raise Fatal(f"{url} is no address")
    return f"bytes of {url}"


@app.service(queue="pictures")
def thumbnail(picture: str, width: int = 80) -> str:
    return f"{picture} at {width}"


@app.service(queue="mail")
def notify(person: str, pictures: list) -> str:
    return f"{person} has {len(pictures)} pictures"


gallery = Flow("gallery", url=str, person=str)
fetched = gallery.call("fetch", fetch, url=gallery.params.url, retries=4, retry_delay=1)
small = gallery.call("small", thumbnail, picture=fetched, width=80)
large = gallery.call("large", thumbnail, picture=fetched, width=800)
told = gallery.call("notify", notify, person=gallery.params.person, pictures=[small, large])
gallery.result(told=told)

if __name__ == "__main__":
    job = thumbnail.options(delay=1, retries=4, retry_delay=1).send("cat.png", width=40)
    print(job.wait(30))
    gallery.publish(app.client)
    run = app.client.start("gallery", {"url": "https://example.org/cat.png", "person": "ann"})
    print(run.result(30))

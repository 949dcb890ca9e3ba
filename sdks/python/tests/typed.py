"""Not run, but checked by mypy: the types that users see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

from typing_extensions import assert_type

from windlass import App, AsyncClient, AsyncJob, Call, Client, Job, Run
from windlass.schema import RunDetail

app = App()


@dataclass
class Charge:
    cents: int


@app.service
def resize(file: str, width: int = 80) -> str:
    return f"{file} at {width}"


@app.service("charge", slots=4)
async def charge(what: Charge) -> str:
    return str(what.cents)


@app.service
def first(call: Call, x: int) -> int:
    return x + call.attempt


def check(client: Client) -> None:
    assert_type(resize("cat.png", width=3), str)
    assert_type(resize.send("cat.png"), Job)
    assert_type(resize.options(delay=3, dedup_key="x").send("cat.png", 5), Job)
    assert_type(first.send(5), Job)
    assert_type(charge.send(Charge(5)), Job)
    assert_type(client.start("order", {"a": 1}), Run)
    assert_type(client.start("order").wait(5), RunDetail)
    labels: Dict[str, str] = client.start("order").get().get("labels", {})
    print(labels)
    resize.send(5)  # type: ignore[arg-type]
    resize.send("a", size=1)  # type: ignore[call-arg]
    first.send("x")  # type: ignore[arg-type]
    resize.options(color="red")  # type: ignore[call-arg]


async def check_async(client: AsyncClient) -> Any:
    assert_type(await resize.send_async("cat.png"), AsyncJob)
    assert_type(await client.runs.get("run_1"), RunDetail)
    async for run in client.runs.list("status:failed"):
        print(run["id"])
    return await (await client.start("order")).result()

"""Publishes a flow over the services of payments.py, starts a run, and follows it."""

from __future__ import annotations

import uuid

from payments import charge, settle

from windlass import Client
from windlass.flow import Flow

flow = Flow("order", order=str, cents=int)
paid = flow.call("pay", charge, order=flow.params.order, cents=flow.params.cents, retries=3, retry_delay=0.1)
settled = flow.call("settle", settle, receipt=paid.output.receipt)
flow.result(receipt=paid.output.receipt, settled=settled.output)

client = Client()
version = flow.publish(client)["version"]
order = f"order-{uuid.uuid4().hex[:6]}"
run = client.start("order", {"order": order, "cents": 500}, request_id=order)
for entry in run.follow():
    print(entry["seq"], ", ".join(event["e"] for event in entry["events"]))
print(f"version {version}:", run.result())

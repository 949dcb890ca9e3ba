"""A builder of flows. It produces plain definitions in the dag form and has no logic of its own.

    flow = Flow("film", text=str)
    speak = flow.call("speak", service="audio_tts", text=flow.params.text)
    cut = flow.call("cut", service="audio_cut", audio=speak.output.urls[0])
    flow.result(audio=cut.output.urls[0])
    flow.publish(client)

Nodes and references are objects. A node that uses the output of another one follows it; `after` adds an order
without data, and `when` a condition.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from windlass._wire import Duration, millis, present
from windlass.errors import NotFound

if TYPE_CHECKING:
    from windlass._sync.client import Client
    from windlass.app import Service
    from windlass.schema import FlowDiff, PublishResponse, Validation

#: Types of variables by their Python types.
_TYPES = {str: "string", int: "number", float: "number", bool: "boolean", dict: "object", list: "array"}
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]*$")


class Reference:
    """A value that exists when the flow runs: `render.output.urls[0]`, `flow.params.text`."""

    __slots__ = ("_node", "_path")

    def __init__(self, path: str, node: Optional[str] = None) -> None:
        self._path, self._node = path, node

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("__"):
            raise AttributeError(name)
        return Reference(f"{self._path}.{name}", self._node)

    def __getitem__(self, key: Union[int, str]) -> Reference:
        if isinstance(key, bool) or not isinstance(key, (int, str)):
            raise TypeError(f"a reference takes a number or a name, not {key!r}")
        if isinstance(key, int):
            if key < 0:
                raise IndexError(
                    "a reference counts from the front: the server knows the length, not the builder"
                )
            return Reference(f"{self._path}[{key}]", self._node)
        if not _NAME.match(key):
            raise ValueError(f"a reference cannot have the field {key!r}: use letters, digits, _ and -")
        return Reference(f"{self._path}.{key}", self._node)

    def __iter__(self) -> Any:
        raise TypeError(f"{self} is a reference: its items exist when the flow runs")

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is a reference, not a value: use a condition node, or `when=`")

    def __str__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"<reference {self._path}>"

    # Comparisons give conditions.

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.of(self, "==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.of(self, "!=", other)

    def __lt__(self, other: object) -> Condition:
        return Condition.of(self, "<", other)

    def __le__(self, other: object) -> Condition:
        return Condition.of(self, "<=", other)

    def __gt__(self, other: object) -> Condition:
        return Condition.of(self, ">", other)

    def __ge__(self, other: object) -> Condition:
        return Condition.of(self, ">=", other)

    __hash__ = None  # type: ignore[assignment]


class Condition:
    """An expression over references, in the language of the dag form (CEL): `seconds > 60`, joined by `&` and `|`."""

    def __init__(self, text: str, nodes: Sequence[str] = ()) -> None:
        self.text, self.nodes = text, list(nodes)

    @staticmethod
    def of(left: Reference, operator: str, right: object) -> Condition:
        nodes = [one._node for one in (left, right) if isinstance(one, Reference) and one._node is not None]
        # A text of JSON is a text of CEL.
        shown = str(right) if isinstance(right, Reference) else json.dumps(right)
        return Condition(f"{left} {operator} {shown}", nodes)

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) && ({other.text})", self.nodes + other.nodes)

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) || ({other.text})", self.nodes + other.nodes)

    def __invert__(self) -> Condition:
        return Condition(f"!({self.text})", self.nodes)

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self.text}` is decided when the flow runs: join conditions with & and |, not with and and or"
        )

    def __str__(self) -> str:
        return self.text


class Node:
    """A node of a flow."""

    def __init__(self, flow: Flow, id: str, fields: Dict[str, Any]) -> None:
        self.flow, self.id, self.fields = flow, id, fields

    def __repr__(self) -> str:
        return f"<node {self.id}>"

    @property
    def output(self) -> Reference:
        """The result of the node."""
        return Reference(f"$node.{self.id}.output", self.id)

    @property
    def status(self) -> Reference:
        """The status of the node."""
        return Reference(f"$node.{self.id}.status", self.id)

    @property
    def error(self) -> Reference:
        """The error of the node."""
        return Reference(f"$node.{self.id}.error", self.id)


class _Params:
    """The declared parameters of a flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Reference:
        if name not in self._flow.variables:
            known = ", ".join(self._flow.variables) or "none"
            raise AttributeError(f"flow `{self._flow.name}` has no parameter `{name}`; it has {known}")
        return Reference(f"$var.{name}")


class Flow:
    """A flow in the dag form: every node starts as soon as its predecessors have ended.

    Keywords declare parameters: `Flow("film", text=str, width=80)` has the required text `text` and the number
    `width` with a default.
    """

    def __init__(self, name: str, /, *, description: Optional[str] = None, **params: Any) -> None:
        self.name, self.description = name, description
        self.variables: Dict[str, Dict[str, Any]] = {}
        self.nodes: Dict[str, Node] = {}
        self.on_failure: Optional[str] = None
        self._edges: Dict[Tuple[str, str], Optional[str]] = {}
        self._outputs: List[Dict[str, Any]] = []
        self._n_ends = 0
        for key, value in params.items():
            self.param(key, value) if isinstance(value, type) else self.param(key, type(value), default=value)

    @property
    def params(self) -> Any:
        """References to the parameters: `flow.params.text`."""
        return _Params(self)

    def param(
        self, name: str, kind: Any = str, *, default: Any = None, required: Optional[bool] = None
    ) -> Reference:
        """Declares a parameter; one without a default is required."""
        word = _TYPES.get(kind, kind)
        if not isinstance(word, str):
            raise TypeError(
                f"parameter `{name}` has the type {kind!r}: use str, int, float, bool, dict, list or 'url'"
            )
        declared: Dict[str, Any] = {"type": word}
        if default is not None:
            declared["defaultValue"] = default
        if required if required is not None else default is None:
            declared["required"] = True
        self.variables[name] = declared
        return Reference(f"$var.{name}")

    def call(
        self,
        id: str,
        service: Union[str, Service[Any, Any], None] = None,
        input: Any = None,
        /,
        *,
        after: Union[Node, Sequence[Node]] = (),
        when: Optional[Condition] = None,
        retries: Optional[int] = None,
        retry_delay: Optional[Duration] = None,
        backoff: Optional[str] = None,
        timeout: Optional[Duration] = None,
        recheck: Optional[Duration] = None,
        until_reported: Optional[bool] = None,
        at_most_once: Optional[bool] = None,
        push: bool = False,
        title: Optional[str] = None,
        cost: Optional[Mapping[str, Any]] = None,
        join: Optional[str] = None,
        **fields: Any,
    ) -> Node:
        """Adds a call of a service, which defaults to the id.

        `fields` are the fields of the input of the handler; `input` is the whole input instead, for a handler with one
        parameter.
        """
        if service is not None and not isinstance(service, str):
            service = service.name
        if input is not None and fields:
            raise ValueError(f"node `{id}` has an input and the fields {', '.join(fields)}: give one of them")
        config = {"input": input} if input is not None else fields
        retry = present(max=retries, delay_ms=millis(retry_delay), backoff=backoff)
        more = present(
            retry=retry or None, timeout_ms=millis(timeout), recheck_ms=millis(recheck), until_reported=until_reported,
            at_most_once=at_most_once, exec_type="http" if push else None, name=title, cost=cost, join=join,
        )  # fmt: skip
        return self.node(id, service or id, config, after=after, when=when, **more)

    def node(
        self,
        id: str,
        type: str,
        config: Optional[Mapping[str, Any]] = None,
        /,
        *,
        after: Union[Node, Sequence[Node]] = (),
        when: Optional[Condition] = None,
        **fields: Any,
    ) -> Node:
        """Adds a node of any type, with the fields that the definitions document."""
        if not _NAME.match(id):
            raise ValueError(f"a node cannot have the id {id!r}: use letters, digits, _ and -")
        if id in self.nodes:
            raise ValueError(f"flow `{self.name}` has a node `{id}` already")
        used: List[str] = []
        plain = _plain(config or {}, used)
        node = Node(
            self, id, {"id": id, "type": type, **({"config": plain} if plain else {}), **_plain(fields, used)}
        )
        followed = [after] if isinstance(after, Node) else list(after)
        before = [one.id for one in followed] + used
        if when is not None:
            before = list(when.nodes) + before
            if not before:
                # A condition needs an edge, and an edge a node that it leaves.
                before = [self._start().id]
        self.nodes[id] = node
        for one in dict.fromkeys(before):
            if one not in self.nodes:
                raise ValueError(f"node `{id}` uses `{one}`, which is no node of flow `{self.name}`")
            self._edges[one, id] = when.text if when is not None else None
        return node

    def delay(self, id: str, seconds: Any, /, *, after: Union[Node, Sequence[Node]] = ()) -> Node:
        """Adds a wait of so many seconds."""
        return self.node(id, "delay", {"delaySeconds": seconds}, after=after)

    def approval(
        self,
        id: str,
        /,
        *,
        assignees: Sequence[str] = (),
        timeout: Optional[Duration] = None,
        after: Union[Node, Sequence[Node]] = (),
        when: Optional[Condition] = None,
        **params: Any,
    ) -> Node:
        """Adds a decision of a person; `.output` is the decision."""
        config = {"params": present(assignees=list(assignees) or None, timeout_ms=millis(timeout), **params)}
        return self.node(id, "approval", config, after=after, when=when)

    def signal(
        self,
        id: str,
        key: str,
        /,
        *,
        timeout: Optional[Duration] = None,
        after: Union[Node, Sequence[Node]] = (),
    ) -> Node:
        """Adds a wait for a signal; `.output` is its value."""
        config = {"params": present(signal_key=key, timeout_ms=millis(timeout))}
        return self.node(id, "wait_event", config, after=after)

    def run(
        self, id: str, flow: Union[str, Flow], /, *, after: Union[Node, Sequence[Node]] = (), **params: Any
    ) -> Node:
        """Adds a run of another flow, which gets these params."""
        name = flow.name if isinstance(flow, Flow) else flow
        return self.node(id, "flow_ref", {"flow": name, "params": params}, after=after)

    def result(self, **outputs: Any) -> None:
        """The result of the flow; each value is a reference or a node, which stands for its output."""
        for name, source in outputs.items():
            self._outputs.append({"name": name, "source": source})

    def _start(self) -> Node:
        if "start" not in self.nodes:
            self.nodes["start"] = Node(self, "start", {"id": "start", "type": "start"})
        return self.nodes["start"]

    def definition(self) -> Dict[str, Any]:
        """The plain definition."""
        nodes = [dict(node.fields) for node in self.nodes.values()]
        edges = [
            {"source": source, "target": target, **present(condition=condition)}
            for (source, target), condition in self._edges.items()
        ]
        if self._outputs:
            used: List[str] = []
            outputs = _plain(self._outputs, used)
            end = "end" if "end" not in self.nodes else "flow_end"
            nodes.append({"id": end, "type": "end", "config": {"outputs": outputs}})
            # The end waits for every node that no other one follows, so that the result comes last.
            left = {source for source, _ in self._edges}
            leaves = [id for id in self.nodes if id not in left]
            edges += [{"source": one, "target": end} for one in dict.fromkeys(used + leaves)]
        more = present(
            description=self.description, variables=self.variables or None, on_failure=self.on_failure
        )
        return {"form": "dag", **more, "nodes": nodes, "edges": edges}

    def validate(self, client: Client) -> Validation:
        """Every problem that the server finds in the definition."""
        return client.flows.validate(self.definition())

    def publish(self, client: Client, *, note: Optional[str] = None) -> PublishResponse:
        """Publishes the flow: its first version, or the next one if the definition changed."""
        definition = self.definition()
        try:
            now = client.flows.get(self.name)
        except NotFound:
            return client.flows.create(self.name, definition, description=self.description)
        version = now.get("version")
        if version is not None and version["definition"] == definition:
            return {
                "id": now["id"], "name": now["name"], "version": version["version"], "version_id": version["id"]
            }  # fmt: skip
        return client.flows.publish(self.name, definition, note=note)

    def diff(self, client: Client) -> Optional[FlowDiff]:
        """The changes that `publish` would make to the newest version; `None` if there is no such flow.

        It compares here: nothing is published.
        """
        try:
            version = client.flows.get(self.name).get("version")
        except NotFound:
            return None
        before = version["definition"] if version else {}
        changes: List[Any] = []
        _compare("", before, self.definition(), changes)
        number = version["version"] if version else 0
        diff: Any = {"flow_id": self.name, "from": number, "to": number + 1, "changes": changes}
        return diff  # type: ignore[no-any-return]


def _plain(value: Any, used: List[str]) -> Any:
    """A value with references as texts; the nodes that it uses are noted."""
    if isinstance(value, Node):
        value = value.output
    if isinstance(value, (Reference, Condition)):
        nodes = [value._node] if isinstance(value, Reference) else value.nodes
        used.extend(node for node in nodes if node is not None)
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, used) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, used) for one in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    from windlass._wire import dump

    return json.loads(dump(value))


def _compare(path: str, before: Any, after: Any, changes: List[Any]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            inner = f"{path}/{key}"
            if key not in after:
                changes.append({"path": inner, "kind": "removed", "before": before[key]})
            elif key not in before:
                changes.append({"path": inner, "kind": "added", "after": after[key]})
            else:
                _compare(inner, before[key], after[key], changes)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after)):
            _compare(f"{path}/{i}", old, new, changes)
    elif before != after:
        changes.append({"path": path, "kind": "changed", "before": before, "after": after})

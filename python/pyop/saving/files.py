"""Save and load graphs as ONNX models with pyop's own description in their metadata: `Graph.save`, `pyop.load`.

Any tool that reads ONNX can show the model; calls that ONNX lacks are operators of the domain ``pyop``. Reading uses
the description alone, so that nothing is lost.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._core import Op, __version__
from ..atomic_file import write_file
from ..declare.references import declared_by_op
from ..graph.cells import shown_place
from ..graph.deciding import check_one_path
from ..graph.graph import Graph
from ..graph.node_call import Record
from ..onnx.elements import to_array
from ..onnx.embedded import Embedded
from ..onnx.loaded import LoadedGraph, facts_of
from ..onnx.loading import load as load_onnx
from ..onnx.loading import read_model
from ..onnx.registry import Table
from ..onnx.trust import Trust
from . import onnx_nodes
from .digest import digest
from .graphs import call_problem, without_absorbed
from .parts import Parts, parts_of, put_into, put_together
from .sketch import Sketch
from .values import Reader, Writer

__all__ = ["FORMAT", "load", "save"]

FORMAT = 2  # 1: without nodes that were read from ONNX models, or with all of them in one list
_KEY = "pyop.graph"
_SOURCES = "pyop.sources"


def save(graph: Graph, path: Any, embed: bool = False) -> None:
    """Save a graph as a file; see `Graph.save`."""
    if not isinstance(graph, Graph):
        raise TypeError(f"a Graph is saved, got {type(graph).__name__} {graph!r:.80}")
    graph._check_no_writes("a file has no arguments that it could change: return what is written, as a result")
    check_one_path(graph, f"graph {graph.name!r} cannot be saved")
    graph = without_absorbed(graph)
    sketch = Sketch(graph)
    model = sketch.model()
    writer = Writer({} if embed else None)
    stored = {tensor.name for tensor in model.graph.initializer}
    description = _description(graph, writer, sketch.names, stored) | {"describes": digest(model)}
    model.metadata_props.add(key=_KEY, value=json.dumps(description))
    model.metadata_props.add(key=_SOURCES, value=json.dumps(_sources(writer.functions)))
    kept = Embedded(pickle for home in writer.homes for pickle in home.table.embedded.pickles)
    kept.with_objects(writer.embed or {}, writer.found_in).add_to(model)
    write_file(path, model.SerializeToString())


def _description(graph: Graph, writer: Writer, names: dict[tuple[int, int], str], stored: set[str]) -> dict[str, Any]:
    parts = parts_of(graph)
    nodes = []
    for k, record in enumerate(parts.records):
        entry: dict[str, Any] = {
            "kind": record.kind,
            "name": record.name,
            "specs": [writer.write(s) for s in record.specs],
            "origin": None if record.origin is None else shown_place(record.origin),
        }
        if record.scalar is not None:
            entry["scalar"] = record.scalar
        whose = f"node {record.name!r} (created at {shown_place(graph[k].origin)})"
        writer.node = f"{whose}: "
        try:
            if record.kind == "constant":
                plain = record.array.dtype.kind in "biufc" and record.array.dtype.isnative
                entry["array"] = names[k, 0] if plain and names[k, 0] in stored else writer.write(record.array)
            elif record.kind == "py":
                entry["function"] = writer.write(record.fn)
                entry["inputs"] = [list(place) for place in record.inputs]
                op = declared_by_op(record.fn, record.contract)
                entry["contract"] = {"contract_of": writer.path(op)} if op else writer.write(record.contract)
                entry["form"] = None if record.form is None else [writer.write(part) for part in record.form]
                entry["stateful"], entry["lends"] = record.stateful, record.lends
                if record.of_scalars:
                    entry["of_scalars"] = True
        except ValueError as error:
            raise ValueError(f"{whose} cannot be saved: {error}") from None
        nodes.append(entry)
    outputs = (
        None if parts.outputs is None else [[list(place) for place in parts.outputs[0]], writer.write(parts.outputs[1])]
    )
    description: dict[str, Any] = {"pyop": __version__, "name": parts.name, "nodes": nodes, "outputs": outputs}
    if isinstance(graph, LoadedGraph):
        facts = graph._facts.description()
        description["facts"] = facts | {"defaults": writer.write(facts["defaults"])}
    if writer.homes:
        description["models"] = [onnx_nodes.describe_model(home, writer.write) for home in writer.homes]
    return description | {"format": FORMAT if {"facts", "models"} & description.keys() else 1}


def _sources(functions: dict[str, Any]) -> dict[str, str]:
    """Return the source of the user's functions, for people to read."""
    sources = {}
    for path, fn in functions.items():
        if path.partition(".")[0] in ("numpy", "scipy", "pyop", "operator"):
            continue
        try:
            sources[path] = inspect.getsource(fn.__wrapped__ if isinstance(fn, Op) else fn)
        except (OSError, TypeError):
            continue
    return sources


def load(path: Any, functions: Mapping[str, Any] | None, trust: str | None, modules: Iterable[str]) -> Graph:
    """Load a graph from a file; see `pyop.load`."""
    model = read_model(path)
    entries = {entry.key: entry.value for entry in model.metadata_props}
    if _KEY not in entries:
        return load_onnx(model, functions, trust=trust, modules=modules)
    try:
        description = json.loads(entries[_KEY])
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"the description of the graph is malformed: {error!r:.200}") from None
    if not isinstance(version, int) or version > FORMAT:
        raise ValueError(
            f"the file was written by pyop {description.get('pyop')!s:.40} in format {version!r:.40}, and this pyop "
            f"{__version__} knows formats up to {FORMAT}: install a newer pyop to read it"
        )
    if description.get("describes", _KEY) not in (_KEY, digest(model)):
        raise ValueError(
            "the model was changed after pyop saved it, and pyop's description of the graph, which pyop.load reads, "
            "was not: pyop.onnx.load reads the ONNX model as it is now; or change the graph and save it again"
        )
    table = Table(functions, Trust.make(trust, modules), Embedded.of(model))
    try:
        reader = Reader(_resolver(table, functions or {}), table.trust.runs)
        reader.homes += [onnx_nodes.read_model(one, table, reader.read) for one in description.get("models", ())]
        earlier, calls = description.get("onnx"), {}
        if earlier is not None:
            calls = onnx_nodes.earlier_calls(earlier, onnx_nodes.read_model(earlier, table, reader.read))
        return _graph(description, model, reader, calls)
    except (LookupError, ValueError) as error:
        if isinstance(error, KeyError | IndexError):
            raise ValueError(f"the description of the graph is malformed: {error!r:.200}") from None
        if isinstance(error, ValueError):
            raise ValueError(f"the graph cannot be put together from its description: {error}") from error
        raise
    except Exception as error:  # whatever a description that was tampered with runs into
        raise ValueError(f"the description of the graph is malformed: {error!r:.300}") from error


def _resolver(table: Table, given: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return a function that finds import paths: in `given`, then stored by value, then in modules."""
    known = dict(given)

    def find(path: Any) -> Any:
        if not isinstance(path, str):
            raise ValueError(f"{path!r:.80} is no import path")
        if path not in known:
            known[path] = table.object_at(path)
        if isinstance(known[path], str) and path not in given:
            remedy = f"load(..., functions={{{path!r:.80}: f}})"
            raise LookupError(
                f"the graph calls {path!r:.200}, which is not known here: {known[path]}. Give it with {remedy}"
            )
        return known[path]

    return find


def _graph(description: dict[str, Any], model: Any, reader: Reader, earlier: dict[int, Any]) -> Graph:
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    records = []
    for k, entry in enumerate(description["nodes"]):
        specs = tuple(map(reader.read, entry["specs"]))
        name = str(entry["name"])
        scalar, origin = entry.get("scalar"), entry.get("origin")
        kept: Any = {
            "scalar": None if scalar is None else bool(scalar),
            "origin": origin[:1000] if isinstance(origin, str) and origin.isprintable() else None,
        }
        if entry["kind"] == "input":
            (_,) = specs
            records.append(Record("input", name, specs, **kept))
        elif entry["kind"] == "constant":
            array = entry["array"]
            array = to_array(tensors[array], f"constant {name!r:.80}") if isinstance(array, str) else reader.read(array)
            records.append(Record("constant", name, specs, array=np.asarray(array), **kept))
        elif entry["kind"] == "py":
            records.append(replace(_call(entry, name, specs, reader, k, earlier), **kept))
        else:
            raise ValueError(
                f"node {name!r:.80} is of the unknown kind {entry['kind']!r:.80}; expected input, constant or py"
            )
    outputs = None
    if description["outputs"] is not None:
        places, structure = description["outputs"]
        output_places = [(int(node), None if output is None else int(output)) for node, output in places]
        for node, output in output_places:
            if not 0 <= node < len(records) or not (output is None or 0 <= output < len(records[node].specs)):
                raise ValueError("an output of the graph is of no node")
        tree = reader.read(structure)
        if tree.num_leaves != len(output_places):
            raise ValueError(f"the outputs have {tree.num_leaves} places for {len(output_places)} results")
        outputs = (output_places, tree)
    parts = Parts(str(description["name"]), tuple(records), outputs)
    facts = description.get("facts", description.get("onnx"))
    if facts is None:
        return put_together(parts)
    graph = put_into(LoadedGraph(name=parts.name), parts)
    graph._facts = facts_of(None, facts | {"defaults": reader.read(facts["defaults"])})
    graph._facts.check([len(record.specs) for record in records])
    return graph


def _call(
    entry: dict[str, Any], name: str, specs: tuple[Any, ...], reader: Reader, k: int, earlier: dict[int, Any]
) -> Record:
    dtypes = tuple(spec.dtype for spec in specs)
    fn: Any = earlier[k](dtypes) if k in earlier else reader.read(entry["function"])
    if not callable(fn):
        raise ValueError(f"the function of node {name!r:.80} is {type(fn).__name__} {fn!r:.80}")
    form: Any = None
    if entry["form"] is not None:
        order, statics, kwnames = map(reader.read, entry["form"])
        form = (tuple(map(int, order)), tuple(statics), None if kwnames is None else tuple(map(str, kwnames)))
    inputs = tuple((int(node), int(output)) for node, output in entry["inputs"])
    if any(not 0 <= node < k or output < 0 for node, output in inputs):
        raise ValueError(f"node {name!r:.80} reads a node that is not before it")
    contract = reader.read(entry["contract"])
    given = len(inputs) if form is None else len(form[0]) - len(form[2] or ())
    problem = call_problem(fn, contract, len(inputs), given, len(specs))
    if problem is not None:
        raise ValueError(f"node {name!r:.80} {problem}")
    flags = (bool(entry["stateful"]), bool(entry["lends"]), bool(entry.get("of_scalars", False)))
    return Record("py", name, specs, None, fn, inputs, contract, form, *flags)

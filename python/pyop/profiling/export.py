"""Export profiles to files of other tools: the Trace Event Format, speedscope and pstats."""

from __future__ import annotations

import json
import marshal
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atomic_file import write_file
from .rows import parents_of

if TYPE_CHECKING:
    from .session import Profile

__all__ = ["EXPORTS", "save_pstats", "save_speedscope", "save_trace"]


def save_trace(p: Profile, path: str) -> None:
    """Save a profile in the Trace Event Format; times are in microseconds there."""
    pid = os.getpid()
    trace: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "pyop"}}]
    for name, tid in p._threads:
        trace.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
    for event in p.events:
        row, (_, tid) = p.rows[event["row"]], p._threads[event["thread"]]
        args: dict[str, Any] = {name: int(event[name]) for name in ("bytes_in", "bytes_out", "bytes_copied")}
        args |= {name: float(event[name]) for name in ("gil_released_ns", "gil_wait_ns") if event[name]}
        if event["failed"]:
            args["failed"] = True
        at = {"pid": pid, "tid": tid, "ts": float(event["start_ns"]) / 1000, "dur": float(event["duration_ns"]) / 1000}
        trace.append({"ph": "X", "name": row.name, "cat": row.kind, **at, "args": args | {"where": row.where}})
    calls = _calls_of_parts(p)
    trace += _arrows(p, calls, pid)
    for ns, live in _live_bytes(p, calls):
        trace.append({"ph": "C", "name": "live bytes", "pid": pid, "tid": 0, "ts": ns / 1000, "args": {"bytes": live}})
    write_file(path, json.dumps({"traceEvents": trace, "displayTimeUnit": "ns"}).encode())


def _calls_of_parts(p: Profile) -> list[int]:
    """Return, for each event of a part of a plan, the call of that plan around it, on any thread; else -1."""
    owners = [source.owner for source in p._sources]
    whole: dict[int, list[int]] = {}
    for k, row in enumerate(p.events["row"].tolist()):
        if p._sources[row].kind == "plan":
            whole.setdefault(owners[row], []).append(k)
    starts, ends = p.events["start_ns"], p.events["start_ns"] + p.events["duration_ns"]
    ordered = {owner: np.array(sorted(calls, key=lambda k: starts[k])) for owner, calls in whole.items()}
    call_of_event = []
    for k, row in enumerate(p.events["row"].tolist()):
        calls = ordered.get(owners[row])
        if not p._sources[row].nodes or calls is None:
            call_of_event.append(-1)
            continue
        i = int(np.searchsorted(starts[calls], starts[k], "right")) - 1
        while i >= 0 and ends[calls[i]] < ends[k]:  # calls of one plan at once, on several threads
            i -= 1
        call_of_event.append(int(calls[i]) if i >= 0 else -1)
    return call_of_event


def _arrows(p: Profile, calls: list[int], pid: int) -> list[dict[str, Any]]:
    """Return arrows from plans to those of their parts that run on other threads."""
    out: list[dict[str, Any]] = []
    events = p.events
    for k, call in enumerate(calls):
        if call < 0 or events["thread"][call] == events["thread"][k]:
            continue
        for ph, at in (("s", call), ("f", k)):
            arrow = {"ph": ph, "id": k, "name": "runs", "cat": "plan", "pid": pid}
            # An arrow begins within the call of the plan, when the part begins.
            arrow |= {"tid": p._threads[events["thread"][at]][1], "ts": float(events["start_ns"][k]) / 1000}
            out.append(arrow | ({"bp": "e"} if ph == "f" else {}))
    return out


def _live_bytes(p: Profile, calls: list[int]) -> list[tuple[float, int]]:
    """Return time and live bytes after each change: bytes in results of parts of running plans, until last read."""
    events = p.events
    ends = events["start_ns"] + events["duration_ns"]
    parts: dict[int, list[int]] = {}
    for k, call in enumerate(calls):
        if call >= 0:
            parts.setdefault(call, []).append(k)
    steps: list[tuple[float, int]] = []
    for call, members in parts.items():
        last: dict[int, float] = {}  # by node: when its last reader had ended
        for k in members:
            for node in p._sources[events["row"][k]].nodes:
                for value in node.inputs:
                    last[value.node.index] = max(last.get(value.node.index, 0.0), float(ends[k]))
        for k in members:
            source = p._sources[events["row"][k]]
            bytes_out = int(events["bytes_out"][k])
            if source.kind == "view" or not bytes_out:
                continue
            until = max((last.get(node.index, 0.0) for node in source.nodes), default=0.0)
            end = float(ends[k])
            steps += [(end, bytes_out), (until if until > end else float(ends[call]), -bytes_out)]
    live, out = 0, []
    # What is made is there before what it was made of is gone.
    for ns, change in sorted(steps, key=lambda step: (step[0], -step[1])):
        live += change
        out.append((ns, live))
    return out


def save_speedscope(p: Profile, path: str) -> None:
    """Save a profile for speedscope.app: opened and closed frames for each thread."""
    profiles = []
    for thread, name in enumerate(p.threads):
        mine = p.events[p.events["thread"] == thread]
        marks: list[dict[str, Any]] = []
        around: list[tuple[float, int]] = []

        def close(until: float, around: list[tuple[float, int]] = around, marks: list[Any] = marks) -> None:
            while around and around[-1][0] <= until:
                end, frame = around.pop()
                marks.append({"type": "C", "frame": frame, "at": end})

        for event in mine:
            start, frame = float(event["start_ns"]), int(event["row"])
            close(start)
            end = start + float(event["duration_ns"])
            around.append((min(end, around[-1][0]) if around else end, frame))
            marks.append({"type": "O", "frame": frame, "at": start})
        close(float("inf"))
        end = max(p.wall_ns, marks[-1]["at"] if marks else 0.0)
        profiles.append(
            {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": end, "events": marks}
        )
    frames = []
    for row in p.rows:
        file, _, line = row.where.rpartition(":")
        frames.append({"name": row.name} | ({"file": file, "line": int(line)} if file and line.isdigit() else {}))
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "pyop",
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    write_file(path, json.dumps(content).encode())


def save_pstats(p: Profile, path: str) -> None:
    """Save a profile for `pstats.Stats`: calls, and seconds with and without inner calls, by function and caller."""
    labels = []
    for row in p.rows:
        file, _, line = row.where.rpartition(":")
        labels.append((file or f"<{row.kind}>", int(line) if line.isdigit() else 0, row.name))
    rows, around = p.events["row"].tolist(), parents_of(p.events)
    stats: dict[Any, Any] = {}
    for k, row in enumerate(rows):
        up, recursive = around[k], False
        while up >= 0 and not recursive:
            recursive = labels[rows[up]] == labels[row]
            up = around[up]
        own = float(p.events["self_ns"][k]) / 1e9
        whole = 0.0 if recursive else float(p.events["duration_ns"][k]) / 1e9
        entry = (int(not recursive), 1, own, whole)
        *counts, callers = stats.get(labels[row], (0, 0, 0.0, 0.0, {}))
        if around[k] >= 0:
            caller = labels[rows[around[k]]]
            callers[caller] = tuple(a + b for a, b in zip(callers.get(caller, (0, 0, 0.0, 0.0)), entry, strict=True))
        stats[labels[row]] = (*(a + b for a, b in zip(counts, entry, strict=True)), callers)
    write_file(path, marshal.dumps(stats))


EXPORTS: dict[str, Callable[[Profile, str], None]] = {
    ".speedscope.json": save_speedscope,
    ".pstats": save_pstats,
    ".json": save_trace,
}

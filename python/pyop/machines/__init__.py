"""Call plans, compiled functions and ops on many processes and machines: ``plan.map``.

```
inputs ─► chunks ─► Task (digest of the callable, pickled arguments, arrays beside them) ─► an engine's worker: run_task
results ◄─ in order ◄─ Done │ Failed │ Lacking ◄──────────────────────────────────────────────┘
```

`mapping.py` keeps the workers busy and puts results in order, `chunks.py` says how many inputs travel together, and
`bell.py` calls a task back; `engines.py` makes executors of all kinds alike; `own_workers.py` has processes of our own,
and `worker.py` is what runs in them; `tasks.py` and `callee.py` are what travels, `memory.py` how arrays do on one
machine, `batches.py` how many small ones do; `failures.py` says what went wrong where. README.md
has graphs on Dask.
"""

from .failures import WorkerDied
from .mapping import map_calls

__all__ = ["WorkerDied", "map_calls"]

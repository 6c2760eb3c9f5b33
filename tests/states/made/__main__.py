"""``python -m tests.states.made FIRST LAST [SECONDS]``: run random programs with state, print what differs; with
``--why`` also why functions run themselves, most frequent first.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter

from .judge import judge

if __name__ == "__main__":
    given = [x for x in sys.argv[1:] if not x.startswith("--")]
    seconds = float(given[2]) if len(given) > 2 else 1e9
    start, shown = time.monotonic(), 0
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for seed in range(int(given[0]), int(given[1])):
        if time.monotonic() - start > seconds:
            break
        found = judge(seed)
        counts[found.outcome] += 1
        if found.outcome in ("WRONG", "refused"):
            print(seed, found.outcome, found.why[:600], sep="\n", flush=True)
            if shown < 2:
                print(found.source)
            shown += 1
        elif found.why:
            reasons[re.sub(r"<[^>]*>|\(.*?\)|'[^']*'|\d+|\bf\d\b", "…", found.why)[:150]] += 1
    for reason, count in reasons.most_common(40) if "--why" in sys.argv else ():
        print(f"{count:6}  {reason}")
    print(dict(counts))

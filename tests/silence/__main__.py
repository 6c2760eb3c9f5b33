"""``python -m tests.silence [-v] [WORD …]``: the outcomes of the programs whose names hold a word, or of all."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from typing import Any

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from .hunt import in_children
from .judge import BROKEN, LEFT_OUT, REFUSED, RIGHT, UNCLEAR, WRONG
from .programs import every
from .ways import WAYS

LETTERS = {RIGHT: "R", REFUSED: "r", UNCLEAR: "?", WRONG: "W", BROKEN: "B", LEFT_OUT: "-"}


def outcomes(names: list[str], ways: list[str]) -> dict[str, dict[str, list[str]]]:
    """Of each program, by way: the outcome and why."""
    entries = every()

    def outcome(name: str, way: str) -> Any:
        return (LEFT_OUT, "") if way in entries[name].without else WAYS[way](entries[name])

    def work(name: str) -> dict[str, Any]:
        return {way: outcome(name, way) for way in ways}

    found = {}
    for name, answer in zip(names, in_children(names, work), strict=True):
        if "broken" in answer:  # which way was it?
            pairs = [(name, way) for way in ways]
            each = in_children(pairs, lambda pair: outcome(*pair))
            answer = {
                way: [BROKEN, one["broken"]] if isinstance(one, dict) else one
                for way, one in zip(ways, each, strict=True)
            }
        found[name] = answer
    return found


def reason(why: str) -> str:
    """A refusal without what is its own: names, numbers, kinds of arrays."""
    text = re.sub(r"<[^>]*>|'[^']*'|\d+|\w+\[[^\]]*\]", "…", why)
    return text[:90]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.silence", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--way", action="append", help="only this way of running them")
    parser.add_argument("--json", action="store_true", help="everything, for tests")
    parser.add_argument("--table", action="store_true", help="outcomes.txt as it is now")
    parser.add_argument("-v", action="store_true", help="say why programs are refused")
    args = parser.parse_args()
    names = [name for name in every() if not args.words or any(word in name for word in args.words)]
    ways = args.way or list(WAYS)
    found = outcomes(names, ways)
    if args.json:
        json.dump(found, sys.stdout)
        return 0
    if args.table:
        print_table(found)
        return 0
    reasons: Counter[str] = Counter()
    for name, by_way in found.items():
        for way, (outcome, why) in by_way.items():
            if outcome == REFUSED:
                reasons[reason(why)] += 1
            if outcome in (WRONG, BROKEN, UNCLEAR) or (args.v and outcome == REFUSED):
                print(f"{outcome:8} {name} [{way}]: {why}")
    print(f"\n{'way':20}" + "".join(f"{word:>9}" for word in LETTERS))
    for way in ways:
        counts = Counter(by_way[way][0] for by_way in found.values())
        print(f"{way:20}" + "".join(f"{counts[word]:9}" for word in LETTERS))
    print(f"\n{len(found)} programs; refusals by reason:")
    for text, count in reasons.most_common(40):
        print(f"{count:6}  {text}")
    bad = sum(outcome in (WRONG, BROKEN, UNCLEAR) for by_way in found.values() for outcome, _ in by_way.values())
    return 1 if bad else 0


def print_table(found: dict[str, dict[str, list[str]]]) -> None:
    for name, by_way in found.items():
        print(f"{name:44} {''.join(LETTERS[outcome] for outcome, _ in by_way.values())}")


if __name__ == "__main__":
    sys.exit(main())

"""Every function's rules stand in the folder of its one family."""

import json
import subprocess
import sys

import pytest

from pyop.functions import families

# In a process of its own: what is asked is where each rule is registered from, so none may be there already.
_SCRIPT = """
import json, sys
from pyop import functions
from pyop.functions import families
from pyop.gradients import table
from pyop.onnx import standard

homes = {}

def note(kind, key):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame.f_globals["__name__"].startswith("pyop.functions."):
        homes.setdefault(key, {})[kind] = frame.f_globals["__name__"]

class Noting(dict):
    def __init__(self, kind, old):
        super().__init__(old)
        self.kind = kind

    def __setitem__(self, key, rule):
        note(self.kind, key)
        super().__setitem__(key, rule)

for module, kind in ((functions, "spec"), (table, "grad"), (standard, "onnx")):
    module._rules = Noting(kind, module._rules)
for kind in ("spec", "grad", "onnx"):
    families.load(kind)
    families.load(kind, families.OF_SCIPY)
print(json.dumps([[table.name_of(key), found] for key, found in homes.items()]))
"""


def test_all_rules_of_a_function_are_in_one_folder():
    pytest.importorskip("onnx")
    pytest.importorskip("scipy")
    found = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    homes = json.loads(found.stdout)
    apart = []
    for name, modules in homes:
        places = {module.split(".")[2] for module in modules.values()}
        if len(places) > 1:
            apart.append((name, sorted(modules.values())))
    assert apart == []
    assert sum(len(modules) > 1 for _, modules in homes) > 200  # the script has seen them
    # A rule of one kind stands in the file of that kind, or in one beside it that has its own name.
    known = {**families.FAMILIES, **families.OF_SCIPY}
    for name, modules in homes:
        for kind, module in modules.items():
            assert kind in known[module.split(".")[2]].split(), (name, module)


def test_first_calls_load_one_family():
    """The usual functions are found without loading all families."""
    from pyop import functions

    for family, names in functions._homes.items():
        for name in names.split():
            assert functions.lookup(functions.find(name)).__module__ == f"pyop.functions.{family}.spec", name

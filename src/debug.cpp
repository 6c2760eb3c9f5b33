// src/debug.cpp: what pyop.debug asks of the core.
#include <pybind11/pybind11.h>

#include "runtime/reaper.h"

namespace py = pybind11;

void register_debug(py::module_& m) {
    m.def(
        "debug_stats",
        [] {
            const pyop::ReaperStats stats = pyop::reaper_stats();
            py::dict out;
            out["deferred"] = stats.deferred;
            out["drained"] = stats.drained;
            out["leaked"] = stats.leaked;
            out["closed"] = stats.closed;
            return out;
        },
        "Counters of the core, as a new dict. See pyop.debug.stats.");
    m.def(
        "collect", [] { return pyop::drain(); },
        "Release what threads without the GIL have dropped; returns how many. See pyop.debug.collect.");
}

// src/debug.cpp: what pyop.debug asks of the core.
#include <pybind11/pybind11.h>

#include "array/loop/exact_loop.h"
#include "array/memory/pool.h"
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
    m.def(
        "pool_stats",
        [] {
            const pyop::PoolStats stats = pyop::pool_stats();
            py::dict out;
            out["limit"] = stats.limit;
            out["kept"] = stats.kept;
            out["blocks"] = stats.blocks;
            out["hits"] = stats.hits;
            out["misses"] = stats.misses;
            out["evicted"] = stats.evicted;
            return out;
        },
        "Counters of the pool of result memory, as a new dict. See pyop.debug.pool_stats.");
    m.def(
        "pool_limit", [](size_t bytes) { return pyop::pool_set_limit(bytes); }, py::arg("bytes"),
        "Keep at most so many bytes; returns the old limit. See pyop.debug.pool_limit.");
    m.def(
        "pool_trim", [] { return pyop::pool_trim(); },
        "Give what the pool keeps back to the system; returns how many bytes. See pyop.debug.pool_trim.");
    m.def(
        "exact_kernels",
        [] {
            py::dict out;
            for (const auto& [name, state] : pyop::exact_kernel_states()) out[name.c_str()] = state;
            return out;
        },
        "What has become of each exact kernel, by ufunc. See pyop.debug.exact_kernels.");
}

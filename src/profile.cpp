// src/profile.cpp: what pyop.profile asks of the core.
#include <pybind11/pybind11.h>

#include "profile/events.h"

namespace py = pybind11;

void register_profile(py::module_& m) {
    pyop::profile_init();
    m.def(
        "profile_start", [](size_t events) { return pyop::profile_start(events); }, py::arg("events"),
        "Begin a profile that keeps at least the last `events` events of each thread; returns its number.");
    m.def(
        "profile_stop",
        [](uint64_t number) {
            const pyop::Recorded r = pyop::profile_stop(number);
            py::list sources, threads;
            for (const pyop::Ref& source : r.sources) sources.append(py::handle(source.get()));
            for (const pyop::ThreadEvents& thread : r.threads) {
                const py::bytes events(reinterpret_cast<const char*>(thread.events.data()),
                                       thread.events.size() * sizeof(pyop::Event));
                threads.append(py::make_tuple(py::handle(thread.name.get()), thread.native_id, thread.lost, events));
            }
            py::dict out;
            out["start"] = r.start;
            out["stop"] = r.stop;
            out["start_ns"] = r.start_ns;
            out["stop_ns"] = r.stop_ns;
            out["ns_per_tick"] = r.ns_per_tick;
            out["sources"] = sources;
            out["threads"] = threads;
            return out;
        },
        py::arg("number"), "End it: what was recorded since its start, as a dict. See python/pyop/profile.py.");
}

// profile/events.h: record one event a call, in a buffer of the thread that made it, for a profile.
//
//     thread ──► thread-local Log ──► chunks of events ──► chunks of events ──► (the limit) ──► the oldest chunk again
//
// Buffers grow by chunks up to a limit and then are rings: the oldest events are overwritten, and counted. An event
// says who was called by a number. The caller (an op, a plan) keeps its number in a SourceId; the list of callers
// belongs to the recording, which keeps them alive, so that names are looked up when it is over.
//
// Several profiles may run at once, in each other or side by side: there is one recording, from the start of the
// first to the end of the last, and each profile takes what began after its start and had ended at its stop.
//
// A profile may have an *opener*, by which other tools see calls while they run (python/pyop/profiling/ranges.py):
// `opener(owner, part)` begins a range and returns what is called to end it. Calls pay for a branch if none has one.
//
// Threads: everything here needs an attached thread. With a GIL that is what makes it safe to read the buffers of
// others; without one `recording_mutex` guards the recording, the buffers and the numbers of callers.
#pragma once

#include <vector>

#include "runtime/meter.h"
#include "runtime/ref.h"
#include "runtime/without_gil.h"

namespace pyop {

inline constinit BriefMutex recording_mutex;

// The number of a caller in a recording.
struct SourceId {
    uint32_t recording = 0;
    uint32_t id = 0;
};

inline constexpr uint32_t kWholeCall = UINT32_MAX;

// Read by python/pyop/profiling/session.py as an array of this layout.
struct Event {
    uint64_t start, end;  // ticks
    uint32_t source;
    uint32_t part;  // the instruction of a plan, or kWholeCall
    uint64_t bytes_in, bytes_out, copied;
    uint64_t released, waited;  // ticks
    uint64_t failed;            // 1 if it ended in an exception
};
static_assert(sizeof(Event) == 9 * 8);

// Where the next event of a thread goes; there is always room for one.
struct Cursor {
    Event* next = nullptr;
    Event* chunk_end = nullptr;
};
// The buffer of this thread, in the recording of that number.
struct Log {
    uint32_t recording = 0;
    Cursor* cursor = nullptr;
};
inline constinit thread_local Log this_log;
// Another number for every recording, and for the times between them.
inline constinit Relaxed<uint32_t> current_recording = 1;

// Gives this thread a buffer in the current recording; false if there is no memory. Leaves a pending error alone.
PYOP_COLD bool open_log();
// Under the mutex: the chunk of this thread is full: go on in another.
PYOP_COLD void next_chunk();
// Under the mutex: numbers `owner`, which the recording keeps alive; false if there is no memory.
PYOP_COLD bool number_source(SourceId& id, PyObject* owner);

// How many of the running profiles have an opener.
inline constinit Relaxed<uint32_t> openers = 0;
// Begins the ranges of a call, and ends them: what is handed from one to the other is null if there are none. Both run
// Python, and leave a pending error alone. What that raises, by a handler of signals above all, is raised on Python's
// main thread as soon as it can be.
PYOP_COLD PyObject* open_ranges_new(PyObject* owner, uint32_t part);
PYOP_COLD void close_ranges_steal(PyObject* ranges);

// --- for the Python side

// When the module is loaded.
void profile_init();

// Begins a profile whose threads keep at least the last `events` events each; returns its number. `opener` may be null.
uint64_t profile_start(size_t events, PyObject* opener);

struct ThreadEvents {
    Ref name;
    uint64_t native_id;
    uint64_t lost;  // events of the profile that were overwritten
    std::vector<Event> events;
};
struct RecordedEvents {
    uint64_t start, stop;        // ticks
    uint64_t start_ns, stop_ns;  // since the epoch of CLOCK_MONOTONIC
    double ns_per_tick;
    std::vector<Ref> sources;
    std::vector<ThreadEvents> threads;
};
// Ends it and hands out what it has seen.
RecordedEvents profile_stop(uint64_t number);

}  // namespace pyop

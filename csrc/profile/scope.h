// profile/scope.h: record one call in the profile (Scope). It exists only while profiling() is true: code that is to
// be fast asks that once and takes another way, so that a profile that is off costs one predictable branch.
//
//     if (profiling()) return call_profiled(…);      // cold
//
//     Scope scope(op.profile_id, self, kWholeCall);  // attached
//     scope.bytes_in = …;
//     PyObject* result = …;
//     if (result) scope.succeeded(bytes_of(result));
#pragma once

#include "profile/events.h"

namespace pyop {

class Scope {
  public:
    // `owner` (borrowed) has the name; `id` is its to keep.
    Scope(SourceId& id, PyObject* owner, uint32_t part)
        : ranges_(PYOP_UNLIKELY(openers > 0) ? open_ranges_new(owner, part) : nullptr), before_(meter) {
        if (PYOP_UNLIKELY(!profiling())) return;  // what opened the ranges was Python: the profile may be over
        if (PYOP_UNLIKELY(this_log.recording != current_recording) && !open_log()) return;
        const BriefLock lock(recording_mutex);
        if (PYOP_UNLIKELY(id.recording != current_recording) && !number_source(id, owner)) return;
        recording_ = current_recording;
        source_ = id.id;
        part_ = part;
        start_ = ticks();
    }
    ~Scope() {
        record();
        if (PYOP_UNLIKELY(ranges_ != nullptr)) close_ranges_steal(ranges_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    void succeeded(uint64_t bytes_out) {
        bytes_out_ = bytes_out;
        failed_ = 0;
    }
    // It was not a call after all.
    void forget() { recording_ = 0; }

    uint64_t bytes_in = 0;

  private:
    PYOP_INLINE void record() {
        // If the recording is over, or another has begun, this was no whole call of any.
        if (PYOP_UNLIKELY(recording_ != current_recording)) return;
        const uint64_t end = ticks();
        const BriefLock lock(recording_mutex);
        if (kWithoutGil && (recording_ != current_recording || this_log.recording != recording_)) return;
        Cursor& log = *this_log.cursor;
        const Meter& after = meter;
        *log.next = {start_,
                     end,
                     source_,
                     part_,
                     bytes_in,
                     bytes_out_,
                     after.copied - before_.copied,
                     after.released - before_.released,
                     after.waited - before_.waited,
                     failed_};
        if (PYOP_UNLIKELY(++log.next == log.chunk_end)) next_chunk();
    }

    PyObject* const ranges_;
    const Meter before_;
    uint64_t bytes_out_ = 0, failed_ = 1, start_ = 0;
    uint32_t recording_ = 0, source_ = 0, part_ = 0;
};

}  // namespace pyop

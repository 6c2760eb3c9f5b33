// profile/events.cpp: keep the buffers of all threads, and begin and end a recording.
#include "profile/events.h"

#include <sys/syscall.h>  // SYS_gettid
#include <unistd.h>       // syscall

#include <algorithm>  // std::max, std::find_if
#include <memory>     // std::unique_ptr
#include <new>        // std::nothrow
#include <utility>    // std::exchange

#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/items.h"

namespace pyop {

namespace {

constexpr size_t kChunk = 1024;  // events

// The events of one thread. Number n is in chunk n / kChunk, modulo the number of chunks.
struct Buffer {
    Cursor cursor;
    Event* begin = nullptr;  // of the chunk in use
    uint64_t full = 0;       // chunks filled so far
    uint64_t lost = 0;       // numbers below this one are overwritten
    std::vector<std::unique_ptr<Event[]>> chunks;
    Ref name;
    uint64_t native_id = 0;

    uint64_t written() const { return full * kChunk + static_cast<uint64_t>(cursor.next - begin); }
    const Event& at(uint64_t n) const { return chunks[n / kChunk % chunks.size()][n % kChunk]; }

    void use(Event* chunk) {
        begin = cursor.next = chunk;
        cursor.chunk_end = chunk + kChunk;
    }
    bool grow() {
        std::unique_ptr<Event[]> chunk(new (std::nothrow) Event[kChunk]);
        if (!chunk) return false;
        chunks.push_back(std::move(chunk));
        use(chunks.back().get());
        return true;
    }
};

struct Mark {
    uint64_t number;
    uint64_t start, start_ns;
    std::vector<uint64_t> written;  // by buffer; those that came later began empty
    Ref opener;
};

struct Recording {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Ref> sources;
    std::vector<Mark> marks;  // of the profiles that are running
    size_t most_chunks = 1;
    uint64_t last_number = 0;
};

// Never destroyed: threads outlive the module.
Recording& recording() {
    static auto* r = new Recording;
    return *r;
}

struct Moment {
    uint64_t ticks, ns;
};
// The longer ago it is, the better is the rate of the counter known.
Moment loaded;

// What threading calls this thread. Its table is only looked at: nothing of Python's runs.
Ref thread_name() {
    Ref module_name = Ref::steal(PyUnicode_FromString("threading"));
    Ref threading = module_name ? Ref::steal(PyImport_GetModule(module_name.get())) : Ref();
    Ref active = threading ? Ref::steal(PyObject_GetAttrString(threading.get(), "_active")) : Ref();
    Ref ident = Ref::steal(PyLong_FromUnsignedLong(PyThread_get_thread_ident()));
    const Ref thread =
        active && ident && PyDict_CheckExact(active.get()) ? item_of_dict(active.get(), ident.get()) : Ref();
    Ref name = thread ? Ref::steal(PyObject_GetAttrString(thread.get(), "_name")) : Ref();
    if (!name || !PyUnicode_CheckExact(name.get())) {
        PyErr_Clear();
        name = Ref::steal(PyUnicode_FromFormat("thread %lu", PyThread_get_thread_ident()));
    }
    return name;
}

bool add_buffer() {
    auto buffer = std::make_unique<Buffer>();
    buffer->name = thread_name();
    buffer->native_id = static_cast<uint64_t>(syscall(SYS_gettid));
    if (!buffer->name || !buffer->grow()) return false;
    const BriefLock lock(recording_mutex);
    recording().buffers.push_back(std::move(buffer));
    this_log = {current_recording, &recording().buffers.back()->cursor};
    return true;
}

int raise_pending(void* exception) {
    restore_pending(Ref::steal(static_cast<PyObject*>(exception)));
    return -1;
}

// A handler of signals may have raised this, which must reach the program: a call has no way to fail here.
void raise_on_main_thread() {
    PyObject* exception = take_pending().release();
    if (Py_AddPendingCall(raise_pending, exception) == 0) return;
    restore_pending(Ref::steal(exception));
    PyErr_WriteUnraisable(nullptr);
}

}  // namespace

// The openers may begin and end profiles: each is held while it runs, and the marks are looked at anew behind it.
PyObject* open_ranges_new(PyObject* owner, uint32_t part) {
    const SavedError saved;
    const auto& marks = recording().marks;
    Ref ranges = Ref::steal(PyList_New(0)), number = Ref::steal(PyLong_FromUnsignedLong(part));
    bool good = ranges && number;
    for (size_t k = 0; good; ++k) {
        Ref opener;
        {
            const BriefLock lock(recording_mutex);
            if (k >= marks.size()) break;
            opener = marks[k].opener;
        }
        if (!opener) continue;
        PyObject* const arguments[] = {owner, number.get()};
        const Ref end = Ref::steal(vectorcall_new(opener.get(), arguments, 2, nullptr));
        good = end && PyList_Append(ranges.get(), end.get()) == 0;
    }
    if (!good) raise_on_main_thread();
    return ranges.release();
}

void close_ranges_steal(PyObject* ranges) {
    const SavedError saved;
    const Ref owned = Ref::steal(ranges);
    for (Py_ssize_t k = PyList_GET_SIZE(ranges); k-- > 0;)
        if (!Ref::steal(vectorcall_new(PyList_GET_ITEM(ranges, k), nullptr, 0, nullptr))) raise_on_main_thread();
}

void profile_init() { loaded = {ticks(), clock_ns()}; }

bool open_log() {
    const SavedError saved;
    try {
        return add_buffer();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

void next_chunk() {
    auto& buffer = *reinterpret_cast<Buffer*>(this_log.cursor);  // its first member
    ++buffer.full;
    const size_t n = buffer.chunks.size();
    bool grown = false;
    try {
        grown = n < recording().most_chunks && buffer.full == n && buffer.grow();
    } catch (const std::bad_alloc&) {
    }
    if (grown) return;
    // From now on a ring of the chunks there are.
    buffer.lost = (buffer.full - n + 1) * kChunk;
    buffer.use(buffer.chunks[buffer.full % n].get());
}

bool number_source(SourceId& id, PyObject* owner) {
    auto& sources = recording().sources;
    try {
        sources.push_back(Ref::borrow(owner));
    } catch (const std::bad_alloc&) {
        return false;
    }
    id = {current_recording, static_cast<uint32_t>(sources.size() - 1)};
    return true;
}

uint64_t profile_start(size_t events, PyObject* opener) {
    Recording& r = recording();
    const BriefLock lock(recording_mutex);
    if (r.marks.empty()) {
        ++current_recording;
        r.most_chunks = 1;
    }
    // One chunk more: the one that is being overwritten does not count.
    r.most_chunks = std::max(r.most_chunks, events / kChunk + 2);
    Mark mark{++r.last_number, 0, 0, {}, Ref::borrow(opener)};
    for (const auto& buffer : r.buffers) mark.written.push_back(buffer->written());
    r.marks.push_back(std::move(mark));
    openers += opener != nullptr;
    profiling_flag.store(true, std::memory_order_relaxed);
    r.marks.back().start_ns = clock_ns();
    r.marks.back().start = ticks();
    return r.last_number;
}

RecordedEvents profile_stop(uint64_t number) {
    const uint64_t stop = ticks(), stop_ns = clock_ns();
    Recording& r = recording();
    std::vector<Ref> sources;  // both are dropped when all is done, since that may run anything, profiles too
    Ref opener;
    std::vector<std::unique_ptr<Buffer>> buffers;
    const BriefLock lock(recording_mutex);
    const auto mark = std::find_if(r.marks.begin(), r.marks.end(), [&](const Mark& m) { return m.number == number; });
    RecordedEvents out;
    if (mark == r.marks.end()) return out;
    out.start = mark->start;
    out.start_ns = mark->start_ns;
    out.stop = stop;
    out.stop_ns = stop_ns;
    out.ns_per_tick = static_cast<double>(stop_ns - loaded.ns) / static_cast<double>(stop - loaded.ticks);
    out.sources = r.sources;
    for (size_t i = 0; i < r.buffers.size(); ++i) {
        const Buffer& buffer = *r.buffers[i];
        const uint64_t since = i < mark->written.size() ? mark->written[i] : 0;
        ThreadEvents thread{buffer.name, buffer.native_id, buffer.lost > since ? buffer.lost - since : 0, {}};
        for (uint64_t n = std::max(since, buffer.lost); n < buffer.written(); ++n)
            if (buffer.at(n).start >= mark->start) thread.events.push_back(buffer.at(n));
        if (!thread.events.empty() || thread.lost) out.threads.push_back(std::move(thread));
    }
    opener = std::move(mark->opener);
    openers -= static_cast<bool>(opener);
    r.marks.erase(mark);
    if (r.marks.empty()) {
        profiling_flag.store(false, std::memory_order_relaxed);
        ++current_recording;
        buffers = std::exchange(r.buffers, {});
        sources = std::exchange(r.sources, {});
    }
    return out;
}

}  // namespace pyop

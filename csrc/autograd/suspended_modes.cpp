// autograd/suspended_modes.cpp: switch the modes of generators and coroutines with their suspensions.
#include "autograd/suspended_modes.h"

#include "autograd/turn.h"

#include <algorithm>
#include <vector>

#include "runtime/errors.h"
#include "runtime/items.h"

namespace pyop {

namespace {

// A mode that a generator has entered and not left.
struct Held {
    uint64_t number;
    PyObject *mode, *generator;  // borrowed, and only compared
    Ref alive;                   // a weak reference to the generator
    Setting on;
};

// One that is on, on this thread.
struct Applied {
    uint64_t number;
    Setting on, before;
};

// Guarded by the turn. Never destroyed: generators may end when the process does.
std::vector<Held>& held = *new std::vector<Held>;
uint64_t last_number = 0;
thread_local std::vector<Applied> applied;

using Numbers = std::vector<uint64_t>;

bool has_number(const Numbers& numbers, uint64_t number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool is_one_of(PyObject* text, std::initializer_list<const char*> names) {
    if (!text || !PyUnicode_Check(text)) return false;
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return PyUnicode_CompareWithASCIIString(text, name) == 0; });
}

// Whether the code of a frame enters and leaves for its caller, by what it is called or where it stands.
bool enters_for_caller(PyFrameObject* frame) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
    if (is_one_of(c->co_name, {"__enter__", "__aenter__", "__exit__", "__aexit__"})) return true;
    const Ref globals = Ref::steal(PyFrame_GetGlobals(frame));
    const Ref module = PyDict_Check(globals.get()) ? item_of_dict(globals.get(), "__name__") : Ref();
    return is_one_of(module.get(), {"contextlib", "_pytest.fixtures", "pluggy._callers", "pytest_asyncio.plugin"});
}

// Empty of a frame that belongs to none.
Ref generator_of(PyFrameObject* frame) {
    Ref generator = Ref::steal(PyFrame_GetGenerator(frame));
    return generator.get() == Py_None ? Ref() : std::move(generator);  // CPython 3.14 answers None
}

Ref caller_of(PyFrameObject* frame) { return Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame))); }

PyFrameObject* as_frame(const Ref& frame) { return reinterpret_cast<PyFrameObject*>(frame.get()); }

Ref innermost_frame() { return Ref::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get()))); }

// The generators on this thread's stack that hold modes, the innermost first. Frames are made for this, which may
// collect garbage, and run anything.
std::vector<Ref> holders_here() {
    std::vector<Ref> found;
    for (Ref frame = innermost_frame(); frame; frame = caller_of(as_frame(frame))) {
        Ref generator = generator_of(as_frame(frame));
        const auto holds = [&](const Held& h) { return h.generator == generator.get(); };
        if (generator && std::any_of(held.begin(), held.end(), holds)) found.push_back(std::move(generator));
    }
    return found;
}

// The numbers of what they hold, the outermost first.
Numbers held_by(const std::vector<Ref>& holders) {
    Numbers found;
    for (size_t i = holders.size(); i-- > 0;)
        for (const Held& h : held)
            if (h.generator == holders[i].get()) found.push_back(h.number);
    return found;
}

// Undoes what is applied, from the one at `first` on.
void undo_from(size_t first) {
    for (; applied.size() > first; --suspended_modes) {
        apply(applied.back().before, applied.back().on);
        applied.pop_back();
    }
}

void forget_dead(const Numbers& running) {
    for (size_t i = held.size(); i-- > 0;) {
        const Ref alive = Ref::steal(PyObject_CallNoArgs(held[i].alive.get()));
        if (!alive) PyErr_Clear();
        if ((alive && alive.get() != Py_None) || has_number(running, held[i].number)) continue;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        --suspended_modes;
    }
}

}  // namespace

void follow_suspended() noexcept {
    const Turn turn;
    const SavedError pending;
    const std::vector<Ref> holders = holders_here();
    const Numbers running = held_by(holders);
    size_t same = 0;
    while (same < applied.size() && same < running.size() && applied[same].number == running[same]) ++same;
    undo_from(same);
    for (; same < running.size(); ++same) {
        const auto entry =
            std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.number == running[same]; });
        applied.push_back({entry->number, entry->on, current_setting()});
        ++suspended_modes;
        apply(entry->on, entry->on);
    }
    forget_dead(running);
}

Setting current_setting() { return {autograd_state.recording, autograd_state.anomaly, autograd_state.check_nan}; }

void apply(const Setting& wanted, const Setting& touched) {
    if (touched.recording != kLeave) autograd_state.recording = wanted.recording != 0;
    if (touched.anomaly != kLeave) autograd_state.anomaly = wanted.anomaly != 0;
    if (touched.check_nan != kLeave) autograd_state.check_nan = wanted.check_nan != 0;
}

Ref entering_generator() {
    Ref frame = innermost_frame();
    while (frame) {
        Ref generator = generator_of(as_frame(frame));
        Ref caller = caller_of(as_frame(frame));
        const bool passed_on =
            enters_for_caller(as_frame(frame)) || (generator && caller && enters_for_caller(as_frame(caller)));
        if (!passed_on) return generator;
        frame = std::move(caller);
    }
    return {};
}

int hold_while_running(PyObject* mode, PyObject* generator, const Setting& on) {
    const Turn turn;
    Ref alive = Ref::steal(PyWeakref_NewRef(generator, nullptr));
    if (!alive) return -1;
    held.push_back({++last_number, mode, generator, std::move(alive), on});
    ++suspended_modes;
    follow_suspended();
    return 0;
}

bool end_held(PyObject* mode, PyObject* generator) {
    if (!suspended_modes) return false;
    const Turn turn;
    follow_suspended();
    for (size_t i = held.size(); i-- > 0;) {
        if (held[i].mode != mode || (generator && held[i].generator != generator)) continue;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        --suspended_modes;
        follow_suspended();
        return true;
    }
    return false;
}

}  // namespace pyop

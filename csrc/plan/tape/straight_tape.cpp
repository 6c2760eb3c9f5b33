// plan/tape/straight_tape.cpp: run a tape on the slots of a frame.
#include "plan/tape/straight_tape.h"

#include <algorithm>

#include "array/loop/fp_flags.h"
#include "array/memory/pool.h"
#include "plan/execute.h"
#include "plan/steps/guard_step.h"
#include "plan/tape/bound_array.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

constexpr int kMostCredit = 8, kRest = 64;

PyObject* copy_new(PyArrayObject* a, ResultRecycler& recycler) {
    if (!PyArray_IS_C_CONTIGUOUS(a)) return PyArray_NewCopy(a, NPY_KEEPORDER);
    const npy_intp bytes = PyArray_NBYTES(a);
    PyArray_Descr* const dtype = PyArray_DESCR(a);
    PyObject* made = bytes <= ResultRecycler::kMostBytes
                         ? recycler.take(dtype, PyArray_NDIM(a), PyArray_DIMS(a))
                         : pooled_array_new(dtype, PyArray_NDIM(a), PyArray_DIMS(a), nullptr);
    if (made) std::memcpy(PyArray_DATA(as_array(made)), PyArray_DATA(a), static_cast<size_t>(bytes));
    return made;
}

}  // namespace

PyObject* StraightTape::number_new(size_t output, const TapeCell* cells) const {
    const TapeValue& value = outputs_[output].value;
    PyObject* made = recyclers_[output].take(value.dtype, 0, nullptr);
    if (made)
        std::memcpy(PyArray_DATA(as_array(made)), cells + value.cell,
                    static_cast<size_t>(PyDataType_ELSIZE(value.dtype)));
    return made;
}

// How a run has ended, if flags are errors.
TapeEnd StraightTape::with_flags(TapeEnd end) const {
    const int flags = hot_.tape().calls_loops ? all_fp_errors() : fp_errors();
    if (PYOP_LIKELY(flags == 0)) return end;
    clear_all_fp_errors();
    return end == TapeEnd::Failed || errstate_ignores(flags) ? end : TapeEnd::Left;
}

// By machine code. Left: nothing has changed, and the interpreter must do it.
TapeEnd StraightTape::run_code(TapeFunction* code, PyObject* const* written, TapeCell* cells) const {
    size_t bytes = 0;
    for (size_t k = 0; k < inputs_.size(); ++k)
        if (written[k]) bytes += static_cast<size_t>(PyArray_NBYTES(as_array(written[k])));
    const bool snaps = hot_.is_snapshot_better(1, bytes);
    Snapshot snapshot;
    for (size_t k = 0; snaps && k < inputs_.size(); ++k)
        if (written[k] && !snapshot.take(as_array(written[k]))) return TapeEnd::Failed;
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    const TapeEnd end = with_flags(hot_.run(code, cells, snaps ? nullptr : &journal, until_look));
    if (end == TapeEnd::Failed) return end;
    if (end != TapeEnd::Left) {
        if (!snaps) hot_.note_stores(journal.size(), 1);
        hot_.went_well();
        return end;
    }
    hot_.was_left();
    if (!snaps) journal.undo();
    return snaps && snapshot.put_back() < 0 ? TapeEnd::Failed : TapeEnd::Left;
}

int StraightTape::run(const Program& p, PyObject** slots) const {
    if (PYOP_UNLIKELY(credit_ < 0)) {
        if (++credit_ == 0) credit_ = 1;
        return 0;
    }
    if (guards_ && runs_quietly()) return 0;
    const Tape& tape = hot_.tape();
    StackArray<TapeCell, 256> memory(tape.cells.size() + 1);
    TapeCell* const cells = memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 16 != 0);
    tape.begin(cells);
    StackRefs<16> written(inputs_.size());  // arrays that hold something else in the end
    for (size_t k = 0; k < inputs_.size(); ++k) {
        const Input& input = inputs_[k];
        PyObject* given = input.from.constant() ? p.constants[input.from.index()].get() : slots[input.from.index()];
        if (!fits_tape(given, input.value)) return 0;
        if (PYOP_UNLIKELY(input.written)) {
            const bool here = input.own && holds_own_memory(given);
            written[k] = here ? Py_NewRef(given) : copy_new(as_array(given), copies_[k]);
            if (!written[k]) return -1;
            given = written[k];
        }
        bind_to_tape(given, input.value, cells);
    }
    TapeFunction* code = hot_.code();
    TapeJournal journal;
    if (all_fp_errors()) clear_all_fp_errors();
    TapeEnd end = code ? run_code(code, written.data(), cells) : TapeEnd::Left;
    if (end == TapeEnd::Left) {
        // Its loops, as steps, go over to machine code while they run.
        const bool impatient = hot_.may_become_code();
        unsigned until_look = kUntilLook - 1;
        end = with_flags(interpret(tape.code.data(), cells, journal, until_look, impatient));
        if (impatient && until_look == kUntilLook && end == TapeEnd::Left) {
            hot_.count(kUntilLook, until_look, until_look);
            journal.undo();
            return 0;
        }
        hot_.count(1, kUntilLook, until_look);
        hot_.note_stores(journal.size(), 1);
    }
    if (end == TapeEnd::Failed) return -1;
    if (PYOP_UNLIKELY(end == TapeEnd::Left)) {
        journal.undo();
        credit_ -= 3;
        if (credit_ < 0) credit_ = -kRest;
        return 0;
    }
    credit_ += credit_ < kMostCredit;
    StackRefs<16> results(outputs_.size());
    for (size_t k = 0; k < outputs_.size(); ++k) {
        if (outputs_[k].value.kind != TapeValue::Number) continue;
        results[k] = number_new(k, cells);
        if (!results[k]) return -1;
    }
    for (size_t k = 0; k < inputs_.size(); ++k)
        if (inputs_[k].moves_to >= 0)
            results[static_cast<size_t>(inputs_[k].moves_to)] = std::exchange(written[k], nullptr);
    for (const uint32_t slot : released_) Py_CLEAR(slots[slot]);
    for (size_t k = 0; k < outputs_.size(); ++k) slots[outputs_[k].slot] = std::exchange(results[k], nullptr);
    return 1;
}

}  // namespace pyop

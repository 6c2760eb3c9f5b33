// plan/quick/quick_numbers.cpp: record the tape of a plan, and make a call.
#include "plan/quick/quick_numbers.h"

#include <cstring>

#include "array/loop/fp_flags.h"
#include "graph/graph.h"
#include "plan/steps/guard_step.h"
#include "plan/tape/bound_array.h"

namespace pyop {

namespace {

PyArray_Descr* dtype_of(const QuickArgument& g) {
    if (g.type == &PyArray_Type) return reinterpret_cast<PyArray_Descr*>(g.dtype.get());
    PyArray_Descr* dtype = PyArray_DescrFromType(g.type_num);  // one of NumPy's own, which live for ever
    Py_DECREF(dtype);
    return dtype;
}

bool came_through(TapeEnd end) { return end == TapeEnd::Done || end == TapeEnd::Stopped; }

bool as_python(PyArray_Descr* dtype) {
    return dtype->type_num == NPY_DOUBLE || dtype->type_num == NPY_INT64 || dtype->type_num == NPY_BOOL;
}

}  // namespace

std::shared_ptr<const QuickNumbers> QuickNumbers::make(const PlanObject& plan, const std::vector<QuickArgument>& given,
                                                       NumberForm form, PyObject* finish, bool decides, bool alert) {
    const Program& p = *plan.program;
    if (given.size() != p.feeds.size() || given.size() > kMost || form == NumberForm::Other || !p.writes.empty() ||
        !p.feed_exprs.empty())
        return nullptr;
    auto made = std::make_shared<QuickNumbers>();
    TapeBuilder builder(0, true);
    std::vector<TapeValue> feeds, results;
    made->given_ = given;
    for (const QuickArgument& g : made->given_) {
        if (g.ndim != 0 || (g.type != &PyArray_Type && g.type_num == NPY_NOTYPE)) return nullptr;
        PyArray_Descr* const dtype = dtype_of(g);
        if (!TapeBuilder::fits(dtype)) return nullptr;
        feeds.push_back(builder.number_new(dtype));
        if (feeds.back().kind != TapeValue::Number) return nullptr;
        made->arguments_.push_back(
            {g.type, dtype, g.type_num, feeds.back().cell, static_cast<uint32_t>(PyDataType_ELSIZE(dtype))});
    }
    if (!builder.program(p, feeds, results)) return nullptr;
    std::vector<NumberForm> wanted(results.size(), form);
    if (const ResultForms* forms = result_forms_of(finish)) {
        if (!forms->holds_none()) return nullptr;
        wanted = forms->wanted();
        made->forms_ = forms;
        made->finish_ = finish;
    }
    made->tuple_ = plan.form == FetchForm::Tuple;
    const std::vector<int32_t>& leaves = *plan.leaves;
    if (!made->tuple_ && plan.form != FetchForm::Single) return nullptr;
    if (leaves.size() != results.size() || leaves.empty() || (!made->tuple_ && leaves.size() != 1)) return nullptr;
    if (wanted.size() != results.size()) return nullptr;
    for (size_t k = 0; k < results.size(); ++k) {
        if (leaves[k] != static_cast<int32_t>(k) || results[k].kind != TapeValue::Number) return nullptr;
        // What is an argument, or a constant, is returned as that array.
        for (const TapeValue& feed : feeds)
            if (feed.cell == results[k].cell && wanted[k] != NumberForm::Python) return nullptr;
        if (p.outputs[k].constant() || (wanted[k] == NumberForm::Python && !as_python(results[k].dtype)))
            return nullptr;
        for (size_t j = 0; j < k; ++j)
            if (results[j].cell == results[k].cell) return nullptr;
        made->results_.push_back({results[k].dtype, results[k].cell, wanted[k]});
    }
    builder.emit(TapeOp::Stop, 0, 0, 0);
    if (builder.full()) return nullptr;
    made->tape_ = builder.finish();
    const Tape& tape = made->tape_;
    const bool loops =
        std::any_of(tape.code.begin(), tape.code.end(), [](const auto& i) { return i.op == TapeOp::Repeat; });
    const bool may_fail = std::any_of(tape.calls.begin(), tape.calls.end(), [](const auto& c) { return c->may_fail; });
    if (loops || may_fail || tape.calls_blas || !tape.ahead.empty() || tape.cells.size() > kMostCells) return nullptr;
    if (!tape.addresses.empty()) return nullptr;  // of blocks
    for (const auto& [first, n] : tape.filled)
        for (uint16_t k = 0; k < n; ++k)
            made->constants_.emplace_back(static_cast<uint16_t>(first + k), tape.cells[static_cast<size_t>(first + k)]);
    made->form_ = form;
    made->decides_ = decides;
    made->alert_ = alert;
    made->graph_ = &graph_of(plan.graph);
    made->recyclers_.resize(results.size());
    made->n_arguments_ = made->arguments_.size();
    return made;
}

PYOP_INLINE bool QuickNumbers::load(PyObject* const* args, TapeCell* cells) const {
    for (const auto& [cell, constant] : constants_) cells[cell] = constant;
    for (const Argument& a : arguments_) {
        PyObject* const o = *args++;
        if (Py_TYPE(o) != a.type) return false;
        TapeCell* const cell = cells + a.cell;
        if (PYOP_LIKELY(a.type_num == NPY_DOUBLE)) {
            cell->F64 = PyFloat_AS_DOUBLE(o);
        } else if (a.type == &PyLong_Type) {
            int overflow;
            cell->I64 = PyLong_AsLongLongAndOverflow(o, &overflow);
            if (PYOP_UNLIKELY(overflow != 0)) return false;
        } else if (a.type != &PyArray_Type) {
            store_number(o, a.type_num, cell);
        } else {
            const auto* array = reinterpret_cast<const PyArrayObject_fields*>(o);
            if (array->descr != a.dtype || array->nd != 0 || !(array->flags & NPY_ARRAY_ALIGNED)) return false;
            if (PYOP_LIKELY(a.bytes == 8))
                std::memcpy(cell, array->data, 8);
            else
                std::memcpy(cell, array->data, a.bytes);
        }
    }
    return true;
}

// A run that raised flags: they may have been up before.
bool QuickNumbers::again(PyObject* const* args, TapeCell* cells) const {
    clear_all_fp_errors();
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    if (!load(args, cells)) return false;
    const TapeEnd end = interpret(tape_.code.data(), cells, journal, until_look);
    const int flags = all_fp_errors();
    if (flags != 0) clear_all_fp_errors();
    return came_through(end) && (flags == 0 || (!alert_ && errstate_ignores(flags)));
}

PyObject* QuickNumbers::array_anew(size_t k, const TapeCell* cells) const {
    // An array that goes for another one may run anything, which may forget this plan.
    const auto alive = shared_from_this();
    PyObject* array = recyclers_[k].take(results_[k].dtype, 0, nullptr);
    if (array)
        std::memcpy(PyArray_DATA(as_array(array)), cells + results_[k].cell,
                    static_cast<size_t>(PyDataType_ELSIZE(results_[k].dtype)));
    return array;
}

PYOP_INLINE PyObject* QuickNumbers::result_new(size_t k, const TapeCell* cells) const {
    const Result& result = results_[k];
    const TapeCell* const cell = cells + result.cell;
    if (result.form == NumberForm::Python) {
        switch (result.dtype->type_num) {
            case NPY_DOUBLE:
                return PyFloat_FromDouble(cell->F64);
            case NPY_INT64:
                return PyLong_FromLongLong(cell->I64);
            default:
                return PyBool_FromLong(cell->Bool);
        }
    }
    if (result.form == NumberForm::Scalar) return scalar_new(result.dtype, cell);
    PyObject* array = recyclers_[k].again(result.dtype, 0, nullptr);
    if (PYOP_UNLIKELY(!array)) return array_anew(k, cells);
    std::memcpy(PyArray_DATA(as_array(array)), cell, static_cast<size_t>(PyDataType_ELSIZE(result.dtype)));
    return array;
}

// What it returns; null with the error set, or without: not this way.
PYOP_INLINE PyObject* QuickNumbers::run(PyObject* const* args) const {
    alignas(16) TapeCell cells[kMostCells + 1];
    if (!load(args, cells) || (PYOP_UNLIKELY(decides_) && runs_quietly()) || graph_->check_usable() < 0) return nullptr;
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    const TapeEnd end = interpret(tape_.code.data(), cells, journal, until_look);
    if (PYOP_UNLIKELY((tape_.calls_loops ? all_fp_errors() : fp_errors()) != 0)) {
        if (!again(args, cells)) return nullptr;
    } else if (PYOP_UNLIKELY(!came_through(end))) {
        return nullptr;
    }
    if (PYOP_LIKELY(!tuple_ && !forms_)) return result_new(0, cells);
    const auto alive = shared_from_this();
    const Ref finish = Ref::borrow(finish_);
    if (forms_) return forms_->build_new([&](size_t k, const ResultForms::Leaf&) { return result_new(k, cells); });
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (size_t k = 0; tuple && k < results_.size(); ++k) {
        PyObject* made = result_new(k, cells);
        if (!made) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(k), made);
    }
    return tuple.release();
}

PyObject* QuickNumbers::call(PyObject* const* args, PyObject* self, size_t nargsf, PyObject* names,
                             QuickOtherwise otherwise) const {
    PyObject* const result = run(args);
    return PYOP_LIKELY(result != nullptr) ? result : otherwise(self, args, nargsf, names);
}

}  // namespace pyop

// plan/quick/quick_arrays.cpp: choose the plans and arguments for it, and make a call.
#include "plan/quick/quick_arrays.h"

#include <cstring>

#include "array/memory/overlap.h"
#include "graph/graph.h"

namespace pyop {

namespace {

constexpr int kSideBySide = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;

// The one instruction of a program, if it is a group.
const LoopGroup* group_of(const Program& p) {
    return p.instructions.size() == 1 && p.instructions[0].native ? p.instructions[0].native->as_group() : nullptr;
}

// Where the group finds an operand: a feed, -1 for a constant, -2 for neither.
int32_t feed_of(const Program& p, Operand o) {
    if (o.constant()) return -1;
    for (size_t k = 0; k < p.feeds.size(); ++k)
        if (p.feeds[k].slot == o.index()) return static_cast<int32_t>(k);
    return -2;
}

// Whether each result of the instruction is the output of that number, and nothing else.
bool results_are_outputs(const Program& p) {
    const Instruction& ins = p.instructions[0];
    if (static_cast<size_t>(ins.callee.n_out) != p.outputs.size()) return false;
    for (size_t k = 0; k < p.outputs.size(); ++k)
        if (p.output_of_result[ins.first_result + k] != static_cast<int32_t>(k)) return false;
    return true;
}

}  // namespace

bool QuickArrays::read_shape(const std::vector<QuickArgument>& given) {
    given_ = given;
    for (const QuickArgument& g : given_) {
        const bool array = g.type == &PyArray_Type;
        if (!array && g.type_num == NPY_NOTYPE) return false;
        auto* const dtype = reinterpret_cast<PyArray_Descr*>(g.dtype.get());
        npy_intp bytes = array ? PyDataType_ELSIZE(dtype) : 0;
        for (const npy_intp size : g.dims) bytes *= size;
        arguments_.push_back({g.type, dtype, g.type_num, g.ndim, 0, -1, g.ndim ? g.dims[0] : 0, bytes, g.dims.data()});
    }
    n_arguments_ = arguments_.size();
    return n_arguments_ <= kMost;
}

bool QuickArrays::read_externals(const PlanObject& plan, const LoopGroup& group,
                                 const std::vector<QuickArgument>& given) {
    const Program& p = *plan.program;
    const Instruction& ins = p.instructions[0];
    bool shaped = false;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        const Operand o = p.operands[ins.first_operand + k];
        const int32_t feed = feed_of(p, o);
        External external{feed, nullptr, 0};
        int ndim = 0;
        const npy_intp* dims = nullptr;
        PyArray_Descr* dtype;
        if (feed == -2) return false;
        if (feed == -1) {
            PyObject* constant = p.constants[o.index()].get();
            if (!is_exact_array(constant) || !PyArray_CHKFLAGS(as_array(constant), kSideBySide)) return false;
            PyArrayObject* a = as_array(constant);
            ndim = PyArray_NDIM(a);
            dims = PyArray_DIMS(a);
            dtype = PyArray_DESCR(a);
            external.constant = PyArray_BYTES(a);
        } else {
            const QuickArgument& g = given[static_cast<size_t>(feed)];
            ndim = g.ndim;
            dims = g.dims.data();
            dtype = arguments_[static_cast<size_t>(feed)].dtype;
            if (g.type_num != NPY_NOTYPE) {
                dtype = PyArray_DescrFromType(g.type_num);  // one of NumPy's own, which live for ever
                Py_DECREF(dtype);
            }
            arguments_[static_cast<size_t>(feed)].flags = kSideBySide;
        }
        if (feed >= 0 && given[static_cast<size_t>(feed)].type == &PyArray_Type &&
            arguments_[static_cast<size_t>(feed)].external < 0)
            arguments_[static_cast<size_t>(feed)].external = static_cast<int16_t>(k);
        else
            others_.push_back(static_cast<uint16_t>(k));
        if (dtype != group.external_dtype(k)) return false;
        external.bytes = PyDataType_ELSIZE(dtype);
        for (int d = 0; d < ndim; ++d) external.bytes *= dims[d];
        if (ndim > 0 && !shaped) {
            shape_.assign(dims, dims + ndim);
            shaped = true;
        }
        if (ndim > 0 && !std::equal(dims, dims + ndim, shape_.begin(), shape_.end())) return false;
        repeated_.push_back(ndim == 0);
        externals_.push_back(external);
        reach_ = std::max(reach_, external.bytes);
    }
    n_externals_ = externals_.size();
    for (Argument& a : arguments_)
        if (a.external < 0 && a.type == &PyArray_Type) a.external = kNowhere;
    return shaped && externals_.size() <= kMost;
}

std::shared_ptr<const QuickArrays> QuickArrays::make(const PlanObject& plan, const std::vector<QuickArgument>& given,
                                                     PyObject* finish, QuickOtherwise otherwise) {
    const Program& p = *plan.program;
    const LoopGroup* const group = group_of(p);
    if (!group || given.size() != p.feeds.size() || !p.feed_exprs.empty() || !results_are_outputs(p) ||
        !p.shared_outputs.empty() || p.writes.size() > 1 || p.outputs.size() > kMostResults)
        return nullptr;
    auto made = std::make_shared<QuickArrays>();
    if (!made->read_shape(given) || !made->read_externals(plan, *group, given)) return nullptr;
    made->run_ = SmallRun::make(*group, static_cast<int>(made->shape_.size()), made->shape_.data(), made->repeated_);
    if (!made->run_) return nullptr;
    for (size_t k = 0; k < made->run_->n_results(); ++k)
        if (made->run_->bytes(k) > ResultRecycler::kMostBytes) return nullptr;
    const std::vector<int32_t>& leaves = *plan.leaves;
    if (!p.writes.empty()) {
        const WriteBack& write = p.writes[0];
        const Argument& target = made->arguments_[write.feed];
        const QuickArgument& g = given[write.feed];
        if (p.outputs.size() != 1 || !leaves.empty() || plan.form != FetchForm::Single ||
            target.dtype != made->run_->dtype(0) || g.dims != made->shape_ || made->run_->bytes(0) > kMostStaged ||
            finish)
            return nullptr;
        made->written_ = static_cast<int32_t>(write.feed);
        // Where all lie side by side, bounds are soon compared.
        for (Argument& a : made->arguments_)
            if (a.type == &PyArray_Type) a.flags = kSideBySide;
        made->arguments_[write.feed].flags |= NPY_ARRAY_WRITEABLE;
    } else {
        if (plan.form == FetchForm::Tree && !plan.plain_tree) return nullptr;
        if (leaves.size() != made->run_->n_results() || leaves.empty()) return nullptr;
        const ResultForms* const forms = result_forms_of(finish);
        if (forms && !(plan.form == FetchForm::Tuple && forms->are_arrays())) return nullptr;
        made->form_ = plan.form;
        made->finish_ = finish;
        for (size_t k = 0; k < leaves.size(); ++k)
            if (leaves[k] != static_cast<int32_t>(k)) return nullptr;  // one result in two places
    }
    made->target_ = {&PyArray_Type,
                     made->run_->dtype(0),
                     NPY_NOTYPE,
                     static_cast<int>(made->shape_.size()),
                     kSideBySide | NPY_ARRAY_WRITEABLE,
                     kNowhere,
                     made->shape_[0],
                     made->run_->bytes(0),
                     made->shape_.data()};
    made->one_result_ = made->written_ < 0 && plan.form == FetchForm::Single;
    made->otherwise_ = otherwise;
    made->plan_ = &plan;
    made->graph_ = &graph_of(plan.graph);
    made->recyclers_.resize(made->run_->n_results());
    return made;
}

PYOP_INLINE bool QuickArrays::fits_array(PyObject* o, const Argument& a) {
    const auto* array = reinterpret_cast<const PyArrayObject_fields*>(o);
    if (array->descr != a.dtype || array->nd != a.ndim || (a.flags & ~array->flags) != 0) return false;
    if (PYOP_LIKELY(a.ndim == 1)) return array->dimensions[0] == a.first_dim;
    for (int d = 0; d < a.ndim; ++d)
        if (array->dimensions[d] != a.dims[d]) return false;
    return true;
}

PYOP_INLINE bool QuickArrays::read(PyObject* const* args, char** streams, QuickNumber* numbers) const {
    const PyTypeObject* const array_type = &PyArray_Type;
    for (const Argument& a : arguments_) {
        PyObject* const o = *args++;
        if (PYOP_UNLIKELY(Py_TYPE(o) != array_type)) {
            if (Py_TYPE(o) != a.type || (a.type == &PyLong_Type && !is_int64(o))) return false;
            store_number(o, a.type_num, numbers + (&a - arguments_.data()));
            continue;
        }
        if (!fits_array(o, a)) return false;  // where a number belongs, too: that has no dtype
        streams[a.external] = PyArray_BYTES(as_array(o));
    }
    for (const uint16_t k : others_) {
        const External& e = externals_[k];
        if (e.argument < 0)
            streams[k] = e.constant;
        else if (const Argument& a = arguments_[static_cast<size_t>(e.argument)]; a.external >= 0)
            streams[k] = streams[a.external];
        else
            streams[k] = numbers[e.argument].bytes;
    }
    return true;
}

// By the largest external, so that one comparison each will do.
PYOP_INLINE bool QuickArrays::may_overlap_some(char* const* streams, const char* low) const {
    const auto before = static_cast<uintptr_t>(reach_ - 1), from = reinterpret_cast<uintptr_t>(low) - before,
               length = static_cast<uintptr_t>(target_.bytes) + before;
    for (char* const* const end = streams + n_externals_; streams != end; ++streams)
        if (PYOP_UNLIKELY(reinterpret_cast<uintptr_t>(*streams) - from < length)) return true;
    return false;
}

// Two stretches overlap where one begins in [low - its bytes + 1, low + bytes).
bool QuickArrays::overlaps(char* const* streams, const char* low, npy_intp bytes) const {
    for (size_t k = 0; k < externals_.size(); ++k) {
        const auto before = static_cast<uintptr_t>(externals_[k].bytes - 1);
        if (reinterpret_cast<uintptr_t>(streams[k]) - reinterpret_cast<uintptr_t>(low) + before <
            static_cast<uintptr_t>(bytes) + before)
            return true;
    }
    return false;
}

// An argument that shares memory with a written one has the function itself run.
bool QuickArrays::written_is_apart(PyObject* const* args) const {
    PyArrayObject* const target = as_array(args[written_]);
    const char* const low = PyArray_BYTES(target);
    const npy_intp bytes = run_->bytes(0);
    for (size_t i = 0; i < arguments_.size(); ++i) {
        const Argument& a = arguments_[i];
        if (a.type != &PyArray_Type || i == static_cast<size_t>(written_)) continue;
        const char* const other = PyArray_BYTES(as_array(args[i]));
        if (low < other + a.bytes && other < low + bytes) return false;
    }
    return true;
}

PYOP_INLINE PyObject* QuickArrays::call_into(char** streams, PyObject* out) const {
    char* const target = PyArray_BYTES(as_array(out));
    if (PYOP_UNLIKELY(may_overlap_some(streams, target)) && overlaps(streams, target, target_.bytes))
        return call_staged(streams, out);
    streams[run_->stream(0)] = target;
    return PYOP_LIKELY(run_->run(streams)) ? Py_NewRef(out) : nullptr;
}

// Where the target is read until the run ends, or stays as it is if that comes to nothing: an argument.
PyObject* QuickArrays::call_staged(char** streams, PyObject* out) const {
    const npy_intp bytes = target_.bytes;
    if (bytes > kMostStaged) return nullptr;
    alignas(64) char staged[kMostStaged];
    streams[run_->stream(0)] = staged;
    if (!run_->run(streams)) return nullptr;
    std::memcpy(PyArray_BYTES(as_array(out)), staged, static_cast<size_t>(bytes));
    return Py_NewRef(written_ < 0 ? out : Py_None);
}

// False with the error set.
bool QuickArrays::take_anew(PyObject** results) const {
    for (size_t k = 0; k < recyclers_.size(); ++k) {
        if (results[k]) continue;
        results[k] = recyclers_[k].take(run_->dtype(k), static_cast<int>(shape_.size()), shape_.data());
        if (!results[k]) return false;
    }
    return true;
}

PyObject* QuickArrays::call_anew(PyObject* const* args, char** streams, QuickNumber* numbers) const {
    PyObject* results[kMostResults];
    const size_t n = recyclers_.size();
    const auto drop = [&]() -> PyObject* {
        for (size_t k = 0; k < n; ++k) Py_XDECREF(results[k]);
        return nullptr;
    };
    bool again = true;
    for (size_t k = 0; k < n; ++k) {
        results[k] = recyclers_[k].again(run_->dtype(k), static_cast<int>(shape_.size()), shape_.data());
        again &= results[k] != nullptr;
    }
    if (PYOP_UNLIKELY(!again) && (!take_anew(results) || !read(args, streams, numbers))) return drop();
    for (size_t k = 0; k < n; ++k) streams[run_->stream(k)] = PyArray_BYTES(as_array(results[k]));
    if (PYOP_UNLIKELY(!run_->run(streams))) return drop();
    return PYOP_LIKELY(form_ == FetchForm::Single) ? results[0] : assembled(results);
}

PyObject* QuickArrays::assembled(PyObject** results) const {
    const auto n = static_cast<Py_ssize_t>(recyclers_.size());
    const auto take = [&](size_t k) { return std::exchange(results[k], nullptr); };
    PyObject* made;
    if (finish_) {
        made = result_forms_of(finish_)->build_new([&](size_t k, const ResultForms::Leaf&) { return take(k); });
    } else if (form_ == FetchForm::Tree) {
        made = plan_->plain_tree->build_new(take);
    } else if ((made = form_ == FetchForm::Tuple ? PyTuple_New(n) : PyList_New(n))) {
        for (Py_ssize_t k = 0; k < n; ++k) {
            if (form_ == FetchForm::Tuple)
                PyTuple_SET_ITEM(made, k, take(static_cast<size_t>(k)));
            else
                PyList_SET_ITEM(made, k, take(static_cast<size_t>(k)));
        }
    }
    for (Py_ssize_t k = 0; !made && k < n; ++k) Py_XDECREF(results[k]);
    return made;
}

PyObject* QuickArrays::call_holding(PyObject* const* args, char** streams, QuickNumber* numbers, PyObject* self,
                                    size_t nargsf, PyObject* names) const {
    const Ref owner = Ref::borrow(self);
    const QuickOtherwise otherwise = otherwise_;
    {
        const auto alive = shared_from_this();
        const Ref plan = Ref::borrow(plan_->program->plan), finish = Ref::borrow(finish_);
        if (PyObject* result = call_anew(args, streams, numbers)) return result;
    }
    return otherwise(self, args, nargsf, names);
}

PyObject* QuickArrays::call(PyObject* const* args, PyObject* out, PyObject* self, size_t nargsf,
                            PyObject* names) const {
    Streams streams;
    QuickNumber numbers[kMost];
    PyObject* result = nullptr;
    if (!read(args, streams, numbers) || PYOP_UNLIKELY(graph_->check_usable() < 0)) {
    } else if (PYOP_UNLIKELY(!one_result_)) {
        if (written_ < 0 && !out) return call_holding(args, streams, numbers, self, nargsf, names);
        if (written_ >= 0 && !out && written_is_apart(args)) result = call_staged(streams, args[written_]);
    } else if (out) {
        if (is_exact_array(out) && fits_array(out, target_)) result = call_into(streams, out);
    } else {
        // The commonest: one array, which is there.
        result = recyclers_[0].again(run_->dtype(0), static_cast<int>(shape_.size()), shape_.data());
        if (PYOP_UNLIKELY(!result)) return call_holding(args, streams, numbers, self, nargsf, names);
        streams[run_->stream(0)] = PyArray_BYTES(as_array(result));
        if (PYOP_LIKELY(run_->run(streams))) return result;
        Py_CLEAR(result);
    }
    return PYOP_LIKELY(result != nullptr) ? result : otherwise_(self, args, nargsf, names);
}

}  // namespace pyop

// graph/passes/merge.cpp: eliminate common subexpressions, by hash.
//
// Nodes are visited in creation order, so the inputs of a node are settled when it comes up.
#include <bit>      // std::bit_ceil
#include <cstring>  // std::memcmp
#include <functional>
#include <string_view>

#include "graph/passes/rewrite.h"
#include "runtime/items.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

constexpr npy_intp kSmallConstant = 1024;  // bytes: larger ones are not worth comparing

size_t mix_low(size_t h, size_t v) {
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 32;  // the table takes the low bits, the product is good in the high ones
}
size_t address(const void* p) { return reinterpret_cast<size_t>(p) >> 4; }

// A bound method is a new object each time it is looked up: what it is bound to and its function identify it.
// Callables that rebuild nested arguments (calls.py) say themselves when they are the same, by hash and ==.
bool has_merge_key(PyObject* fn) { return _PyType_Lookup(Py_TYPE(fn), up_attributes._pyop_merge_by_value); }

// -1 with an error set on failure.
Py_hash_t callable_hash(PyObject* fn) {
    if (PyMethod_Check(fn))
        return static_cast<Py_hash_t>(mix_low(address(PyMethod_GET_SELF(fn)), address(PyMethod_GET_FUNCTION(fn))) >> 1);
    if (PyCFunction_Check(fn) && PyCFunction_GET_SELF(fn) && !PyModule_Check(PyCFunction_GET_SELF(fn)))
        return static_cast<Py_hash_t>(mix_low(address(PyCFunction_GET_SELF(fn)),
                                              address(reinterpret_cast<void*>(PyCFunction_GET_FUNCTION(fn)))) >>
                                      1);
    if (!PyFunction_Check(fn) && has_merge_key(fn)) return PyObject_Hash(fn);
    return static_cast<Py_hash_t>(address(fn));
}

int same_callable(PyObject* a, PyObject* b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyMethod_Check(a))
        return PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b) && PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b);
    if (PyCFunction_Check(a))
        return PyCFunction_GET_SELF(a) == PyCFunction_GET_SELF(b) &&
               PyCFunction_GET_FUNCTION(a) == PyCFunction_GET_FUNCTION(b);
    if (!PyFunction_Check(a) && has_merge_key(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
    return 0;
}

// Static arguments are equal when no function could tell them apart: same type, and the same bits where == is
// laxer than that (0.0 and -0.0, nan, 1 and True). Those nested deeper than this are not compared: they may hold
// themselves.
constexpr int kDepth = 16;

int same_static(PyObject* a, PyObject* b, int depth = 0) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyTuple_CheckExact(a) || PyList_CheckExact(a)) {
        const Py_ssize_t n = size_of_sequence(a);
        if (n != size_of_sequence(b) || depth == kDepth) return 0;
        int same = 1;
        for (Py_ssize_t i = 0; i < n && same == 1; ++i) {
            const Ref x = item_of(a, i), y = item_of(b, i);
            same = x && y ? same_static(x.get(), y.get(), depth + 1) : 0;
        }
        return same;
    }
    if (PySlice_Check(a)) {
        auto *x = reinterpret_cast<PySliceObject*>(a), *y = reinterpret_cast<PySliceObject*>(b);
        int same = depth < kDepth ? same_static(x->start, y->start, depth + 1) : 0;
        if (same == 1) same = same_static(x->stop, y->stop, depth + 1);
        return same == 1 ? same_static(x->step, y->step, depth + 1) : same;
    }
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) || PyArray_DescrCheck(a))
        return PyObject_RichCompareBool(a, b, Py_EQ);
    return 0;  // anything else may hide a difference
}

// Equal for what is the same by `same_static`, and different for most else. Bounded in depth and width, so that neither
// a list within itself nor a tuple of the same tuples over and over takes long.
class StaticHash {
  public:
    size_t of(PyObject* o) {
        const size_t type = address(Py_TYPE(o));
        if (PyFloat_CheckExact(o)) return mix_low(type, std::bit_cast<size_t>(PyFloat_AS_DOUBLE(o)));
        if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) return of_items(o, type);
        if (PySlice_Check(o)) {
            auto* s = reinterpret_cast<PySliceObject*>(o);
            return mix_low(mix_low(mix_low(type, of(s->start)), of(s->stop)), of(s->step));
        }
        // Equivalent dtypes may be several objects, even of several types of integers.
        if (PyArray_DescrCheck(o)) {
            auto* descr = reinterpret_cast<PyArray_Descr*>(o);
            return mix_low(type,
                           static_cast<size_t>(descr->kind) << 32 ^ static_cast<size_t>(PyDataType_ELSIZE(descr)));
        }
        if (PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o))
            return mix_low(type, static_cast<size_t>(PyObject_Hash(o)));  // never fails
        return mix_low(type, address(o));
    }

  private:
    static constexpr Py_ssize_t kItems = 1 << 16;

    size_t of_items(PyObject* o, size_t h) {
        const Py_ssize_t n = size_of_sequence(o);
        h = mix_low(h, static_cast<size_t>(n));
        if (depth_ == kDepth) return h;
        ++depth_;
        for (Py_ssize_t i = 0; i < n && items_ < kItems; ++i, ++items_)
            if (const Ref item = item_of(o, i)) h = mix_low(h, of(item.get()));
        --depth_;
        return h;
    }

    int depth_ = 0;
    Py_ssize_t items_ = 0;
};

size_t form_hash(const CallForm* form) {
    if (!form) return 0;
    size_t h = static_cast<size_t>(form->n_keywords()) + 1;
    for (const int32_t code : form->order) h = mix_low(h, static_cast<size_t>(code));
    return form->statics ? mix_low(h, StaticHash().of(form->statics.get())) : h;
}

int same_form(const CallForm* a, const CallForm* b) {
    if (!a || !b) return a == b;
    if (a->order != b->order || a->n_keywords() != b->n_keywords()) return 0;
    if (a->n_keywords() && PyObject_RichCompareBool(a->kwnames.get(), b->kwnames.get(), Py_EQ) != 1) return 0;
    return same_static(a->statics.get(), b->statics.get());
}

int same_constant(PyArrayObject* a, PyArrayObject* b) {
    return PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(b)) && PyArray_SAMESHAPE(a, b) &&
           PyArray_NBYTES(a) == PyArray_NBYTES(b) &&
           std::memcmp(PyArray_DATA(a), PyArray_DATA(b), static_cast<size_t>(PyArray_NBYTES(a))) == 0;
}

bool comparable_constant(PyArrayObject* a) {
    return PyArray_NBYTES(a) <= kSmallConstant && PyArray_IS_C_CONTIGUOUS(a) && !PyDataType_REFCHK(PyArray_DESCR(a));
}

class Merger {
  public:
    explicit Merger(Rewrite& r)
        : r_(r), mask_(std::bit_ceil(2 * r.g.size() + 1) - 1), first_reader_(r.g.size(), kFree) {}

    int run() {
        for (uint32_t i = 0; i < r_.n_nodes; ++i)
            if (r_.live[i] && visit(i) < 0) return -1;
        return 0;
    }

  private:
    int visit(uint32_t i) {
        const Node& node = r_.g.node(i);
        if (node.stateful() || node.kind() == NodeKind::Input || any_output_fed(i)) return 0;
        if (node.kind() == NodeKind::Constant) {
            PyArrayObject* a = as_array(r_.g.node_as<ConstantNode>(i).array());
            if (!comparable_constant(a)) return 0;
            return look_up(std::hash<std::string_view>{}({PyArray_BYTES(a), static_cast<size_t>(PyArray_NBYTES(a))}),
                           i);
        }
        const PyNode& call = r_.g.node_as<PyNode>(i);
        if ((call.fn() == up_calls.opened || call.fn() == up_calls.stopped) && node.inputs().size() == 1 &&
            r_.resolve(node.inputs()[0]).output == 0) {
            r_.same_as[i] = r_.resolve(node.inputs()[0]).node;
            ++r_.merged;
            return 0;
        }
        if (call.fn() == up_calls.fresh) return 0;  // each is written for itself
        if (!node.inputs().empty()) {
            uint32_t& first = first_reader_[r_.resolve(node.inputs()[0]).node];
            if (first == kFree) {
                first = i;
                return 0;
            }
            if (const int same = try_merge(first, i)) return same < 0 ? -1 : 0;
        }
        const Py_hash_t callable = callable_hash(call.fn());
        if (callable == -1 && PyErr_Occurred()) return -1;
        // All that same_node compares: whatever is left out here, and differs in thousands of readers of one value,
        // makes each of them be compared with all that came before.
        size_t hash = mix_low(mix_low(static_cast<size_t>(callable), address(call.contract())), form_hash(call.form()));
        for (const Edge e : node.inputs()) hash = mix_low(hash, Rewrite::key(r_.resolve(e)));
        return look_up(hash, i);
    }

    // 1 if `i` is the same as `earlier` and now merged, 0 if not, -1 with an error set.
    int try_merge(uint32_t earlier, uint32_t i) {
        const int same = same_node(earlier, i);
        if (same == 1) {
            r_.same_as[i] = earlier;
            ++r_.merged;
        }
        return same;
    }

    int look_up(size_t hash, uint32_t i) {
        if (table_.empty()) table_.assign(mask_ + 1, Entry{kFree, 0});
        size_t at = hash & mask_;
        for (; table_[at].node != kFree; at = (at + 1) & mask_) {
            if (table_[at].hash != static_cast<uint32_t>(hash >> 32)) continue;
            if (const int same = try_merge(table_[at].node, i)) return same < 0 ? -1 : 0;
        }
        table_[at] = {i, static_cast<uint32_t>(hash >> 32)};
        return 0;
    }

    bool any_output_fed(uint32_t i) const {
        for (uint32_t k = 0; k < r_.g.node(i).n_outputs(); ++k)
            if (r_.is_fed({i, k})) return true;
        return false;
    }

    int same_node(uint32_t a, uint32_t b) const {
        const Node &x = r_.g.node(a), &y = r_.g.node(b);
        if (x.kind() != y.kind()) return 0;
        if (x.kind() == NodeKind::Constant)
            return same_constant(as_array(r_.g.node_as<ConstantNode>(a).array()),
                                 as_array(r_.g.node_as<ConstantNode>(b).array()));
        const auto &f = static_cast<const PyNode&>(x), &h = static_cast<const PyNode&>(y);
        if (f.contract() != h.contract() || f.of_scalars() != h.of_scalars() ||
            x.inputs().size() != y.inputs().size() || x.n_outputs() != y.n_outputs())
            return 0;
        for (size_t k = 0; k < x.inputs().size(); ++k)
            if (r_.resolve(x.inputs()[k]) != r_.resolve(y.inputs()[k])) return 0;
        const int same = same_callable(f.fn(), h.fn());
        return same == 1 ? same_form(f.form(), h.form()) : same;
    }

    static constexpr uint32_t kFree = UINT32_MAX;
    Rewrite& r_;
    size_t mask_;
    // Graphs of a million nodes spend their time on cache misses, so the first reader of a value is found beside
    // that value: most values have one, and then no table is needed. All others are in a table by hash, with open
    // addressing, at most half full.
    std::vector<uint32_t> first_reader_;
    struct Entry {
        uint32_t node;
        uint32_t hash;  // its upper half
    };
    std::vector<Entry> table_;
};

}  // namespace

int merge(Rewrite& r) { return Merger(r).run(); }

}  // namespace pyop

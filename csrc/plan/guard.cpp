// plan/guard.cpp: compare each kind of leaf, hash a call, and keep the table of guards.
#include "plan/guard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/value.h"
#include "plan/compiled_function.h"
#include "plan/execute.h"
#include "plan/quick/quick_arrays.h"
#include "plan/quick/quick_numbers.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// 1, 0 or -1. Values that no function can tell apart: 1, 1.0 and True differ, and so do 0.0 and -0.0.
int same_static(PyObject* a, const LeafGuard& leaf) {
    PyObject* b = leaf.expected;
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (leaf.key) {
        Ref key = Ref::steal(survive([&] { return PyObject_CallOneArg(up_calls.static_key, a); }));
        return key ? PyObject_RichCompareBool(key.get(), leaf.key, Py_EQ) : -1;
    }
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyComplex_CheckExact(a)) {
        const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    return PyObject_RichCompareBool(a, b, Py_EQ);
}

bool same_instance(PyObject* o, const LeafGuard& leaf) {
    if (!leaf.weak) return o == leaf.expected;
    return referent(leaf.expected).get() == o;  // which is alive
}

bool same_array(PyObject* o, const LeafGuard& leaf, const Guard& guard) {
    if (!is_exact_array(o)) return false;
    PyArrayObject* a = as_array(o);
    if (PyArray_NDIM(a) != leaf.ndim) return false;
    const npy_intp* want = guard.dims.data() + leaf.first_dim;
    if (!std::equal(want, want + leaf.ndim, PyArray_DIMS(a))) return false;
    auto* descr = reinterpret_cast<PyArray_Descr*>(leaf.expected);
    if (PyArray_DESCR(a) == descr) return true;
    return PyArray_EquivTypes(PyArray_DESCR(a), descr) && !PyDataType_METADATA(PyArray_DESCR(a));
}

// What stands for an array, and has no numbers that a plan could run on.
PYOP_INLINE bool is_stand_in(PyObject* o) {
    const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    return is_value(o) || type == up_calls.number_class || type == up_calls.batched_array ||
           type == up_calls.batched_scalar;
}

PYOP_INLINE int fits_leaf(PyObject* o, const LeafGuard& leaf, const Guard& guard) {
    switch (leaf.kind) {
        case LeafKind::Array:
            return same_array(o, leaf, guard);
        case LeafKind::Declared:
            return !is_stand_in(o);
        case LeafKind::Number:
            return reinterpret_cast<PyObject*>(Py_TYPE(o)) == leaf.expected && (!PyLong_CheckExact(o) || is_int64(o));
        case LeafKind::Static:
            return same_static(o, leaf);
        case LeafKind::Instance:
            return same_instance(o, leaf);
        case LeafKind::Repeat:
            return 1;  // see fits_identity
    }
    return 0;
}

// Which leaves are one array, and which are not; nor is one of them an array that the function holds.
bool fits_identity(const Guard& guard, const std::vector<PyObject*>& leaves) {
    for (size_t k = 0; k < leaves.size(); ++k) {
        const LeafGuard& leaf = guard.leaves[k];
        if (leaf.kind == LeafKind::Repeat && leaves[k] != leaves[leaf.same_as]) return false;
        if ((leaf.kind != LeafKind::Array && leaf.kind != LeafKind::Declared) || !is_exact_array(leaves[k])) continue;
        const auto end = leaves.begin() + static_cast<std::ptrdiff_t>(k);
        if (std::find(leaves.begin(), end, leaves[k]) != end || guard.captured.reads(leaves[k])) return false;
    }
    return true;
}

bool same_names(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (!a || !b || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
        PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
        if (x != y && PyUnicode_Compare(x, y) != 0) return false;
    }
    return true;
}

// Appends the leaves of an argument: 1, 0 (another structure), or -1.
int flatten_into(const Guard::Argument& argument, PyObject* o, Leaves& leaves) {
    if (!argument.tree) {
        leaves.items.push_back(o);
        return 1;
    }
    PyObject* ordered = argument.ordered ? Py_True : Py_False;
    PyObject* given[] = {argument.tree, o, ordered};
    Ref list = Ref::steal(PyObject_VectorcallMethod(up_attributes.match, given, 3, nullptr));
    if (!list) return -1;
    if (list.get() == Py_None) return 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) leaves.items.push_back(PyList_GET_ITEM(list.get(), i));
    leaves.lists.push_back(std::move(list));
    return 1;
}

uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 29);
}

// The value of a static argument, where asking for its hash runs no code of the user's.
uint64_t static_hash(PyObject* o) {
    if (!PyLong_CheckExact(o) && !PyUnicode_CheckExact(o) && !PyBool_Check(o) && !PyFloat_CheckExact(o)) return 0;
    return static_cast<uint64_t>(PyObject_Hash(o));
}

// Of a number: what it is as an array.
int number_type_num(PyObject* o) {
    if (PyFloat_CheckExact(o)) return NPY_DOUBLE;
    if (PyLong_CheckExact(o)) return NPY_INT64;
    if (PyComplex_CheckExact(o)) return NPY_CDOUBLE;
    if (!PyArray_IsScalar(o, Number) && !PyArray_IsScalar(o, Bool)) return NPY_NOTYPE;
    const Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(o)));
    if (!dtype) return PyErr_Clear(), NPY_NOTYPE;
    const auto* d = reinterpret_cast<PyArray_Descr*>(dtype.get());
    return PyTypeNum_ISNUMBER(d->type_num) || PyTypeNum_ISBOOL(d->type_num)
               ? (d->typeobj == Py_TYPE(o) ? d->type_num : NPY_NOTYPE)
               : NPY_NOTYPE;
}

class GuardMaker {
  public:
    GuardMaker(Guard& guard, PyObject* gone) : guard_(guard), gone_(gone) {}

    int add(PyObject* o, LeafKind kind, PyObject* key) {
        LeafGuard leaf{kind};
        switch (kind) {
            case LeafKind::Array:
                if (!is_exact_array(o)) return changed();
                leaf.ndim = PyArray_NDIM(as_array(o));
                leaf.first_dim = static_cast<uint32_t>(guard_.dims.size());
                guard_.dims.insert(guard_.dims.end(), PyArray_DIMS(as_array(o)), PyArray_DIMS(as_array(o)) + leaf.ndim);
                leaf.expected = own(Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(o)))));
                break;
            case LeafKind::Declared:
                break;
            case LeafKind::Number:
                leaf.expected = own(Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o))));
                leaf.type_num = number_type_num(o);
                if (leaf.type_num != NPY_NOTYPE) guard_.any_number = true;
                break;
            case LeafKind::Static:
                leaf.expected = own(Ref::borrow(o));
                if (key != Py_None) leaf.key = own(Ref::borrow(key));
                break;
            case LeafKind::Instance:
                if (!hold_weakly(o, leaf)) return -1;
                break;
            case LeafKind::Repeat:
                leaf.same_as = static_cast<uint32_t>(PyLong_AsUnsignedLong(key));
                if (leaf.same_as >= guard_.leaves.size()) return changed();
                break;
        }
        const bool fed = kind == LeafKind::Array || kind == LeafKind::Declared || kind == LeafKind::Number;
        if (fed) guard_.feeds.push_back(static_cast<uint32_t>(guard_.leaves.size()));
        guard_.leaves.push_back(leaf);
        return 0;
    }

    static int changed() {
        PyErr_SetString(PyExc_RuntimeError, "the arguments of a compiled function changed while it was traced");
        return -1;
    }

    PyObject* own(Ref object) {
        guard_.owned.push_back(std::move(object));
        return guard_.owned.back().get();
    }

  private:
    // What cannot be held weakly is held.
    bool hold_weakly(PyObject* o, LeafGuard& leaf) {
        leaf.weak = PyType_SUPPORTS_WEAKREFS(Py_TYPE(o));
        Ref held = leaf.weak ? Ref::steal(PyWeakref_NewRef(o, gone_)) : Ref::borrow(o);
        if (!held) return false;
        leaf.expected = own(std::move(held));
        return true;
    }

    Guard& guard_;
    PyObject* gone_;
};

}  // namespace

int Guard::traverse(visitproc visit, void* arg) const {
    for (const Ref& object : owned) Py_VISIT(object.get());
    Py_VISIT(plan.get());
    Py_VISIT(finish.get());
    Py_VISIT(plainly.get());
    Py_VISIT(trial.get());
    for (const Path& path : others) {
        Py_VISIT(path.plan.get());
        Py_VISIT(path.finish.get());
        if (const int status = path.captured.traverse(visit, arg)) return status;
    }
    return captured.traverse(visit, arg);
}

int fits(const Guard& guard, const Call& call, Leaves& leaves) {
    leaves.filled = true;
    leaves.items.clear();
    leaves.lists.clear();
    leaves.items.reserve(guard.leaves.size());
    if (call.n_positional != guard.n_positional || static_cast<size_t>(call.n) != guard.arguments.size()) return 0;
    if (!same_names(call.names, guard.names.get())) return 0;
    size_t next = 0;
    for (Py_ssize_t i = 0; i < call.n; ++i) {
        const int flat = flatten_into(guard.arguments[static_cast<size_t>(i)], call.args[i], leaves);
        if (flat <= 0) return flat;
        for (; next < leaves.items.size(); ++next) {
            const int same = fits_leaf(leaves.items[next], guard.leaves[next], guard);
            if (same <= 0) return same;
        }
    }
    return !guard.identity || fits_identity(guard, leaves.items);
}

bool fits_numbers(const Guard& guard, PyObject* const* args) {
    for (const LeafGuard& leaf : guard.leaves) {
        PyObject* o = *args++;
        if (leaf.kind == LeafKind::Number) {
            if (fits_leaf(o, leaf, guard) != 1) return false;
            continue;
        }
        // Another dtype than that of the guard may need Python code to compare.
        if (!is_exact_array(o) || reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(o))) != leaf.expected)
            return false;
        if (!same_array(o, leaf, guard)) return false;
    }
    return true;
}

PyObject* number_array_new(const Guard& guard, size_t leaf, PyObject* number) {
    const int type_num = guard.leaves[leaf].type_num;
    PyArray_Descr* dtype = PyArray_DescrFromType(type_num);  // one of NumPy's own, which live for ever
    PyObject* array = guard.recyclers[leaf].take(dtype, 0, nullptr);
    Py_DECREF(dtype);
    if (!array) return nullptr;
    store_number(number, type_num, PyArray_DATA(as_array(array)));  // found to fit
    return array;
}

void look_for_quick_ways(Guard& guard, PyObject* const* args) try {
    guard.quick.looked_for = true;
    if (!(guard.flat || guard.numbers || guard.quick_alert) || !guard.plan || guard.itself || !guard.in_form()) return;
    const PlanObject& plan = *reinterpret_cast<const PlanObject*>(guard.plan.get());
    if (guard.feeds.size() != guard.leaves.size() || guard.leaves.size() != plan.program->feeds.size()) return;
    std::vector<QuickArgument> given;
    bool single = true;
    for (size_t k = 0; k < guard.leaves.size(); ++k) {
        PyObject* const o = args[k];
        if (guard.feeds[k] != k) return;
        QuickArgument& g = given.emplace_back();
        g.type = Py_TYPE(o);
        g.type_num = guard.leaves[k].type_num;
        if (!is_exact_array(o)) continue;
        PyArrayObject* a = as_array(o);
        g.dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
        g.ndim = PyArray_NDIM(a);
        g.dims.assign(PyArray_DIMS(a), PyArray_DIMS(a) + g.ndim);
        single &= g.ndim == 0;
    }
    const bool arrays_alone = guard.flat || (guard.quick_alert && !guard.any_number);
    if (arrays_alone && !feeds_fit(*plan.program, args)) return;
    if (single)
        guard.quick.numbers =
            QuickNumbers::make(plan, given, guard.quick.form, guard.finish.get(), !guard.outcomes.empty(), guard.alert);
    else if (guard.quick.form == NumberForm::AsIs || guard.quick.form == NumberForm::Listed)
        guard.quick.arrays = QuickArrays::make(plan, given, guard.finish.get(), compiled_vectorcall_otherwise);
} catch (const std::bad_alloc&) {
    // There are slower ways.
}

std::shared_ptr<Guard> make_guard(const Call& call, PyObject* kinds, PyObject* trees, PyObject* keys, PyObject* gone,
                                  bool declared) {
    auto guard = std::make_shared<Guard>();
    GuardMaker maker(*guard, gone);
    Leaves leaves;
    guard->n_positional = call.n_positional;
    guard->names = Ref::borrow(call.names);
    if (PyTuple_GET_SIZE(trees) != call.n) return GuardMaker::changed(), nullptr;
    for (Py_ssize_t i = 0; i < call.n; ++i) {
        Guard::Argument argument;
        PyObject* tree = PyTuple_GET_ITEM(trees, i);
        if (tree != Py_None) argument.tree = maker.own(Ref::borrow(tree));
        argument.ordered = !declared;
        const int flat = flatten_into(argument, call.args[i], leaves);
        if (flat <= 0) return flat == 0 ? GuardMaker::changed() : 0, nullptr;
        guard->arguments.push_back(argument);
    }
    const auto n = static_cast<Py_ssize_t>(leaves.items.size());
    if (PyBytes_GET_SIZE(kinds) != n || PyTuple_GET_SIZE(keys) != n) return GuardMaker::changed(), nullptr;
    bool arrays = true, plain = true;
    for (Py_ssize_t k = 0; k < n; ++k) {
        const auto kind = static_cast<LeafKind>(PyBytes_AS_STRING(kinds)[k]);
        if (maker.add(leaves.items[static_cast<size_t>(k)], kind, PyTuple_GET_ITEM(keys, k)) < 0) return nullptr;
        arrays &= kind == LeafKind::Array || kind == LeafKind::Declared;
        plain &= kind == LeafKind::Array || guard->leaves.back().type_num != NPY_NOTYPE;
    }
    const bool positional = leaves.lists.empty() && !call.names;
    guard->flat = arrays && positional;
    guard->numbers = plain && positional && guard->any_number;
    if (guard->any_number) guard->recyclers = std::vector<ResultRecycler>(guard->leaves.size());
    return guard;
}

uint64_t hash_call(const Call& call, uint64_t statics, bool declared) {
    uint64_t h = mix(static_cast<uint64_t>(call.n), static_cast<uint64_t>(call.n_positional));
    for (Py_ssize_t i = 0; i < call.n; ++i) {
        PyObject* o = call.args[i];
        const bool is_static = i < 64 && i < call.n_positional && (statics >> i & 1);
        if (is_static) {
            h = mix(h, reinterpret_cast<uint64_t>(Py_TYPE(o)) ^ static_hash(o));
            continue;
        }
        if (declared) continue;
        if (is_exact_array(o)) {
            PyArrayObject* a = as_array(o);
            h = mix(h,
                    static_cast<uint64_t>(PyArray_DESCR(a)->type_num) << 32 | static_cast<uint64_t>(PyArray_NDIM(a)));
            for (int d = 0; d < PyArray_NDIM(a); ++d) h = mix(h, static_cast<uint64_t>(PyArray_DIM(a, d)));
            continue;
        }
        h = mix(h, reinterpret_cast<uint64_t>(Py_TYPE(o)));
    }
    return h;
}

const Guard* GuardTable::take_lately(PyObject* const* args, Py_ssize_t n) {
    for (const std::shared_ptr<Guard>& held : before_) {
        if (!held || !held->flat || !held->in_form() || n != held->n_positional || !fits_flat(*held, args)) continue;
        const std::shared_ptr<Guard> guard = held;  // `before_` changes
        if (!guard->captured.unchanged()) return nullptr;
        make_recent(guard);
        return guard.get();
    }
    return nullptr;
}

namespace {

// As `fits`; the leaves are not filled where they are the arguments.
int fits_call(const Guard& guard, const Call& call, Leaves& leaves) {
    const bool plain = guard.flat && !call.names && call.n == guard.n_positional;
    if (!plain || !fits_flat(guard, call.args)) return fits(guard, call, leaves);
    leaves.filled = false;
    return 1;
}

}  // namespace

std::shared_ptr<Guard> GuardTable::find_recent(const Call& call, Leaves& leaves, int& status) const {
    status = 0;
    std::shared_ptr<Guard> guard = recent_;
    if (!guard) return nullptr;
    const uint64_t version = version_;
    const int same = fits_call(*guard, call, leaves);
    if (same < 0) status = -1;
    if (same <= 0 || version != version_ || !guard->captured.unchanged()) return nullptr;
    return guard;
}

std::shared_ptr<Guard> GuardTable::find(uint64_t hash, const Call& call, Leaves& leaves, int& status) {
    status = 0;
    const uint64_t version = version_;
    const auto [begin, end] = guards_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
        const std::shared_ptr<Guard> guard = it->second;
        const int same = fits_call(*guard, call, leaves);
        if (same < 0) status = -1;
        const bool unchanged = same > 0 && version == version_ && guard->captured.unchanged();
        if (version != version_) return nullptr;  // the iterators mean nothing any more
        if (same < 0) return nullptr;
        if (same == 0) continue;
        if (!unchanged) {
            ++version_;
            drop_recent(guard.get());
            guards_.erase(it);
            return nullptr;
        }
        make_recent(guard);
        return guard;
    }
    return nullptr;
}

void GuardTable::make_recent(const std::shared_ptr<Guard>& guard) {
    if (guard == recent_) return;
    guard->used = ++clock_;
    const auto place = std::find(before_.begin(), before_.end() - 1, guard);  // or the last: that was the longest ago
    std::move_backward(before_.begin(), place, place + 1);
    before_.front() = std::exchange(recent_, guard);
}

void GuardTable::drop_recent(const Guard* guard) {
    if (recent_.get() == guard) recent_ = nullptr;
    for (std::shared_ptr<Guard>& held : before_)
        if (held.get() == guard) held = nullptr;
}

void GuardTable::add(std::shared_ptr<Guard> guard) {
    std::shared_ptr<Guard> oldest;  // dies at the end, when the table is in order again
    ++version_;
    if (guards_.size() >= limit_) {
        auto it = std::min_element(guards_.begin(), guards_.end(),
                                   [](const auto& a, const auto& b) { return a.second->used < b.second->used; });
        drop_recent(it->second.get());
        oldest = std::move(it->second);
        guards_.erase(it);
    }
    guards_.emplace(guard->hash, guard);
    make_recent(guard);
}

void GuardTable::remove(const Guard* guard) {
    ++version_;
    drop_recent(guard);
    const auto it =
        std::find_if(guards_.begin(), guards_.end(), [&](const auto& e) { return e.second.get() == guard; });
    if (it == guards_.end()) return;
    const std::shared_ptr<Guard> gone = std::move(it->second);  // dies when the table is in order again
    guards_.erase(it);
}

void GuardTable::forget(PyObject* instance_reference) {
    std::vector<std::shared_ptr<Guard>> dead;
    ++version_;
    for (auto it = guards_.begin(); it != guards_.end();) {
        const auto& leaves = it->second->leaves;
        const bool gone = std::any_of(leaves.begin(), leaves.end(), [&](const LeafGuard& leaf) {
            return leaf.kind == LeafKind::Instance && leaf.expected == instance_reference;
        });
        if (gone) dead.push_back(std::move(it->second));
        it = gone ? guards_.erase(it) : std::next(it);
    }
    for (const auto& guard : dead) drop_recent(guard.get());
}

void GuardTable::clear() {
    ++version_;
    const std::shared_ptr<Guard> recent = std::exchange(recent_, nullptr);  // dies when the table is in order again
    const auto before = std::exchange(before_, {});
    std::exchange(guards_, {}).clear();
}

int GuardTable::traverse(visitproc visit, void* arg) const {
    for (const auto& entry : guards_)
        if (const int status = entry.second->traverse(visit, arg)) return status;
    return 0;
}

}  // namespace pyop

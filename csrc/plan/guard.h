// plan/guard.h: hold what calls of a compiled function must have in common for one plan to serve them (Guard), and the
// guards of one function (GuardTable).
//
// What is compared, leaf by leaf of the arguments:
//
//   array       an exact ndarray: dtype and shape; the plan takes it
//   declared    anything that is not symbolic: the plan checks it itself, its inputs being declared
//   number      an instance of exactly this type (Python's numbers, NumPy's scalars): the plan takes it, whatever its
//               value
//   static      an equal object of the same type: the plan was made for this value
//   instance    the same object: the `self` of a method, held weakly
//   repeat      the array that another leaf is, in functions that ask for that (python/pyop/tracing/identity.py)
//
// Threads: the function's ObjectLock guards all of it, where there is no GIL. Comparing may run Python code (`__eq__`,
// attributes of a dataclass), which may call the function again, or clear it, or let others do so, and so change the
// table: whoever walks the table watches its version. What a call runs is copied before it runs (Found).
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "array/memory/recycle.h"
#include "array/numpy.h"
#include "plan/captured.h"
#include "plan/quick/number_form.h"
#include "runtime/ref.h"
#include "runtime/without_gil.h"

namespace pyop {

class QuickArrays;
class QuickNumbers;

enum class LeafKind : char { Array = 'a', Declared = 'd', Number = 'n', Static = 's', Instance = 'i', Repeat = 'r' };

struct LeafGuard {
    LeafKind kind;
    bool weak = false;        // Instance: `expected` is a weak reference
    int ndim = 0;             // Array
    uint32_t first_dim = 0;   // into Guard::dims
    uint32_t same_as = 0;     // Repeat: a leaf before it
    PyObject* expected = nullptr;  // borrowed from Guard::owned: dtype, type or object
    int type_num = NPY_NOTYPE;     // Number: what it is as an array; none for a class derived from one of NumPy's
    PyObject* key = nullptr;       // borrowed, may be null: a static value compares by its key
};

// How a plan is called where that takes no frame (plan/quick/): found out when a call comes for the second time.
struct QuickWays {
    bool looked_for = false;
    NumberForm form = NumberForm::AsIs;  // of `finish`
    std::shared_ptr<const QuickArrays> arrays;
    std::shared_ptr<const QuickNumbers> numbers;
};

// One way through a function that decides by the contents of arrays (plan/paths.h).
struct Path {
    std::vector<int64_t> outcomes;  // its number, then what its guards found
    Captured captured;
    Ref plan;  // null: the function itself runs
    Ref finish;
    QuickWays quick;
};

struct Guard {
    struct Argument {
        PyObject* tree = nullptr;  // TreeDef, borrowed from Guard::owned; null: the argument is a leaf
        bool ordered = true;       // the keys of dicts come in this order
    };
    uint64_t hash = 0;
    uint64_t used = 0;             // when it was last the most recent one
    bool flat = false;             // only positional arrays
    bool numbers = false;          // only positional arrays and numbers, one of these at least
    Py_ssize_t n_positional = 0;
    std::vector<Argument> arguments;
    std::vector<LeafGuard> leaves;
    std::vector<npy_intp> dims;
    std::vector<uint32_t> feeds;   // the leaves the plan takes, in its order
    std::vector<Ref> owned;
    bool identity = false;         // leaves that are no Repeat are different arrays
    bool any_number = false;       // some leaf is a number that is put into an array
    mutable std::vector<ResultRecycler> recyclers;  // by leaf: these arrays
    Ref names;                     // of keyword arguments: a tuple, or null
    Captured captured;             // what the function had read beside its arguments
    Ref plan;
    Ref finish;                    // makes the result of what the plan returns; null: it is the result
    QuickWays quick;
    // Whether whoever runs the plan can make the result of it without calling `finish`.
    bool in_form() const { return quick.form != NumberForm::Other; }
    bool itself = false;           // there is no plan: the function itself runs
    bool rerun = false;            // so it does where the plan raises: the function catches exceptions
    bool alert = false;            // floating-point errors raise while the plan runs: the function sets np.errstate
    bool alert_underflow = false;  // that one, too
    bool quick_alert = false;  // its arguments are plain: quick ways leave it to the general one where a flag is up
    int alarms = 0;  // how often one has
    bool goes_on = false;  // what the plan raises may not be the end: `rerun`, there are paths, or it writes
    Ref trial;  // says which of the first runs are the plan's (plan/trial.h); null: there is none, or no longer
    struct {
        bool flat = false, numbers = false, quick_alert = false;
    } ways;  // what of these holds when it is over
    Ref plainly;  // runs the function itself where its arguments are declared, or with out=
    Ref kinds;  // bytes: a LeafKind a leaf
    std::vector<int64_t> outcomes;  // of the path that ran last, which is here; empty: the function does not branch
    std::vector<Path> others;  // its other paths

    int traverse(visitproc visit, void* arg) const;
};

// One call: positional arguments, and keyword arguments behind them, as in vectorcall.
struct Call {
    PyObject* const* args;
    Py_ssize_t n;  // all of them
    Py_ssize_t n_positional;
    PyObject* names;  // tuple or null
};

// The leaves of a call's arguments, as far as they match; `lists` keeps those of containers alive.
struct Leaves {
    std::vector<PyObject*> items;  // borrowed from the call or from `lists`
    std::vector<Ref> lists;
    bool filled = false;  // else they are the arguments
};

// For flat guards and positional arguments: 1 or 0, without running any Python code.
PYOP_INLINE bool fits_flat(const Guard& guard, PyObject* const* args) {
    const npy_intp* dims = guard.dims.data();
    for (const LeafGuard& leaf : guard.leaves) {
        PyObject* o = *args++;
        if (!is_exact_array(o)) return false;
        if (leaf.kind == LeafKind::Declared) continue;
        PyArrayObject* a = as_array(o);
        if (reinterpret_cast<PyObject*>(PyArray_DESCR(a)) != leaf.expected) return false;
        if (PyArray_NDIM(a) != leaf.ndim) return false;
        const npy_intp* have = PyArray_DIMS(a);
        for (int d = 0; d < leaf.ndim; ++d)
            if (have[d] != dims[d]) return false;
        dims += leaf.ndim;
    }
    return true;
}

// The same for guards of `numbers`.
bool fits_numbers(const Guard& guard, PyObject* const* args);

// 1, 0, or -1 with the error set. Fills `leaves`, in any case with less than a whole call.
int fits(const Guard& guard, const Call& call, Leaves& leaves);

// Looks for the quick ways of a guard of positional arguments, which these fit.
PYOP_COLD void look_for_quick_ways(Guard& guard, PyObject* const* args);

// A number as an array of no dimension, for the plan. New reference, or null with the error set.
PyObject* number_array_new(const Guard& guard, size_t leaf, PyObject* number);

// A guard for calls like this one. `kinds` has a LeafKind a leaf, `trees` a TreeDef or None an argument, `keys` a value
// or None a leaf; `gone` is called with the weak reference of an instance that is no more. With `declared`, the trees
// are those of specs, for which the order of keys does not matter. Null with the error set.
std::shared_ptr<Guard> make_guard(const Call& call, PyObject* kinds, PyObject* trees, PyObject* keys, PyObject* gone,
                                  bool declared);

// Calls that fit the same guard have the same hash. `statics` has a bit for each of the first 64 positional arguments
// that is static; with `declared`, nothing else counts.
uint64_t hash_call(const Call& call, uint64_t statics, bool declared);

class GuardTable {
  public:
    explicit GuardTable(size_t limit) : limit_(limit) {}

    size_t size() const { return guards_.size(); }
    size_t limit() const { return limit_; }
    Guard* recent() const { return recent_.get(); }
    // One of those that were the most recent shortly before, if it takes these positional arrays; it becomes the most
    // recent. A few shapes in turn are what many programs call with, and need no hash then.
    const Guard* lately(PyObject* const* args, Py_ssize_t n) {
        return before_.front() ? take_lately(args, n) : nullptr;
    }

    // The most recent guard if it fits, or null; as `find`, without a hash.
    std::shared_ptr<Guard> find_recent(const Call& call, Leaves& leaves, int& status) const;
    // The guard that fits, which becomes the most recent one, or null; -1 in `status` if comparing raised. `leaves` is
    // filled unless the guard is flat: then they are the arguments. One that fits, but is of other captured values,
    // goes.
    std::shared_ptr<Guard> find(uint64_t hash, const Call& call, Leaves& leaves, int& status);
    // Forgets the one that was used longest ago if there are too many.
    void add(std::shared_ptr<Guard> guard);
    void remove(const Guard* guard);
    void forget(PyObject* instance_reference);
    void clear();
    int traverse(visitproc visit, void* arg) const;

  private:
    const Guard* take_lately(PyObject* const* args, Py_ssize_t n);
    void make_recent(const std::shared_ptr<Guard>& guard);
    void drop_recent(const Guard* guard);

    const size_t limit_;
    std::shared_ptr<Guard> recent_;
    std::array<std::shared_ptr<Guard>, 3> before_;  // the most recent ones before it
    uint64_t clock_ = 0;
    uint64_t version_ = 0;
    std::unordered_multimap<uint64_t, std::shared_ptr<Guard>> guards_;
};

}  // namespace pyop

// graph/value_spec.h: hold what is known of a Value before it is computed: dtype and sizes, interned per graph.
//
// A size is an int64: >= 0 is known, kUnknownSize is not, and below that stands a symbolic size (a Dim of
// python/pyop/declare/dims.py, interned for the process: kUnknownSize - 1 - index).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "array/numpy.h"
#include "runtime/ref.h"
#include "runtime/stable_list.h"

namespace pyop {

inline constexpr int64_t kUnknownSize = -1;

// What NumPy has in the place of a Value: an array, or one of its scalars. A sum is a scalar, a copy of an array of no
// dimension is an array: `+=` makes another scalar, but writes into the array.
enum class Form : uint8_t { Unknown, Array, Scalar };

struct ValueSpec {
    Ref dtype;      // null: unknown
    int ndim = -1;  // -1: unknown
    Form form = Form::Unknown;  // known to be Array where there are dimensions
    char text = 0;  // 'U' or 'S': str or bytes of any length, which is no dtype
    std::vector<int64_t> dims;

    bool operator==(const ValueSpec& other) const {
        return dtype.get() == other.dtype.get() && ndim == other.ndim && form == other.form && text == other.text &&
               dims == other.dims;
    }
    PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }
};

// The distinct specs of one graph. Id 0 is "nothing known".
class SpecTable {
  public:
    SpecTable() { specs_.push_back({}); }
    uint32_t intern(ValueSpec spec);
    const ValueSpec& operator[](uint32_t id) const { return specs_[id]; }

  private:
    StableList<ValueSpec> specs_;  // whoever reads one may call Python, and so another thread, which adds some
    BriefMutex mutex_;
    std::unordered_multimap<size_t, uint32_t> by_hash_;
};

// Makes the table of symbolic sizes.
int value_spec_init();

// Whether an object is a symbolic size.
bool is_dim(PyObject* object);

// Python int, Dim or None for a size, and back. *size_of* returns -1 with an error set only if PyErr_Occurred().
PyObject* size_new(int64_t size);
int64_t size_of(PyObject* object);

// Spec and shape tuple (None: rank unknown) for a ValueSpec. New references.
PyObject* spec_new(const ValueSpec& spec);
PyObject* shape_new(const ValueSpec& spec);

// Reads a Python Spec. Dims that mean nothing outside a declaration (`...`) make the rank unknown.
int spec_from_python(PyObject* spec, ValueSpec& out);

ValueSpec spec_of_array(PyArrayObject* a);

}  // namespace pyop

// autograd/numbers.cpp: find NumPy's loop for plain operands and call it, in place where nobody else sees the memory.
#include "autograd/numbers.h"
#include "autograd/turn.h"

#include <cmath>  // std::isfinite
#include <cstring>  // std::memcpy
#include <string>

#include "array/loop/fp_flags.h"
#include "array/loop/ufunc_errors.h"
#include "array/memory/pool.h"
#include "array/protocol/scalar_operator.h"

namespace pyop {

namespace {

// Above, NumPy's way costs little, and it lets other threads run meanwhile.
constexpr npy_intp kMostElements = 4096;

// What the loop is given, as far as it is the same for all operands.
struct Common {
    int type = 0;  // NPY_DOUBLE or NPY_FLOAT
    PyArrayObject* shaped = nullptr;  // has the shape of the result
};

// Whether the loop can take an operand.
bool take(PyObject* o, Common& common) {
    if (!is_exact_array(o)) return PyFloat_CheckExact(o) || PyLong_CheckExact(o);
    PyArrayObject* array = as_array(o);
    const int type = PyArray_DESCR(array)->type_num;
    if ((type != NPY_DOUBLE && type != NPY_FLOAT) || (common.type && type != common.type)) return false;
    if (!PyArray_ISCARRAY_RO(array)) return false;
    common.type = type;
    if (!common.shaped || PyArray_NDIM(common.shaped) == 0) {
        common.shaped = array;
        return true;
    }
    return PyArray_NDIM(array) == 0 || PyArray_SAMESHAPE(array, common.shaped);
}

// A Python number as an element of the loop; false where converting it is more than a copy.
bool put_number(PyObject* o, int type, char* to) {
    double value;
    if (PyFloat_CheckExact(o)) {
        value = PyFloat_AS_DOUBLE(o);
    } else {
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(o, &overflow);
        const long long exact = type == NPY_DOUBLE ? 1LL << 53 : 1LL << 24;
        if (overflow || whole > exact || whole < -exact) return false;
        value = static_cast<double>(whole);
    }
    if (type == NPY_DOUBLE) {
        std::memcpy(to, &value, sizeof value);
        return true;
    }
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow) && std::isfinite(value)) return false;
    std::memcpy(to, &narrow, sizeof narrow);
    return true;
}

// NumPy's loop of a type, or null: not available, or with an error set.
StridedLoop* loop_of(Ufunc& u, int type) {
    Ufunc::Loop& known = u.loops[type == NPY_FLOAT];
    if (PYOP_UNLIKELY(known.state == Ufunc::Loop::Unknown)) {
        Ref dtype = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type)));
        PyObject* kinds[] = {dtype.get(), dtype.get()};
        const int found = known.loop.resolve(u.object, kinds, u.inputs);
        if (found < 0) return nullptr;
        const bool plain = found && known.loop.n_outputs() == 1 && known.loop.dtype(0)->type_num == type &&
                           known.loop.dtype(u.inputs)->type_num == type;
        known.state = plain ? Ufunc::Loop::Found : Ufunc::Loop::None;
    }
    return known.state == Ufunc::Loop::Found ? &known.loop : nullptr;
}

Ref through_numpy(const Ufunc& u, PyObject* a, PyObject* b, PyObject* out, bool scalars = false) {
    PyObject* args[] = {a, b ? b : out, out};
    const size_t n = 1 + (b != nullptr) + (out != nullptr);
    if (scalars) {
        if (PyObject* does = scalar_operator(u.object)) return Ref::steal(outside_new(does, args, n));
    }
    return Ref::steal(outside_new(u.object, args, n));
}

}  // namespace

int ufunc_find(Ufunc& u, PyObject* numpy, const char* name) {
    u.name = name;
    u.object = PyObject_GetAttrString(numpy, name);
    if (!u.object) return -1;
    Ref inputs = Ref::steal(PyObject_GetAttrString(u.object, "nin"));
    u.inputs = inputs ? static_cast<int>(PyLong_AsLong(inputs.get())) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

Ref ufunc_call(Ufunc& u, Ref a, PyObject* b, bool scalars) {
    Common common;
    if (!take(a.get(), common) || (b && !take(b, common)) || !common.type)
        return through_numpy(u, a.get(), b, nullptr, scalars);
    StridedLoop* loop = loop_of(u, common.type);
    if (!loop) return PyErr_Occurred() ? Ref() : through_numpy(u, a.get(), b, nullptr, scalars);

    double spare[2];
    PyObject* inputs[] = {a.get(), b};
    char* data[3];
    npy_intp strides[3];
    const npy_intp itemsize = common.type == NPY_DOUBLE ? sizeof(double) : sizeof(float);
    for (int i = 0; i < u.inputs; ++i) {
        if (is_exact_array(inputs[i])) {
            data[i] = PyArray_BYTES(as_array(inputs[i]));
            strides[i] = PyArray_NDIM(as_array(inputs[i])) ? itemsize : 0;
        } else {
            data[i] = reinterpret_cast<char*>(&spare[i]);
            strides[i] = 0;
            if (!put_number(inputs[i], common.type, data[i])) return through_numpy(u, a.get(), b, nullptr, scalars);
        }
    }
    const bool reuse = is_ours_alone(a.get()) && PyArray_SAMESHAPE(as_array(a.get()), common.shaped);
    Ref out = reuse ? Ref::borrow(a.get())
                    : Ref::steal(pooled_array_new(loop->dtype(u.inputs), PyArray_NDIM(common.shaped),
                                                  PyArray_DIMS(common.shaped), nullptr));
    if (!out) return {};
    const npy_intp n = PyArray_SIZE(common.shaped);
    if (n > kMostElements) return through_numpy(u, a.get(), b, out.get());
    data[u.inputs] = PyArray_BYTES(as_array(out.get()));
    strides[u.inputs] = itemsize;
    if (all_fp_errors()) clear_all_fp_errors();
    if ((*loop)(data, n, strides) < 0) return PyErr_Occurred() ? Ref() : through_numpy(u, a.get(), b, nullptr);
    if (const int flags = all_fp_errors()) {
        clear_all_fp_errors();
        const std::string name = std::string(scalars ? kScalarPrefix : "") + u.name;
        if (!loop->ignores_flags() && report_fp_errors(name.c_str(), flags) < 0) return {};
    }
    return out;
}

}  // namespace pyop

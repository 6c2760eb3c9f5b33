// array/view/view_recipe.h: describe what a chain of view functions (transpose, slices, …) does to an array.
//
// It works on descriptions of arrays, not on array objects: where the elements lie, and how. So whoever reads a view
// element by element can do without the object. Shapes and strides come out as NumPy's functions give them, those of
// empty and one-element axes included.
#pragma once

#include <cstdint>
#include <vector>

#include "array/numpy.h"

namespace pyop {

// An array as the loops see it. What it shows belongs to somebody else.
struct ArrayView {
    char* data;
    PyArray_Descr* descr;  // borrowed
    npy_intp itemsize;
    int ndim;
    bool writeable;
    npy_intp dims[NPY_MAXDIMS];
    npy_intp strides[NPY_MAXDIMS];

    ArrayView() {}  // not initialised: it is a kilobyte, of which a few words are used
    explicit ArrayView(PyArrayObject* a) { show(a); }
    void show(PyArrayObject* a);

    npy_intp size() const;
    bool contiguous(bool fortran) const;  // as NumPy's flags say
    // The array object of this view of `owner`'s memory. New reference, or null with the error set. Attached threads.
    PyObject* array_new(PyObject* owner) const;
};

// A size or an index: a number, or (expr >= 0) the run's size number `expr`.
struct ViewSize {
    npy_intp value = 0;
    int32_t expr = -1;

    npy_intp get(const npy_intp* sizes) const { return expr < 0 ? value : sizes[expr]; }
};

// What is made of the axes of an array, one after the other.
struct AxisItem {
    enum Kind : uint8_t {
        Keep,  // the axis as it is
        New,  // one more axis, of size 1
        At,  // one position of the axis, which is dropped
        Slice,  // start:stop:step of the axis
        One,  // the axis has size 1 and is dropped
        Part,  // piece `part` of `parts` along the axis, as array_split cuts; `even`: they must be of one size
        Diagonal,  // of the axes `axis` and `axis2`, shifted by start
        Places,  // where windows of size `start` may begin along the axis
        Window,  // what such a window shows
    } kind;
    uint8_t axis = 0, axis2 = 0;
    bool has_start = false, has_stop = false, even = false;
    ViewSize start{}, stop{};
    npy_intp step = 1;
    npy_intp part = 0, parts = 0;
};

struct ViewOp {
    enum Kind : uint8_t {
        Axes,  // `items`
        Reshape,  // to `shape`, in which one size may be -1
        Expand,  // reshape with axes of size 1 at `axes`
        Ravel,  // one dimension
        Squeeze,  // all axes of size 1 dropped
        Broadcast,  // to `shape`, read-only
        Real,
        Imag,
        Same,  // the array itself
    } kind;
    bool fortran = false;  // order of Reshape and Ravel
    bool read_only = false;  // of Axes
    int count = -1;  // of Axes: that axis `count_axis` must have this size
    int count_axis = 0;
    std::vector<AxisItem> items{};
    std::vector<ViewSize> shape{};
    std::vector<uint8_t> axes{};  // ascending, in the result

    enum class Made : uint8_t {
        View,  // `out` shows the result
        Same,  // the result is the array itself; `out` is not written
        Copies,  // the result has to be a copy, of the shape in out.dims, which is set
        No,  // an error, or a case that is left to NumPy
    };
    Made apply(const ArrayView& in, ArrayView& out, const npy_intp* sizes = nullptr) const;
};

struct ViewRecipe {
    int ndim;  // of the arrays it is for
    std::vector<ViewOp> ops;
    bool copies_item = false;  // an index of integers alone: NumPy gives a number, not a view

    // Whether the last result shows memory of `base`; then it is in `out`. False where an array of another rank came,
    // where NumPy would copy or fail, and for copies_item.
    bool apply(const ArrayView& base, ArrayView& out, const npy_intp* sizes = nullptr) const;

    // The positions along the axes where it is nothing but an element at one of each; else null.
    const std::vector<AxisItem>* places() const {
        if (ops.size() != 1 || ops[0].kind != ViewOp::Axes || ops[0].count >= 0) return nullptr;
        for (const AxisItem& item : ops[0].items)
            if (item.kind != AxisItem::At) return nullptr;
        return static_cast<int>(ops[0].items.size()) == ndim ? &ops[0].items : nullptr;
    }
};

// The element at `places` (ViewRecipe::places); null if there is none.
inline char* element_at(PyArrayObject* a, const std::vector<AxisItem>& places, const npy_intp* sizes) {
    if (PyArray_NDIM(a) != static_cast<int>(places.size())) return nullptr;
    char* data = PyArray_BYTES(a);
    for (const AxisItem& item : places) {
        const npy_intp size = PyArray_DIM(a, item.axis);
        npy_intp at = item.start.get(sizes);
        if (at < 0) at += size;
        if (at < 0 || at >= size) return nullptr;
        data += at * PyArray_STRIDE(a, item.axis);
    }
    return data;
}

}  // namespace pyop

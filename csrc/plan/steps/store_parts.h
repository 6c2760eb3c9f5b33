// plan/steps/store_parts.h: share what the steps that write into arrays have in common (`store` of
// python/pyop/gradients/store.py).
#pragma once

#include <vector>

#include "array/call/tree_call.h"
#include "array/memory/recycle.h"
#include "array/view/view_recipe.h"
#include "plan/steps/node_call.h"
#include "runtime/ref.h"

namespace pyop {

inline constexpr size_t kLargestElement = 16;  // bytes, of NumPy's own dtypes but for longdouble's complex

// A scalar of NumPy of that dtype, as an element.
bool scalar_as_element(PyObject* given, PyArray_Descr* dtype, char* element);

// A Python number as an element, where no error or warning is in question.
bool number_as_element(PyObject* number, PyArray_Descr* dtype, char* element);

// A number of one dtype as an element of another; under the same condition.
bool converted_element(const void* from, PyArray_Descr* have, PyArray_Descr* dtype, char* element);

// What a call of `store` writes: an input, or a number that is known.
struct WrittenValue {
    struct Elements {
        const char* from = nullptr;
        PyArrayObject* array = nullptr;  // of which they are; null: one element
        alignas(kLargestElement) char element[kLargestElement];
    };

    int64_t input = -1;  // -1: `constant` is written
    alignas(kLargestElement) char constant[kLargestElement] = {};

    // False if it is a number whose conversion is NumPy's to judge.
    bool bind(const NodeArgument& argument, PyArray_Descr* dtype);
    // False if it is not of that dtype, nor a number that becomes one.
    bool read(PyObject* const* inputs, PyArray_Descr* dtype, Elements& found) const;
};

// A copy that lies as the array does; empty with the error set.
Ref copy_to_write(PyArrayObject* x, ResultRecycler& recycler);

// The views of a call of `store`, of an array of `ndim` dimensions, and the key behind them (null: none). False if
// there is another function among them, or a key that is not understood.
bool read_views(PyObject* views, PyObject* last, int ndim, const TreeCallObject::Layout* sizes,
                std::vector<ViewRecipe>& recipes);

// What views show of an array, in one of the two; null if it is no view.
inline const ArrayView* part_of(PyArrayObject* x, const std::vector<ViewRecipe>& views, const npy_intp* numbers,
                                ArrayView (&memory)[2]) {
    memory[0].show(x);
    size_t at = 0;
    for (const ViewRecipe& view : views) {
        if (!view.apply(memory[at], memory[1 - at], numbers)) return nullptr;
        at = 1 - at;
    }
    return &memory[at];
}

}  // namespace pyop

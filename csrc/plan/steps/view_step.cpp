#include "plan/steps/view_step.h"

#include <cstring>

#include "plan/steps/steps.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// A new array of one number, as an index of integers alone gives it. 1, 0 for dtypes that are left to NumPy, or -1.
int item_new(const ArrayView& at, PyObject** result) {
    const int type = at.descr->type_num;
    if (!(PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type)) || PyDataType_ISBYTESWAPPED(at.descr)) return 0;
    Py_INCREF(at.descr);
    *result = PyArray_NewFromDescr(&PyArray_Type, at.descr, 0, nullptr, nullptr, nullptr, 0, nullptr);
    if (!*result) return -1;
    std::memcpy(PyArray_DATA(as_array(*result)), at.data, static_cast<size_t>(at.itemsize));
    return 1;
}

PyObject* reshaped_copy_new(const ViewOp& op, PyArrayObject* a, ArrayView& shape) {
    const NPY_ORDER order = op.fortran ? NPY_FORTRANORDER : NPY_CORDER;
    if (op.kind == ViewOp::Ravel) return PyArray_Ravel(a, order);
    PyArray_Dims dims{shape.dims, shape.ndim};
    return PyArray_Newshape(a, &dims, order);
}

// 1: done; 0: not this way; -1: error set.
int view_new(const ViewRecipe& recipe, PyObject* base, const npy_intp* sizes, PyObject** result) {
    ArrayView first(as_array(base)), second;
    if (first.ndim != recipe.ndim) return 0;
    ArrayView *now = &first, *next = &second;
    Ref owner = Ref::borrow(base);
    bool moved = false;  // `now` is not what `owner` itself shows
    for (const ViewOp& op : recipe.ops) {
        switch (op.apply(*now, *next, sizes)) {
            case ViewOp::Made::View:
                std::swap(now, next);
                moved = true;
                break;
            case ViewOp::Made::Same:
                break;
            case ViewOp::Made::Copies: {
                Ref from = moved ? Ref::steal(now->array_new(owner.get())) : owner;
                owner = from ? Ref::steal(reshaped_copy_new(op, as_array(from.get()), *next)) : Ref();
                if (!owner) return -1;
                now->show(as_array(owner.get()));
                moved = false;
                break;
            }
            case ViewOp::Made::No:
                return 0;
        }
    }
    if (recipe.copies_item) return item_new(*now, result);
    *result = moved ? now->array_new(owner.get()) : owner.release();
    return *result ? 1 : -1;
}

}  // namespace

int ViewStep::run(PyObject* const* inputs, PyObject** results, const StepContext&) const {
    PyObject* base = inputs[view_.input];
    if (!is_exact_array(base)) return 0;
    StackArray<npy_intp, 8> sizes(view_.sizes ? view_.sizes->sizes.size() : 0);
    if (view_.sizes && !tree_sizes(*view_.sizes, inputs, sizes.data())) return 0;
    for (size_t k = 0; k < view_.recipes.size(); ++k) {
        const int made = view_new(view_.recipes[k], base, sizes.data(), &results[k]);
        if (made > 0) continue;
        while (k-- > 0) Py_CLEAR(results[k]);
        return made;
    }
    return 1;
}

std::string ViewStep::describe(size_t) const { return "view"; }

int make_view(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step) {
    ViewCall view;
    if (read_view(r, node, view)) step = std::make_unique<ViewStep>(Members::of_node(r.g, node), std::move(view));
    return 0;
}

}  // namespace pyop

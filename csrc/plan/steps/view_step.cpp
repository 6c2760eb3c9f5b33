// plan/steps/view_step.cpp: walk arrays through recipes, and copy where a reshape cannot be a view.
#include "plan/steps/view_step.h"

#include <algorithm>
#include <cstring>

#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// A new array of one number, as an index of integers alone gives it. 1, 0 for dtypes that are left to NumPy, or -1.
int item_new(PyArray_Descr* descr, const char* data, ResultRecycler& recycler, PyObject** result) {
    const int type = descr->type_num;
    if (!(PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type)) || PyDataType_ISBYTESWAPPED(descr)) return 0;
    *result = recycler.take(descr, 0, nullptr);
    if (!*result) return -1;
    std::memcpy(PyArray_DATA(as_array(*result)), data, static_cast<size_t>(PyDataType_ELSIZE(descr)));
    return 1;
}

// Unrolled loops read thousands of elements, each for a moment: arrays of their own would not stay in cache.
ResultRecycler& doubles() {
    static auto* const shared = new ResultRecycler;  // for the life of the process; see recycle.h
    return *shared;
}

PyObject* reshaped_copy_new(const ViewOp& op, PyArrayObject* a, ArrayView& shape) {
    const NPY_ORDER order = op.fortran ? NPY_FORTRANORDER : NPY_CORDER;
    if (op.kind == ViewOp::Ravel) return PyArray_Ravel(a, order);
    PyArray_Dims dims{shape.dims, shape.ndim};
    return PyArray_Newshape(a, &dims, order);
}

// An array on its way through recipes: an object that owns the memory, and what is shown of it.
class Walk {
  public:
    explicit Walk(PyObject* base) : owner_(Ref::borrow(base)) { now_->show(as_array(base)); }
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    // 1: done; 0: not this way; -1: error set.
    int follow(const ViewRecipe& recipe, const npy_intp* sizes) {
        if (now_->ndim != recipe.ndim) return 0;
        for (const ViewOp& op : recipe.ops) {
            switch (op.apply(*now_, *next_, sizes)) {
                case ViewOp::Made::View:
                    std::swap(now_, next_);
                    moved_ = true;
                    break;
                case ViewOp::Made::Same:
                    break;
                case ViewOp::Made::Copies:
                    if (copy(op) < 0) return -1;
                    break;
                case ViewOp::Made::No:
                    return 0;
            }
        }
        return 1;
    }

    // The array as it is now. New reference, or null with the error set.
    PyObject* array_new() const { return moved_ ? now_->array_new(owner_.get()) : owner_.new_ref(); }
    const ArrayView& shown() const { return *now_; }

  private:
    int copy(const ViewOp& op) {
        Ref from = Ref::steal(array_new());
        owner_ = from ? Ref::steal(reshaped_copy_new(op, as_array(from.get()), *next_)) : Ref();
        if (!owner_) return -1;
        now_->show(as_array(owner_.get()));
        moved_ = false;
        return 0;
    }

    ArrayView first_, second_;
    ArrayView *now_ = &first_, *next_ = &second_;
    Ref owner_;
    bool moved_ = false;  // not what `owner_` itself shows
};

int follow_to_result(Walk& walk, const ViewRecipe& recipe, const npy_intp* sizes, ResultRecycler& numbers,
                     PyObject** result) {
    const int done = walk.follow(recipe, sizes);
    if (done <= 0) return done;
    if (recipe.copies_item) return item_new(walk.shown().descr, walk.shown().data, numbers, result);
    *result = walk.array_new();
    return *result ? 1 : -1;
}

}  // namespace

int ViewStep::run(PyObject* const* inputs, PyObject** results, const StepContext&) const {
    PyObject* base = inputs[view_.input];
    if (!is_exact_array(base)) return 0;
    StackArray<npy_intp, 8> sizes(view_.sizes ? view_.sizes->sizes.size() : 0);
    if (view_.sizes && !tree_sizes(*view_.sizes, inputs, sizes.data())) return 0;
    if (places_) {
        PyArray_Descr* descr = PyArray_DESCR(as_array(base));
        const char* data = element_at(as_array(base), *places_, sizes.data());
        return data ? item_new(descr, data, descr->type_num == NPY_DOUBLE ? doubles() : numbers_, &results[0]) : 0;
    }
    Walk walk(base);
    for (const ViewRecipe& recipe : before_)
        if (const int done = walk.follow(recipe, nullptr); done <= 0) return done;
    if (view_.recipes.size() == 1) return follow_to_result(walk, view_.recipes[0], sizes.data(), numbers_, &results[0]);
    Ref whole = before_.empty() ? Ref::borrow(base) : Ref::steal(walk.array_new());
    if (!whole) return -1;
    for (size_t k = 0; k < view_.recipes.size(); ++k) {
        Walk part(whole.get());
        const int done = follow_to_result(part, view_.recipes[k], sizes.data(), numbers_, &results[k]);
        if (done > 0) continue;
        while (k-- > 0) Py_CLEAR(results[k]);
        return done;
    }
    return 1;
}

bool ViewStep::show(PyArrayObject* base, ArrayView& out) const {
    const ArrayView first(base);
    if (PYOP_LIKELY(before_.empty())) return view_.recipes[0].apply(first, out);
    ArrayView second;
    const ArrayView* now = &first;
    size_t left = before_.size();
    for (const ViewRecipe& recipe : before_) {
        ArrayView& next = left-- % 2 ? second : out;
        if (!recipe.apply(*now, next)) return false;
        now = &next;
    }
    return view_.recipes[0].apply(*now, out);
}

namespace {

// Whether an array of no dimension stays what it is.
bool keeps_number(const ViewRecipe& recipe) {
    return recipe.ndim == 0 && std::all_of(recipe.ops.begin(), recipe.ops.end(), [](const ViewOp& op) {
               if (op.kind == ViewOp::Axes) return op.items.empty() && op.count < 0;
               if (op.kind == ViewOp::Reshape || op.kind == ViewOp::Broadcast) return op.shape.empty();
               return op.kind == ViewOp::Same || op.kind == ViewOp::Squeeze;
           });
}

}  // namespace

bool ViewStep::record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const {
    if (inputs[view_.input].kind == TapeValue::Number) {
        // A view of a number is the number, where nobody can see whose memory it is.
        const bool seen = !tape.in_part() && !(view_.recipes.size() == 1 && view_.recipes[0].copies_item);
        if (seen) return false;
        if (view_.recipes.size() == 1 && before_.empty() && view_.recipes[0].ops.size() == 1 &&
            view_.recipes[0].ops[0].kind >= ViewOp::Real && view_.recipes[0].ops[0].kind <= ViewOp::Imag)
            return tape.part_of_complex(inputs[view_.input], view_.recipes[0].ops[0].kind == ViewOp::Imag, results[0]);
        if (view_.recipes.size() != 1 || !keeps_number(view_.recipes[0]) ||
            !std::all_of(before_.begin(), before_.end(), keeps_number))
            return false;
        results[0] = inputs[view_.input];
        return true;
    }
    const TapeValue& base = inputs[view_.input];
    if (places_ && base.kind == TapeValue::Array) return tape.load(base, *places_, view_.sizes, inputs, results[0]);
    if (!tape.with_blocks()) return false;
    for (size_t k = 0; k < view_.recipes.size(); ++k) {
        std::vector<ViewRecipe> way = before_;
        way.push_back(view_.recipes[k]);
        if (!tape.part(base, way, view_.sizes, inputs, nullptr, results[k])) return false;
    }
    return true;
}

std::string ViewStep::describe(size_t member) const {
    return member + 1 < fallback_.nodes.size() ? "view, read through by the next" : "view";
}

int make_view(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step) {
    ViewCall view;
    if (read_view(r, node, view)) step = std::make_unique<ViewStep>(Fallback::of_node(r.g, node), std::move(view));
    return 0;
}

}  // namespace pyop

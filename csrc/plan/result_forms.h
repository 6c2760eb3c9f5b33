// plan/result_forms.h: turn the arrays of a plan into the result of its compiled function where these are not all of
// it: numbers, what it returned beside arrays, and memory that every call has anew (ResultForms).
//
// python/pyop/compiling/results.py lists the leaves of a result when the function is traced. Immutable.
#pragma once

#include <memory>
#include <vector>

#include "plan/quick/number_form.h"
#include "plan/result_tree.h"
#include "runtime/stack_array.h"

namespace pyop {

class ResultForms {
  public:
    struct Leaf {
        enum Kind : char {
            Array = 'a',  // the next one of the plan
            Scalar = 's',  // the same as NumPy's scalar, unless it is in an array of the caller's
            Number = 'n',  // the same as Python's number
            Again = 'r',  // the leaf `first`
            Object = 'o',  // `object`
            View = 'w',  // of the array `object`, a new one
            Copy = 'c',  // of the array `object`
            Fixed = 'f',  // the same, read-only
            List = 'l',  // of the elements of `first` arrays, side by side, behind what `object` has
        } kind;
        // Of an array: whether the plan may hold it, so that it is copied, or shown in a view, which is one for all
        // leaves of the same `first`.
        enum Held : char { No = '-', Copied = 'c', Shown = 'v' } held;
        size_t first = 0;
        uint64_t owner = 0;  // whose memory it is as the function was written: of another one it is copied
        Ref object;

        // Of so many arrays of the plan.
        size_t taken() const { return kind == List ? first : kind == Array || kind == Scalar || kind == Number; }
        NumberForm form() const {
            return kind == Scalar ? NumberForm::Scalar : kind == Number ? NumberForm::Python : NumberForm::AsIs;
        }
    };

    // Of a tuple of (kind, held, first, owner, object); of the TreeDef of the result, and that of the plan's, None for
    // a tuple. Null with the error set.
    static std::unique_ptr<const ResultForms> make(PyObject* leaves, PyObject* tree, PyObject* given);

    // What it makes of a plan's result, computed into `out` if that is not null. New reference, or null with the error
    // set.
    PyObject* of_result_new(PyObject* result, PyObject* out) const;

    // Of each array of the plan.
    std::vector<NumberForm> wanted() const;
    // Whether every array is its own, whoever makes it.
    bool holds_none() const;
    // Whether that is so, and there are no numbers among them.
    bool are_arrays() const;

    // `take(k, leaf)`: a new reference to the k-th array in the form of its leaf, or null with the error set.
    template <class Take>
    PyObject* build_new(Take take) const {
        StackRefs<16> made(leaves_.size());
        size_t next = 0;
        for (size_t i = 0; i < leaves_.size(); ++i) {
            const Leaf& leaf = leaves_[i];
            if (leaf.kind == Leaf::List) {
                StackRefs<4> arrays(leaf.first);
                for (size_t k = 0; k < leaf.first; ++k)
                    if (!(arrays[k] = take(next + k, leaf))) return nullptr;
                made[i] = list_new(arrays.data(), leaf);
            } else {
                made[i] = leaf.taken() ? take(next, leaf) : beside_new(leaf, made);
            }
            next += leaf.taken();
            if (!made[i]) return nullptr;
        }
        return tree_new(made);
    }

    int traverse(visitproc visit, void* arg) const;

  private:
    using Made = StackRefs<16>;
    static PyObject* beside_new(const Leaf& leaf, const Made& made);
    static PyObject* list_new(PyObject* const* arrays, const Leaf& leaf);
    PyObject* tree_new(Made& made) const;  // takes the leaves
    PyObject* shown_new(PyObject* array, const Leaf& leaf, std::vector<std::pair<const Leaf*, PyObject*>>& shown) const;

    std::vector<Leaf> leaves_;
    size_t taken_ = 0;  // so many arrays does the plan return
    Ref tree_, given_;
    bool alone_ = false;  // the plan returns one array
    std::unique_ptr<const ResultTree> plain_tree_;  // the same as `tree_`, if it has plain containers only
};

// The forms that a callable of Python stands for; null if it stands for none. Lives as long as that.
const ResultForms* result_forms_of(PyObject* finish);

// What they make of `result` (stolen); null stays null. `finish` is held meanwhile.
PyObject* formed_steal(PyObject* result, PyObject* finish, PyObject* out);

// Adds the type ResultForms to the module.
int result_forms_init(PyObject* module);

}  // namespace pyop

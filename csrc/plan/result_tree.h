// plan/result_tree.h: build the nested tuples, lists and dicts that a plan returns, without Python (ResultTree).
//
// A TreeDef is pickled as the steps in which it is made, children first, and these are read here. Trees with containers
// of other kinds, whose classes run code of their own, are left to TreeDef.unflatten. Immutable; the keys of dicts are
// strings, so making a tree runs nobody's code.
#pragma once

#include <memory>
#include <vector>

#include "runtime/ref.h"

namespace pyop {

class ResultTree {
  public:
    // Null where the tree is not of that kind, or with the error set.
    static std::unique_ptr<const ResultTree> make(PyObject* tree);

    // `leaf(i)`: a new reference to leaf i, never null. Null with the error set.
    template <class Leaf>
    PyObject* build_new(Leaf leaf) const {
        constexpr size_t kOnStack = 16;
        PyObject* here[kOnStack];
        std::unique_ptr<PyObject*[]> more;
        PyObject** stack = here;
        if (deepest_ > kOnStack) {
            more.reset(new PyObject*[deepest_]);
            stack = more.get();
        }
        size_t height = 0, next = 0;
        for (const Step& step : steps_) {
            if (step.kind == Step::Leaf) {
                stack[height++] = leaf(next++);
                continue;
            }
            height -= step.size;
            PyObject* made = container_new(step, stack + height);  // which has taken its parts, made or not
            if (!made) {
                while (height > 0) Py_DECREF(stack[--height]);
                return nullptr;
            }
            stack[height++] = made;
        }
        return stack[0];
    }

    bool is_leaf() const { return steps_.size() == 1 && steps_[0].kind == Step::Leaf; }
    int traverse(visitproc visit, void* arg) const;

  private:
    struct Step {
        enum Kind : uint8_t { Leaf, Tuple, List, Dict } kind;
        size_t size;  // parts
        Ref keys;  // of a dict: a tuple of strings
    };
    static PyObject* container_new(const Step& step, PyObject** parts);

    std::vector<Step> steps_;
    size_t deepest_ = 0;  // parts that wait at once
};

}  // namespace pyop

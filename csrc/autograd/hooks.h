// autograd/hooks.h: keep hooks on Tensors and nodes.
//
// Hooks are kept in dicts id -> callable, in the order of registration. Who runs them takes a copy of the list first:
// a hook may remove itself or others.
#pragma once

#include "autograd/grad_node.h"
#include "runtime/ref.h"

namespace pyop {

// Adds `hook` to the dict in `slot`, made if there is none; returns a handle.
PyObject* hook_add_new(PyObject*& slot, PyObject* hook);

// The hooks on output `index` of the node, and the gradients to be retained, on the gradient that arrived there
// (replaced). -1 with the error set.
int run_output_hooks(GradNode* node, uint32_t index, Ref& gradient, bool tensors);
// Hooks of a leaf on the gradient that is about to be added.
int run_hooks(PyObject* hooks, Ref& gradient, const ArrayInfo& info, bool tensors);
int run_post_accumulate_hooks(TensorObject* t);
// Hooks of the node: on all gradients that arrived, before; and on what backward made of them, after.
int run_prehooks(GradNode* node, PyObject** arrived, bool tensors);
int run_posthooks(GradNode* node, PyObject** gradients, PyObject* arrived);

}  // namespace pyop

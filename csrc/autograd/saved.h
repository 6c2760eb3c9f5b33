// autograd/saved.h: keep the arrays that a node needs for its backward.
//
//   Input    an argument: the Tensor itself, with the version of its memory
//   Output   an own output: its array without the history (that would be a cycle), with the version of its memory;
//            the history is put back when it is handed out
//   Constant an argument that is a plain array; of a built-in operation also a number
//   Other    any other array, computed on the way: nothing is known of how it depends on the inputs
//
// No counter sees what NumPy writes. So an array that others can write into is remembered by a fingerprint of its
// bytes, and a small one always; what was private then and is given away later (x.numpy()) is printed when that
// happens.
#pragma once

#include "autograd/fingerprint.h"
#include "autograd/tensor.h"

namespace pyop {

struct GradNode;

struct SavedItem {
    enum Kind : uint8_t { None, Input, Output, Constant, Other };
    PyObject* value;          // owned: a Tensor for Input, else an array; null for None
    VersionCounter* counter;  // owned share; of Output only
    SavedItem* next;          // of Input only: the other items that saved the same Tensor, a list that begins there
    SavedItem** before;
    uint64_t print;           // 0: not taken
    uint32_t version;
    uint32_t output;
    Kind kind;
    Reading reading;
};

struct SavedArrays {
    uint32_t count;
    uint32_t for_forward;     // visible during forward and jvp only
    SavedItem items[1];
};

// Checks `args` (arrays, Tensors, None) and keeps them as Other; `who` is for messages. Null with the error set.
SavedArrays* saved_new(PyObject* const* args, Py_ssize_t n, const char* who);
// `n` items that are None.
SavedArrays* saved_blank(uint32_t n);
void saved_free(SavedArrays* saved);
int saved_traverse(SavedArrays* saved, visitproc visit, void* arg);

// The items that saved `from` have saved `to` instead, which has become what that was.
void saved_move(TensorObject* from, TensorObject* to);

// Turns an item into one of its other kinds, when the call is over.
void saved_set_input(SavedItem& item, TensorObject* input, npy_intp bytes_of_results);
// `fresh`: nobody else has its array.
int saved_set_output(SavedItem& item, TensorObject* output, uint32_t index, bool fresh = false);
void saved_finish(SavedItem& item, npy_intp bytes_of_results);

// What the user asked back: arrays, or while recording Tensors with their history. A tuple, or null with the error set.
PyObject* saved_unpack(GradNode* node);

// One of it. Empty with the error set, also if what was saved is freed.
Ref saved_item_new(GradNode* node, uint32_t index);

PYOP_COLD void second_time_error(GradNode* node);

}  // namespace pyop

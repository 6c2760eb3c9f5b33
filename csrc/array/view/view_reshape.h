// array/view/view_reshape.h: another shape for the same elements, without moving them where that can be.
#pragma once

#include "array/view/view_recipe.h"

namespace pyop {

// ViewOp::apply for Reshape, Expand and Ravel. Sets out.ndim and out.dims whenever the shapes agree.
ViewOp::Made apply_reshape(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes);

}  // namespace pyop

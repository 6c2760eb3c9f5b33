// array/view/view_recipe.cpp: apply each kind of view function to shape and strides.
#include "array/view/view_recipe.h"

#include <algorithm>

#include "array/view/view_reshape.h"

namespace pyop {

void ArrayView::show(PyArrayObject* a) {
    data = PyArray_BYTES(a);
    descr = PyArray_DESCR(a);
    itemsize = PyArray_ITEMSIZE(a);
    ndim = PyArray_NDIM(a);
    writeable = PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE;
    const npy_intp *d = PyArray_DIMS(a), *s = PyArray_STRIDES(a);
    for (int i = 0; i < ndim; ++i) {
        dims[i] = d[i];
        strides[i] = s[i];
    }
}

npy_intp ArrayView::size() const {
    npy_intp n = 1;
    for (int i = 0; i < ndim; ++i) n *= dims[i];
    return n;
}

bool ArrayView::contiguous(bool fortran) const {
    npy_intp expected = itemsize;
    bool in_order = true;
    for (int k = 0; k < ndim; ++k) {
        const int i = fortran ? k : ndim - 1 - k;
        if (dims[i] == 0) return true;
        if (dims[i] == 1) continue;
        in_order = in_order && strides[i] == expected;
        expected *= dims[i];
    }
    return in_order;
}

PyObject* ArrayView::array_new(PyObject* owner) const {
    Py_INCREF(descr);
    PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, const_cast<npy_intp*>(dims), strides, data,
                                          writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr);
    if (view && PyArray_SetBaseObject(as_array(view), Py_NewRef(owner)) < 0) Py_CLEAR(view);
    return view;
}

namespace {

using Made = ViewOp::Made;

void copy_head(const ArrayView& in, ArrayView& out) {
    out.data = in.data;
    out.descr = in.descr;
    out.itemsize = in.itemsize;
    out.writeable = in.writeable;
}

void add_axis(ArrayView& out, npy_intp size, npy_intp stride) {
    out.dims[out.ndim] = size;
    out.strides[out.ndim] = stride;
    ++out.ndim;
}

void add_slice(const AxisItem& item, const ArrayView& in, ArrayView& out, const npy_intp* sizes) {
    npy_intp step = item.step;
    Py_ssize_t start = item.has_start ? item.start.get(sizes) : (step < 0 ? PY_SSIZE_T_MAX : 0);
    Py_ssize_t stop = item.has_stop ? item.stop.get(sizes) : (step < 0 ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX);
    const npy_intp count = PySlice_AdjustIndices(in.dims[item.axis], &start, &stop, step);
    if (count <= 0) {  // an empty axis starts where the whole one does
        add_axis(out, 0, in.strides[item.axis]);
        return;
    }
    out.data += in.strides[item.axis] * start;
    add_axis(out, count, in.strides[item.axis] * step);
}

bool add_part(const AxisItem& item, const ArrayView& in, ArrayView& out) {
    const npy_intp size = in.dims[item.axis], each = size / item.parts, longer = size % item.parts;
    if (item.even && longer) return false;
    const npy_intp start = item.part * each + std::min(item.part, longer);
    const npy_intp count = each + (item.part < longer);
    if (count) out.data += in.strides[item.axis] * start;
    add_axis(out, count, in.strides[item.axis]);
    return true;
}

void add_diagonal(const AxisItem& item, const ArrayView& in, ArrayView& out, npy_intp offset) {
    npy_intp rows = in.dims[item.axis], columns = in.dims[item.axis2];
    const npy_intp along = offset >= 0 ? in.strides[item.axis2] : in.strides[item.axis];
    const npy_intp by = offset >= 0 ? offset : -offset;
    (offset >= 0 ? columns : rows) -= by;
    const npy_intp count = std::min(rows, columns);
    if (count >= 0) out.data += by * along;
    add_axis(out, std::max<npy_intp>(count, 0), in.strides[item.axis] + in.strides[item.axis2]);
}

Made apply_axes(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes) {
    if (op.count >= 0 && in.dims[op.count_axis] != op.count) return Made::No;
    copy_head(in, out);
    if (op.read_only) out.writeable = false;
    out.ndim = 0;
    for (const AxisItem& item : op.items) {
        switch (item.kind) {
            case AxisItem::Keep:
                add_axis(out, in.dims[item.axis], in.strides[item.axis]);
                break;
            case AxisItem::New:
                add_axis(out, 1, 0);
                break;
            case AxisItem::At: {
                npy_intp at = item.start.get(sizes);
                if (at < 0) at += in.dims[item.axis];
                if (at < 0 || at >= in.dims[item.axis]) return Made::No;
                out.data += at * in.strides[item.axis];
                break;
            }
            case AxisItem::Slice:
                add_slice(item, in, out, sizes);
                break;
            case AxisItem::One:
                if (in.dims[item.axis] != 1) return Made::No;
                break;
            case AxisItem::Part:
                if (!add_part(item, in, out)) return Made::No;
                break;
            case AxisItem::Diagonal:
                add_diagonal(item, in, out, item.start.get(sizes));
                break;
            case AxisItem::Places: {
                const npy_intp window = item.start.get(sizes);
                if (window < 0 || window > in.dims[item.axis]) return Made::No;
                add_axis(out, in.dims[item.axis] - window + 1, in.strides[item.axis]);
                break;
            }
            case AxisItem::Window:
                add_axis(out, item.start.get(sizes), in.strides[item.axis]);
                break;
        }
    }
    return Made::View;
}

Made apply_squeeze(const ArrayView& in, ArrayView& out) {
    copy_head(in, out);
    out.ndim = 0;
    for (int i = 0; i < in.ndim; ++i)
        if (in.dims[i] != 1) add_axis(out, in.dims[i], in.strides[i]);
    return out.ndim == in.ndim ? Made::Same : Made::View;
}

Made apply_broadcast(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes) {
    const int ndim = static_cast<int>(op.shape.size()), added = ndim - in.ndim;
    if (added < 0) return Made::No;
    copy_head(in, out);
    out.writeable = false;
    out.ndim = ndim;
    npy_intp total = 1;
    for (int d = 0; d < ndim; ++d) {
        const npy_intp size = out.dims[d] = op.shape[static_cast<size_t>(d)].get(sizes);
        if (size < 0 || __builtin_mul_overflow(total, size, &total)) return Made::No;
        const npy_intp have = d < added ? 1 : in.dims[d - added];
        if (have != size && have != 1) return Made::No;
        out.strides[d] = have == 1 ? 0 : in.strides[d - added];
    }
    return Made::View;
}

Made apply_part_of_complex(const ViewOp& op, const ArrayView& in, ArrayView& out) {
    if (!PyTypeNum_ISCOMPLEX(in.descr->type_num)) {
        // Of real numbers the imaginary part is new memory; of objects each is asked.
        return op.kind == ViewOp::Real &&
                       (PyTypeNum_ISNUMBER(in.descr->type_num) || PyTypeNum_ISBOOL(in.descr->type_num))
                   ? Made::Same
                   : Made::No;
    }
    if (PyDataType_ISBYTESWAPPED(in.descr)) return Made::No;
    copy_head(in, out);
    const int part = in.descr->type_num == NPY_CFLOAT    ? NPY_FLOAT
                     : in.descr->type_num == NPY_CDOUBLE ? NPY_DOUBLE
                                                         : NPY_LONGDOUBLE;
    static PyArray_Descr* parts[NPY_NTYPES_LEGACY] = {};  // builtin dtypes live for ever
    if (!parts[part]) parts[part] = PyArray_DescrFromType(part);
    out.descr = parts[part];
    out.itemsize = in.itemsize / 2;
    if (op.kind == ViewOp::Imag) out.data += out.itemsize;
    out.ndim = in.ndim;
    std::copy_n(in.dims, in.ndim, out.dims);
    std::copy_n(in.strides, in.ndim, out.strides);
    return Made::View;
}

}  // namespace

ViewOp::Made ViewOp::apply(const ArrayView& in, ArrayView& out, const npy_intp* sizes) const {
    switch (kind) {
        case Axes:
            return apply_axes(*this, in, out, sizes);
        case Reshape:
        case Expand:
        case Ravel:
            return apply_reshape(*this, in, out, sizes);
        case Squeeze:
            return apply_squeeze(in, out);
        case Broadcast:
            return apply_broadcast(*this, in, out, sizes);
        case Real:
        case Imag:
            return apply_part_of_complex(*this, in, out);
        case Same:
            return Made::Same;
    }
    return Made::No;
}

bool ViewRecipe::apply(const ArrayView& base, ArrayView& out, const npy_intp* sizes) const {
    if (base.ndim != ndim || copies_item) return false;
    ArrayView other;
    const ArrayView* now = &base;
    for (const ViewOp& op : ops) {
        ArrayView* next = now == &out ? &other : &out;
        const ViewOp::Made made = op.apply(*now, *next, sizes);
        if (made == ViewOp::Made::View)
            now = next;
        else if (made != ViewOp::Made::Same)
            return false;
    }
    if (now == &out) return true;
    copy_head(*now, out);
    out.ndim = now->ndim;
    std::copy_n(now->dims, now->ndim, out.dims);
    std::copy_n(now->strides, now->ndim, out.strides);
    return true;
}

}  // namespace pyop

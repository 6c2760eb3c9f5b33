// plan/steps/view_reading.cpp: define a reader for each view function of NumPy, and the table of them.
#include "plan/steps/view_reading.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/view_arguments.h"

namespace pyop {

namespace {

// What a reader is told, and what it fills.
struct Reading {
    std::vector<NodeArgument> arguments;  // the array is the first
    int ndim;                             // of the array
    uint32_t n_results;
    const TreeCallObject::Layout* sizes;  // symbolic ones; may be null
    std::vector<ViewRecipe>& recipes;

    const NodeArgument& operator[](size_t k) const { return arguments[k]; }
    PyObject* value(size_t k) const { return arguments[k].value; }
    bool add(ViewOp op, bool copies_item = false) {
        recipes.push_back({ndim, {std::move(op)}, copies_item});
        return true;
    }
};

AxisItem keep(int axis) { return {AxisItem::Keep, static_cast<uint8_t>(axis)}; }
AxisItem reversed(int axis) {
    AxisItem item{AxisItem::Slice, static_cast<uint8_t>(axis)};
    item.step = -1;
    return item;
}
std::vector<AxisItem> keep_all(int ndim) {
    std::vector<AxisItem> items;
    for (int i = 0; i < ndim; ++i) items.push_back(keep(i));
    return items;
}
ViewOp axes_op(std::vector<AxisItem> items) {
    ViewOp op{ViewOp::Axes};
    op.items = std::move(items);
    return op;
}
ViewOp permutation(const std::vector<int>& order) {
    ViewOp op{ViewOp::Axes};
    for (const int axis : order) op.items.push_back(keep(axis));
    return op;
}
std::vector<int> counting(int ndim) {
    std::vector<int> order;
    for (int i = 0; i < ndim; ++i) order.push_back(i);
    return order;
}

bool read_order(const NodeArgument& argument, bool& fortran) {
    fortran = false;
    if (!argument.given()) return true;
    if (!argument.value || !PyUnicode_CheckExact(argument.value)) return false;
    fortran = PyUnicode_CompareWithASCIIString(argument.value, "F") == 0;
    return fortran || PyUnicode_CompareWithASCIIString(argument.value, "C") == 0;
}

bool reshape(Reading& r) {  // a, shape, order, newshape, copy
    const NodeArgument& shape = r[1].given() ? r[1] : r[3];
    ViewOp op{ViewOp::Reshape};
    return shape.value && r[4].none() && read_order(r[2], op.fortran) && read_shape(shape.value, r.sizes, op.shape) &&
           r.add(std::move(op));
}

bool ravel(Reading& r) {  // a, order
    bool fortran;
    return read_order(r[1], fortran) && !fortran && r.add({ViewOp::Ravel});
}

bool transpose(Reading& r) {  // a, axes
    std::vector<int> order;
    if (r[1].none()) {
        order = counting(r.ndim);
        std::reverse(order.begin(), order.end());
    } else if (!r.value(1) || !read_axes(r.value(1), r.ndim, order) || order.size() != static_cast<size_t>(r.ndim)) {
        return false;
    }
    return r.add(permutation(order));
}

bool matrix_transpose(Reading& r) {  // x
    if (r.ndim < 2) return false;
    std::vector<int> order = counting(r.ndim);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return r.add(permutation(order));
}

bool swapaxes(Reading& r) {  // a, axis1, axis2
    int first, second;
    if (!r.value(1) || !r.value(2) || !read_axis(r.value(1), r.ndim, first) || !read_axis(r.value(2), r.ndim, second))
        return false;
    std::vector<int> order = counting(r.ndim);
    std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
    return r.add(permutation(order));
}

bool moveaxis(Reading& r) {  // a, source, destination
    std::vector<int> from, to;
    if (!r.value(1) || !r.value(2) || !read_axes(r.value(1), r.ndim, from) || !read_axes(r.value(2), r.ndim, to) ||
        from.size() != to.size())
        return false;
    std::vector<std::pair<int, int>> moves;
    for (size_t k = 0; k < from.size(); ++k) moves.emplace_back(to[k], from[k]);
    std::sort(moves.begin(), moves.end());
    std::vector<int> order;
    for (int i = 0; i < r.ndim; ++i)
        if (std::find(from.begin(), from.end(), i) == from.end()) order.push_back(i);
    for (const auto& [place, axis] : moves) order.insert(order.begin() + place, axis);
    return r.add(permutation(order));
}

bool rollaxis(Reading& r) {  // a, axis, start
    int axis;
    npy_intp start = 0;
    if (!r.value(1) || !read_axis(r.value(1), r.ndim, axis)) return false;
    if (r[2].given() && (!r.value(2) || !read_int(r.value(2), start))) return false;
    if (start < 0) start += r.ndim;
    if (start < 0 || start > r.ndim) return false;
    if (axis < start) --start;
    std::vector<int> order = counting(r.ndim);
    order.erase(order.begin() + axis);
    order.insert(order.begin() + start, axis);
    return r.add(permutation(order));
}

bool expand_dims(Reading& r) {  // a, axis
    if (!r.value(1)) return false;
    const Py_ssize_t added =
        PyTuple_CheckExact(r.value(1)) || PyList_CheckExact(r.value(1)) ? PySequence_Fast_GET_SIZE(r.value(1)) : 1;
    std::vector<int> axes;
    if (r.ndim + added > NPY_MAXDIMS || !read_axes(r.value(1), r.ndim + static_cast<int>(added), axes)) return false;
    std::sort(axes.begin(), axes.end());
    ViewOp op{ViewOp::Expand};
    op.axes.assign(axes.begin(), axes.end());
    return r.add(std::move(op));
}

bool squeeze(Reading& r) {  // a, axis
    if (r[1].none()) return r.add({ViewOp::Squeeze});
    std::vector<int> axes;
    if (!r.value(1) || !read_axes(r.value(1), r.ndim, axes)) return false;
    if (axes.empty()) return r.add({ViewOp::Same});
    std::vector<AxisItem> items = keep_all(r.ndim);
    for (const int axis : axes) items[static_cast<size_t>(axis)].kind = AxisItem::One;
    return r.add(axes_op(std::move(items)));
}

bool flip_axes(Reading& r, const std::vector<int>& axes) {
    std::vector<AxisItem> items = keep_all(r.ndim);
    for (const int axis : axes) items[static_cast<size_t>(axis)] = reversed(axis);
    return r.add(axes_op(std::move(items)));
}
bool flip(Reading& r) {  // m, axis
    std::vector<int> axes;
    if (r.ndim == 0) return false;  // a number, not an array
    if (r[1].none()) return flip_axes(r, counting(r.ndim));
    return r.value(1) && read_axes(r.value(1), r.ndim, axes) && flip_axes(r, axes);
}
bool fliplr(Reading& r) { return r.ndim >= 2 && flip_axes(r, {1}); }
bool flipud(Reading& r) { return r.ndim >= 1 && flip_axes(r, {0}); }

bool rot90(Reading& r) {  // m, k, axes
    npy_intp turns = 1;
    std::vector<int> axes{0, 1};
    if (r[1].given() && (!r.value(1) || !read_int(r.value(1), turns))) return false;
    if (r[2].given()) {
        axes.clear();
        if (!r.value(2) || !read_axes(r.value(2), r.ndim, axes)) return false;
    }
    if (r.ndim < 2 || axes.size() != 2) return false;
    turns &= 3;
    std::vector<AxisItem> items = keep_all(r.ndim);
    const auto first = static_cast<size_t>(axes[0]), second = static_cast<size_t>(axes[1]);
    if (turns == 1 || turns == 2) items[second] = reversed(axes[1]);
    if (turns == 3 || turns == 2) items[first] = reversed(axes[0]);
    if (turns & 1) std::swap(items[first], items[second]);
    return r.add(axes_op(std::move(items)));
}

bool broadcast_to(Reading& r) {  // array, shape, subok
    ViewOp op{ViewOp::Broadcast};
    return r.value(1) && read_shape(r.value(1), r.sizes, op.shape) && r.add(std::move(op));
}

bool diagonal_of(Reading& r, const NodeArgument& offset, int first, int second) {
    ViewOp op{ViewOp::Axes};
    op.read_only = true;
    AxisItem diagonal{AxisItem::Diagonal, static_cast<uint8_t>(first), static_cast<uint8_t>(second)};
    if (offset.given() && (!offset.value || !read_int(offset.value, diagonal.start.value))) return false;
    // Nothing has a diagonal that far out; and its negative is a number.
    if (diagonal.start.value < -NPY_MAX_INT32 || diagonal.start.value > NPY_MAX_INT32) return false;
    for (int i = 0; i < r.ndim; ++i)
        if (i != first && i != second) op.items.push_back(keep(i));
    op.items.push_back(diagonal);
    return first != second && r.add(std::move(op));
}
bool diagonal(Reading& r) {  // a, offset, axis1, axis2
    int first = 0, second = 1;
    if (r.ndim < 2 || (r[2].given() && (!r.value(2) || !read_axis(r.value(2), r.ndim, first))) ||
        (r[3].given() && (!r.value(3) || !read_axis(r.value(3), r.ndim, second))))
        return false;
    return diagonal_of(r, r[1], first, second);
}
bool stacked_diagonal(Reading& r) {  // x, offset
    return r.ndim >= 2 && diagonal_of(r, r[1], r.ndim - 2, r.ndim - 1);
}

bool real(Reading& r) { return r.add({ViewOp::Real}); }
bool imag(Reading& r) { return r.add({ViewOp::Imag}); }

// NumPy reshapes numbers and indexes the others, which shows in the strides of the new axes.
bool atleast(Reading& r, int least) {
    if (r.ndim >= least) return r.add({ViewOp::Same});
    if (r.ndim == 0) {
        ViewOp op{ViewOp::Reshape};
        op.shape.resize(static_cast<size_t>(least), {1});
        return r.add(std::move(op));
    }
    std::vector<AxisItem> items = keep_all(r.ndim);
    if (r.ndim == 1) items.insert(items.begin(), {AxisItem::New});
    if (least == 3) items.push_back({AxisItem::New});
    return r.add(axes_op(std::move(items)));
}
bool atleast_1d(Reading& r) { return atleast(r, 1); }
bool atleast_2d(Reading& r) { return atleast(r, 2); }
bool atleast_3d(Reading& r) { return atleast(r, 3); }

bool split_along(Reading& r, PyObject* sections, int axis, bool even) {
    npy_intp count;
    if (read_int(sections, count)) {
        if (count <= 0 || count != r.n_results) return false;
        for (npy_intp k = 0; k < count; ++k) {
            std::vector<AxisItem> items = keep_all(r.ndim);
            AxisItem& item = items[static_cast<size_t>(axis)];
            item.kind = AxisItem::Part;
            item.part = k;
            item.parts = count;
            item.even = even;
            r.add(axes_op(std::move(items)));
        }
        return true;
    }
    std::vector<ViewSize> cuts;
    if (!read_shape(sections, r.sizes, cuts) || cuts.size() + 1 != r.n_results) return false;
    for (size_t k = 0; k <= cuts.size(); ++k) {
        std::vector<AxisItem> items = keep_all(r.ndim);
        AxisItem& item = items[static_cast<size_t>(axis)];
        item.kind = AxisItem::Slice;
        item.has_start = k > 0;
        item.has_stop = k < cuts.size();
        if (item.has_start) item.start = cuts[k - 1];
        if (item.has_stop) item.stop = cuts[k];
        r.add(axes_op(std::move(items)));
    }
    return true;
}
bool split_with(Reading& r, bool even) {  // ary, indices_or_sections, axis
    int axis = 0;
    if (!r.value(1) || r.ndim == 0 || (r[2].given() && (!r.value(2) || !read_axis(r.value(2), r.ndim, axis))))
        return false;
    return split_along(r, r.value(1), axis, even);
}
bool split(Reading& r) { return split_with(r, true); }
bool array_split(Reading& r) { return split_with(r, false); }
bool hsplit(Reading& r) { return r.ndim >= 1 && r.value(1) && split_along(r, r.value(1), r.ndim > 1, true); }
bool vsplit(Reading& r) { return r.ndim >= 2 && r.value(1) && split_along(r, r.value(1), 0, true); }
bool dsplit(Reading& r) { return r.ndim >= 3 && r.value(1) && split_along(r, r.value(1), 2, true); }

bool unstack(Reading& r) {  // x, axis
    int axis = 0;
    if (r.ndim == 0 || (r[1].given() && (!r.value(1) || !read_axis(r.value(1), r.ndim, axis)))) return false;
    for (uint32_t k = 0; k < r.n_results; ++k) {
        ViewOp op = axes_op(keep_all(r.ndim));
        op.items[static_cast<size_t>(axis)].kind = AxisItem::At;
        op.items[static_cast<size_t>(axis)].start.value = k;
        op.count = static_cast<int>(r.n_results);
        op.count_axis = axis;
        r.add(std::move(op), r.ndim == 1);
    }
    return true;
}

bool sliding_window_view(Reading& r) {  // x, window_shape, axis, subok, writeable
    std::vector<ViewSize> window;
    std::vector<int> axes;
    if (!r.value(1) || !read_shape(r.value(1), r.sizes, window) || (r[4].given() && r.value(4) != Py_False))
        return false;
    if (r[2].none())
        axes = counting(r.ndim);
    else if (!r.value(2) || !read_axes(r.value(2), r.ndim, axes))
        return false;
    if (axes.size() != window.size() || r.ndim + window.size() > NPY_MAXDIMS) return false;
    ViewOp op = axes_op(keep_all(r.ndim));
    op.read_only = true;
    for (size_t k = 0; k < axes.size(); ++k) {
        AxisItem& places = op.items[static_cast<size_t>(axes[k])];
        places.kind = AxisItem::Places;
        places.start = window[k];
        AxisItem shown = places;
        shown.kind = AxisItem::Window;
        op.items.push_back(shown);
    }
    return r.add(std::move(op));
}

bool read_bound(PyObject* o, const Reading& r, bool& given, ViewSize& bound) {
    given = o != Py_None;
    return !given || read_size(o, r.sizes, bound);
}
bool read_index(PyObject* o, const Reading& r, int axis, AxisItem& item) {
    item.axis = static_cast<uint8_t>(axis);
    if (PySlice_Check(o)) {
        auto* s = reinterpret_cast<PySliceObject*>(o);
        item.kind = AxisItem::Slice;
        if (s->step != Py_None && (!read_int(s->step, item.step) || item.step == 0 || item.step < -NPY_MAX_INTP))
            return false;
        return read_bound(s->start, r, item.has_start, item.start) && read_bound(s->stop, r, item.has_stop, item.stop);
    }
    item.kind = AxisItem::At;
    return read_size(o, r.sizes, item.start);
}
bool getitem(Reading& r) {  // a, key
    PyObject* key = r.value(1);
    if (!key) return false;
    PyObject* const* keys = PyTuple_CheckExact(key) ? &PyTuple_GET_ITEM(key, 0) : &key;
    const Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    int used = 0, n_new = 0;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (keys[i] == Py_Ellipsis && ellipsis) return false;
        ellipsis |= keys[i] == Py_Ellipsis;
        n_new += keys[i] == Py_None;
        used += keys[i] != Py_Ellipsis && keys[i] != Py_None;
    }
    if (used > r.ndim || r.ndim + n_new > NPY_MAXDIMS) return false;
    ViewOp op{ViewOp::Axes};
    int axis = 0;
    const auto keep_rest = [&] {
        for (int rest = r.ndim - used; rest > 0; --rest) op.items.push_back(keep(axis++));
    };
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (keys[i] == Py_Ellipsis)
            keep_rest();
        else if (keys[i] == Py_None)
            op.items.push_back({AxisItem::New});
        else if (!read_index(keys[i], r, axis++, op.items.emplace_back()))
            return false;
    }
    if (!ellipsis) keep_rest();
    const bool number = !ellipsis && std::all_of(op.items.begin(), op.items.end(),
                                                 [](const AxisItem& item) { return item.kind == AxisItem::At; });
    return r.add(std::move(op), number);
}

struct ViewFunction {
    const char* path;  // below numpy; or a function of the module operator
    std::initializer_list<std::string_view> parameters;
    bool (*read)(Reading&);
};
const ViewFunction kViewFunctions[] = {
    {"reshape", {"a", "shape", "order", "newshape", "copy"}, reshape},
    {"ravel", {"a", "order"}, ravel},
    {"transpose", {"a", "axes"}, transpose},
    {"permute_dims", {"a", "axes"}, transpose},
    {"matrix_transpose", {"x"}, matrix_transpose},
    {"linalg.matrix_transpose", {"x"}, matrix_transpose},
    {"swapaxes", {"a", "axis1", "axis2"}, swapaxes},
    {"moveaxis", {"a", "source", "destination"}, moveaxis},
    {"rollaxis", {"a", "axis", "start"}, rollaxis},
    {"expand_dims", {"a", "axis"}, expand_dims},
    {"squeeze", {"a", "axis"}, squeeze},
    {"flip", {"m", "axis"}, flip},
    {"fliplr", {"m"}, fliplr},
    {"flipud", {"m"}, flipud},
    {"rot90", {"m", "k", "axes"}, rot90},
    {"broadcast_to", {"array", "shape", "subok"}, broadcast_to},
    {"diagonal", {"a", "offset", "axis1", "axis2"}, diagonal},
    {"linalg.diagonal", {"x", "offset"}, stacked_diagonal},
    {"real", {"val"}, real},
    {"imag", {"val"}, imag},
    {"atleast_1d", {"array"}, atleast_1d},
    {"atleast_2d", {"array"}, atleast_2d},
    {"atleast_3d", {"array"}, atleast_3d},
    {"split", {"ary", "indices_or_sections", "axis"}, split},
    {"array_split", {"ary", "indices_or_sections", "axis"}, array_split},
    {"hsplit", {"ary", "indices_or_sections"}, hsplit},
    {"vsplit", {"ary", "indices_or_sections"}, vsplit},
    {"dsplit", {"ary", "indices_or_sections"}, dsplit},
    {"unstack", {"x", "axis"}, unstack},
    {"lib.stride_tricks.sliding_window_view", {"x", "window_shape", "axis", "subok", "writeable"}, sliding_window_view},
    {"operator.getitem", {"a", "b"}, getitem},
};

// The object of a dotted path below numpy, or of the module operator; empty where the installed NumPy has none.
Ref find(const char* path) {
    constexpr std::string_view kOperator = "operator.";
    if (!std::string_view(path).starts_with(kOperator)) return Ref::steal(find_below_numpy(path));
    Ref module = Ref::steal(PyImport_ImportModule("operator"));
    Ref found = module ? Ref::steal(PyObject_GetAttrString(module.get(), path + kOperator.size())) : Ref();
    if (!found) PyErr_Clear();
    return found;
}

using ViewFunctions = std::unordered_map<PyObject*, const ViewFunction*>;
// Found once, and kept for ever: nodes name their functions by identity. Not a static with an initialiser, whose lock
// would be held while Python runs.
ViewFunctions* views_found = nullptr;
const ViewFunctions& view_functions() {
    if (!views_found) {
        auto made = std::make_unique<ViewFunctions>();
        for (const ViewFunction& f : kViewFunctions)
            if (Ref object = find(f.path)) made->emplace(object.release(), &f);
        if (!views_found) views_found = made.release();
    }
    return *views_found;
}

}  // namespace

bool makes_view(const Rewrite& r, uint32_t i) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (node.contract() || node.stateful() || node.lends() || node.n_outputs() == 0) return false;
    return view_functions().count(NodeCall::function_of(node));
}

bool read_view(const Rewrite& r, uint32_t i, ViewCall& view) {
    if (!makes_view(r, i)) return false;
    const PyNode& node = r.g.node_as<PyNode>(i);
    const NodeCall call(node);
    const ViewFunction& function = *view_functions().at(call.fn());
    Reading reading{{}, 0, node.n_outputs(), call.layout(), view.recipes};
    if (!call.bind(function.parameters, reading.arguments) || reading[0].input < 0) return false;
    // Nothing but the array may be computed.
    for (size_t k = 1; k < reading.arguments.size(); ++k)
        if (reading[k].computed()) return false;
    view.input = static_cast<uint32_t>(reading[0].input);
    view.sizes = call.layout();
    reading.ndim = r.g.spec(node.inputs()[view.input]).ndim;
    return reading.ndim >= 0 && function.read(reading) && view.recipes.size() == node.n_outputs();
}

bool read_key(PyObject* key, int ndim, const TreeCallObject::Layout* sizes, ViewRecipe& recipe) {
    std::vector<ViewRecipe> recipes;
    Reading reading{{}, ndim, 1, sizes, recipes};
    reading.arguments.resize(2);
    reading.arguments[1].value = key;
    if (!getitem(reading)) return false;
    recipe = std::move(recipes.front());
    recipe.copies_item = false;
    return true;
}

}  // namespace pyop

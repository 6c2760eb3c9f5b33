// plan/passes/casts.cpp: find conversions and copies whose absence nobody could see.
#include "plan/passes/casts.h"

#include "array/loop/strided_loop.h"
#include "plan/steps/call_arguments.h"
#include "plan/steps/node_call.h"
#include "plan/steps/view_reading.h"

namespace pyop {

namespace {

// Functions other than ufuncs whose results share no memory with their arguments.
constexpr Named<bool> kFresh[] = {
    {"sum", true},          {"prod", true},
    {"mean", true},         {"std", true},
    {"var", true},          {"max", true},
    {"min", true},          {"amax", true},
    {"amin", true},         {"any", true},
    {"all", true},          {"argmax", true},
    {"argmin", true},       {"cumsum", true},
    {"cumprod", true},      {"dot", true},
    {"outer", true},        {"where", true},
    {"copy", true},         {"concatenate", true},
    {"stack", true},        {"ndarray.astype", true},
    {"linalg.solve", true}, {"linalg.inv", true},
    {"linalg.norm", true},
};
constexpr Named<bool> kCopies[] = {{"ndarray.astype", true}, {"copy", false}};  // whether it converts

bool makes_fresh(const PyNode& node) {
    PyObject* fn = NodeCall::function_of(node);
    return is_plain_call(node) && (is_ufunc(fn) || function_table<kFresh>().find(fn));
}

bool executed(const Rewrite& r, uint32_t i) {
    return r.live[i] && r.same_as[i] == i && r.g.node(i).kind() == NodeKind::Py;
}

// Whether the memory of a node's results may be seen by the caller or by a function of his. By node.
Flags seen(const Rewrite& r) {
    Flags seen(r.n_nodes);
    for (const Edge e : r.request.fetches) seen[r.resolve(e).node] = true;
    for (uint32_t i = r.n_nodes; i-- > 0;) {
        if (!executed(r, i) || makes_fresh(r.g.node_as<PyNode>(i))) continue;
        if (!seen[i] && makes_view(r, i)) continue;
        for (const Edge e : r.g.node(i).inputs()) seen[r.resolve(e).node] = true;
    }
    return seen;
}

// A call that copies an array, converted or as it is.
struct CopyCall {
    Edge source;
    PyArray_Descr* dtype = nullptr;  // of the result
    bool converts;
    bool c_order = false;            // the copy lies in C order whatever the array does
};

bool read_copy(const Rewrite& r, uint32_t i, CopyCall& call) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (node.inputs().size() != 1 || !is_plain_call(node) || r.node_is_fed[i]) return false;
    const Named<bool>* const copy = function_table<kCopies>().find(node.fn());
    if (!copy) return false;
    static constexpr std::string_view kAstype[] = {"a", "dtype", "order", "casting", "subok", "copy"};
    static constexpr std::string_view kCopy[] = {"a", "order", "subok"};
    CallArguments arguments;
    call.converts = copy->entry;
    if (!arguments.bind(node, call.converts ? std::span<const std::string_view>(kAstype) : kCopy)) return false;
    if (arguments[0].input != 0) return false;
    PyObject* order = arguments[call.converts ? 2 : 1].fixed;
    const auto is_order = [&](const char* text) {
        return order && PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, text) == 0;
    };
    call.c_order = is_order("C") && !call.converts;
    if (!is_order("K") && !call.c_order && !(order == nullptr && !call.converts)) return false;
    call.source = r.resolve(node.inputs()[0]);
    const ValueSpec& spec = r.g.spec({i, 0});
    call.dtype = builtin_dtype(r.g, {i, 0});
    // A single element may be a scalar of NumPy, which converting turns into an array.
    return call.dtype && spec.ndim > 0;
}

// Whether converting there and back gives the same elements, without a warning. Safe for NumPy are also long integers
// as floats.
bool exact(PyArray_Descr* from, PyArray_Descr* to) {
    if (!PyArray_CanCastTypeTo(from, to, NPY_SAFE_CASTING)) return false;
    if (PyTypeNum_ISINTEGER(from->type_num) && !PyTypeNum_ISINTEGER(to->type_num) && PyDataType_ELSIZE(from) > 4)
        return false;
    return PyTypeNum_ISCOMPLEX(from->type_num) || !PyTypeNum_ISCOMPLEX(to->type_num);
}

// Computed element by element: in memory without gaps, and in an order that a copy keeps.
bool lies_like_a_copy(const Rewrite& r, Edge e) {
    if (r.is_fed(e) || e.output != 0 || r.g.node(e.node).kind() != NodeKind::Py) return false;
    const PyNode& node = r.g.node_as<PyNode>(e.node);
    const Named<bool>* const copy = function_table<kCopies>().find(node.fn());
    return is_plain_call(node) && !node.of_scalars() && (is_elementwise_ufunc(node.fn()) || (copy && copy->entry));
}

// What a conversion can be left out for.
bool find_source(const Rewrite& r, uint32_t i, Edge& source) {
    CopyCall call;
    if (!read_copy(r, i, call) || !call.converts) return false;
    PyArray_Descr* middle = builtin_dtype(r.g, call.source);
    source = call.source;
    if (!middle || r.is_fed(source)) return false;
    if (middle == call.dtype) return lies_like_a_copy(r, source);
    CopyCall before;
    if (r.g.node(source.node).kind() != NodeKind::Py || !read_copy(r, source.node, before) || !before.converts)
        return false;
    source = before.source;
    PyArray_Descr* first = builtin_dtype(r.g, source);
    return first == call.dtype && exact(first, middle) && lies_like_a_copy(r, source);
}

class SameArray final : public NativeStep {
  public:
    SameArray(Fallback fallback, bool c_order) : NativeStep(std::move(fallback)), c_order_(c_order) {}
    int run(PyObject* const* inputs, PyObject** results, const StepContext&) const override {
        if (!is_exact_array(inputs[0])) return 0;
        const int flags = PyArray_FLAGS(as_array(inputs[0]));
        const int orders = NPY_ARRAY_C_CONTIGUOUS | (c_order_ ? 0 : NPY_ARRAY_F_CONTIGUOUS);
        if (!(flags & NPY_ARRAY_ALIGNED) || !(flags & orders)) return 0;
        results[0] = Py_NewRef(inputs[0]);
        return 1;
    }
    std::string describe(size_t) const override { return "the array as it is, if it lies in one piece"; }

  private:
    bool c_order_;
};

}  // namespace

void leave_out_casts(Rewrite& r) {
    std::vector<uint32_t> copies_found;
    for (uint32_t i = 0; i < r.n_nodes; ++i)
        if (executed(r, i) && function_table<kCopies>().find(r.g.node_as<PyNode>(i).fn())) copies_found.push_back(i);
    if (copies_found.empty()) return;
    const Flags is_seen = seen(r);
    for (const uint32_t i : copies_found) {
        Edge source;
        if (is_seen[i] || !find_source(r, i, source)) continue;
        r.same_as[i] = source.node;
        r.left_out.insert(i);
    }
    if (r.left_out.empty()) return;
    for (uint32_t i = 0; i < r.n_nodes; ++i) r.same_as[i] = r.same_as[r.same_as[i]];
}

void SameArrays::find(const Rewrite& r, const std::vector<uint32_t>& schedule) {
    std::vector<uint32_t> found;
    for (const uint32_t i : schedule) {
        CopyCall call;
        if (read_copy(r, i, call) && builtin_dtype(r.g, call.source) == call.dtype) found.push_back(i);
    }
    if (found.empty()) return;
    const Flags is_seen = seen(r);
    for (const uint32_t i : found)
        if (!is_seen[i]) nodes_.insert(i);
}

std::unique_ptr<NativeStep> SameArrays::make(const Rewrite& r, uint32_t node) const {
    CopyCall call;
    read_copy(r, node, call);
    return std::make_unique<SameArray>(Fallback::of_node(r.g, node), call.c_order);
}

}  // namespace pyop

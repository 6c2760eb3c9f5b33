// plan/group/ir_builder.cpp: read the members of a group one by one, with their operands, reductions and outputs.
#include "plan/group/ir_builder.h"

#include <algorithm>
#include <cfloat>  // FLT_MIN
#include <cmath>  // std::isfinite
#include <cstring>  // std::memcmp
#include <numeric>
#include <unordered_map>

namespace pyop {

OutsideReads::OutsideReads(const Rewrite& r, const std::vector<uint32_t>& schedule, const Fusion& fusion) {
    if (fusion.group_of.empty()) return;
    edges_.reserve(schedule.size());
    const auto note = [&](Edge e, int32_t reader_group) {
        e = r.resolve(e);
        const int32_t group = fusion.group_of[e.node];
        if (group >= 0 && group != reader_group) edges_.insert(Rewrite::key(e));
    };
    for (const uint32_t i : schedule)
        for (const Edge e : r.g.node(i).inputs()) note(e, fusion.group_of[i]);
    for (const Edge e : r.request.fetches) note(e, -1);
}

IrBuilder::IrBuilder(const Rewrite& r, const Fusion& fusion, const std::vector<uint32_t>& members,
                     const OutsideReads& outside)
    : r_(r), fusion_(fusion), values_of_(members.size() + 4) {
    ir_.operations.reserve(members.size());
    ir_.values.reserve(3 * members.size());
    fallback_.nodes.reserve(members.size());
    fallback_.sources.reserve(members.size());
    for (const uint32_t node : members) {
        if (fusion.reductions[node])
            add_reduction(node, outside);
        else
            possible_ = add_member(node, outside);
        if (!possible_) return;
    }
    order_outputs();
    ir_.n_externals = externals_.size();
    ir_.n_outputs = outputs_.size();
}

bool IrBuilder::add_member(uint32_t i, const OutsideReads& outside) {
    const PyNode& node = r_.g.node_as<PyNode>(i);
    const ElementwiseCall& call = *fusion_.calls[i];
    GroupIr::Operation op;
    op.kernel = call.kernel;
    op.call = &call;
    op.does = call.operation;
    op.quiet = leaves_flags(call.operation, call.element);
    op.element = call.element;
    op.n_inputs = static_cast<uint16_t>(call.n_inputs);
    op.member = static_cast<uint16_t>(fallback_.nodes.size());
    op.does_members.push_back(op.member);
    for (size_t k = 0; k < call.n_inputs; ++k)
        if (!add_operand(node, call, k, op)) return false;

    note_sources(node);
    for (uint32_t k = 0; k < node.n_outputs(); ++k) {
        const uint16_t v = new_value({GroupIr::Value::Result, 0, call.dtypes[call.n_inputs + k]});
        ir_.values[v].producer = static_cast<int>(ir_.operations.size());
        op.operands.push_back(v);
        if (r_.is_fed({i, k})) continue;  // computed beside the others, but who reads it gets what is fed
        values_of_[{i, k}].plain = v;
        if (outside.contains({i, k})) add_output({i, k}, ir_.values[v].output);
    }
    ir_.operations.push_back(op);
    fallback_.nodes.push_back(i);
    return true;
}

void IrBuilder::add_reduction(uint32_t i, const OutsideReads& outside) {
    const PyNode& node = r_.g.node_as<PyNode>(i);
    GroupIr::Reduction reduction{fusion_.reductions[i], value_of(r_.resolve(node.inputs()[0])),
                                 static_cast<uint16_t>(fallback_.nodes.size()), GroupIr::kNoOutput};
    ++ir_.values[reduction.value].reads;
    note_sources(node);
    if (outside.contains({i, 0})) add_output({i, 0}, reduction.output);
    ir_.reductions.push_back(std::move(reduction));
    fallback_.nodes.push_back(i);
}

// Where the plain way finds the arguments of the member that is being added.
void IrBuilder::note_sources(const PyNode& node) {
    std::vector<Fallback::Source>& sources = fallback_.sources.emplace_back();
    sources.reserve(node.inputs().size());
    for (Edge e : node.inputs()) {
        e = r_.resolve(e);
        const uint16_t strict = values_of_[e].strict;
        const GroupIr::Value& value = ir_.values[strict != EdgeValues::kNone ? strict : value_of(e)];
        if (value.kind == GroupIr::Value::External)
            sources.push_back({true, value.index});
        else
            sources.push_back({false, ir_.operations[static_cast<size_t>(value.producer)].member, e.output});
    }
}

void IrBuilder::add_output(Edge e, int& output) {
    output = static_cast<int>(outputs_.size());
    outputs_.push_back(e);
    fallback_.outputs.emplace_back(fallback_.nodes.size(), e.output);
}

// In the order in which the plan hands them out: then a plan that is one group needs no frame of slots (DirectCall).
void IrBuilder::order_outputs() {
    std::unordered_map<uint64_t, size_t> place;
    for (size_t k = 0; k < r_.request.fetches.size(); ++k)
        place.emplace(Rewrite::key(r_.resolve(r_.request.fetches[k])), k);
    const auto place_of = [&](Edge e) {
        const auto found = place.find(Rewrite::key(e));
        return found == place.end() ? SIZE_MAX : found->second;
    };
    std::vector<size_t> order(outputs_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return place_of(outputs_[a]) < place_of(outputs_[b]); });
    std::vector<int> now(order.size());
    std::vector<Edge> outputs;
    auto sources = fallback_.outputs;
    for (size_t k = 0; k < order.size(); ++k) {
        now[order[k]] = static_cast<int>(k);
        outputs.push_back(outputs_[order[k]]);
        sources[k] = fallback_.outputs[order[k]];
    }
    outputs_ = std::move(outputs);
    fallback_.outputs = std::move(sources);
    const auto move = [&](int& output) {
        if (output != GroupIr::kNoOutput) output = now[static_cast<size_t>(output)];
    };
    for (GroupIr::Value& value : ir_.values) move(value.output);
    for (GroupIr::Reduction& reduction : ir_.reductions) move(reduction.output);
}

bool IrBuilder::add_operand(const PyNode& node, const ElementwiseCall& call, size_t position, GroupIr::Operation& op) {
    const Argument a = call.arguments[position];
    PyArray_Descr* want = call.dtypes[position];
    uint16_t v;
    if (a.constant) {
        v = number(a.constant, want);
        if (v == UINT16_MAX) return false;
    } else {
        const Edge e = r_.resolve(node.inputs()[static_cast<size_t>(a.input)]);
        v = r_.g.spec(e).descr() == want ? value_of(e, !call.kernel) : converted(value_of(e), want);
    }
    ++ir_.values[v].reads;
    op.operands.push_back(v);
    return true;
}

namespace {

// Whether NumPy may say of a number, in every call, that it is too large or too small for the dtype.
bool is_noticed(double x, int type) {
    if (!std::isfinite(x) || x == 0.0) return false;
    const double size = std::fabs(x);
    if (type == NPY_HALF) return size >= 65520.0 || size < 6.2e-5;
    const bool narrow = type == NPY_FLOAT || type == NPY_CFLOAT;
    return narrow && (!std::isfinite(static_cast<float>(x)) || size < static_cast<double>(FLT_MIN));
}

bool is_noticed(PyObject* number, int type) {
    if (PyComplex_Check(number)) {
        const Py_complex x = PyComplex_AsCComplex(number);
        return is_noticed(x.real, type) || is_noticed(x.imag, type);
    }
    if (!PyFloat_Check(number) && !PyLong_CheckExact(number)) return false;
    const double x = PyFloat_AsDouble(number);
    if (x != -1.0 || !PyErr_Occurred()) return is_noticed(x, type);
    PyErr_Clear();
    return true;
}

}  // namespace

// One that several operations read is one value: it will be repeated over a block.
uint16_t IrBuilder::number(PyObject* object, PyArray_Descr* want) {
    const auto find = [&](auto is_it) {
        for (size_t k = 0; k < number_values_.size(); ++k)
            if (ir_.values[number_values_[k].value].dtype == want && is_it(k)) return number_values_[k].value;
        return EdgeValues::kNone;
    };
    uint16_t same = find([&](size_t k) { return number_values_[k].object == object; });
    if (same != EdgeValues::kNone) return same;
    if (is_noticed(object, want->type_num)) return UINT16_MAX;
    Py_INCREF(want);
    Ref array = Ref::steal(PyArray_FromAny(object, want, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
    if (!array) {
        PyErr_Clear();
        return UINT16_MAX;
    }
    const auto bits = [](const Ref& of) { return PyArray_DATA(as_array(of.get())); };
    const auto itemsize = static_cast<size_t>(PyDataType_ELSIZE(want));
    same = find([&](size_t k) { return std::memcmp(bits(numbers_[k]), bits(array), itemsize) == 0; });
    if (same != EdgeValues::kNone) return same;
    numbers_.push_back(std::move(array));
    const uint16_t value = new_value({GroupIr::Value::Number, static_cast<uint16_t>(numbers_.size() - 1), want});
    ir_.values[value].single = true;
    number_values_.push_back({object, value});
    return value;
}

// An external that both kernels and NumPy's loops read is two: kernels want its elements side by side.
uint16_t IrBuilder::value_of(Edge e, bool strict) {
    EdgeValues::Entry& known = values_of_[e];
    if (known.plain != EdgeValues::kNone && ir_.values[known.plain].kind == GroupIr::Value::Result) return known.plain;
    uint16_t& value = strict ? known.strict : known.plain;
    if (value == EdgeValues::kNone) {
        value = new_value(
            {GroupIr::Value::External, static_cast<uint16_t>(externals_.size()), r_.g.spec(e).descr(), strict});
        ir_.values[value].single = r_.g.spec(e).ndim == 0;
        externals_.push_back(e);
    }
    return value;
}

// A value in the dtype that an operation wants. One conversion serves all who want it.
uint16_t IrBuilder::converted(uint16_t value, PyArray_Descr* want) {
    PyArray_Descr* have = ir_.values[value].dtype;
    if (have == want) return value;
    const auto [it, added] = converted_.emplace(std::pair{value, want}, uint16_t{0});
    if (!added) return it->second;
    it->second = new_value({GroupIr::Value::Result, 0, want});
    ir_.values[it->second].producer = static_cast<int>(ir_.operations.size());
    GroupIr::Operation op;
    op.kernel = find_cast(element_of(have), element_of(want));
    op.operands = {value, it->second};
    op.n_inputs = 1;
    op.member = static_cast<uint16_t>(fallback_.nodes.size());
    ++ir_.values[value].reads;
    ir_.operations.push_back(op);
    return it->second;
}

uint16_t IrBuilder::new_value(GroupIr::Value value) {
    ir_.values.push_back(value);
    return static_cast<uint16_t>(ir_.values.size() - 1);
}

}  // namespace pyop

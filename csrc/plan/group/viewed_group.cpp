// plan/group/viewed_group.cpp: show a group what it reads.
#include "plan/group/viewed_group.h"

#include <algorithm>

#include "plan/tape/tape_builder.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// What the macros of NumPy's C API read of an array, without a reference to anything.
struct ShownArray {
    PyArrayObject_fields fields;
    ArrayView view;

    PyObject* show() {
        fields = PyArrayObject_fields{PyObject_HEAD_INIT(&PyArray_Type)};
        fields.data = view.data;
        fields.nd = view.ndim;
        fields.dimensions = view.dims;
        fields.strides = view.strides;
        fields.descr = view.descr;
        auto* const array = reinterpret_cast<PyArrayObject*>(&fields);
        PyArray_UpdateFlags(array, NPY_ARRAY_UPDATE_ALL);
        return as_object(array);
    }
};

}  // namespace

ViewedGroup::ViewedGroup(std::unique_ptr<const LoopGroup> group, std::vector<Source> sources)
    : group_(std::move(group)), sources_(std::move(sources)) {
    std::vector<uint32_t> member_of(sources_.size()), reads;
    for (size_t k = 0; k < sources_.size(); ++k) {
        const Source& source = sources_[k];
        if (reads.size() <= source.input) {
            reads.resize(source.input + 1);
            dying_.resize(source.input + 1);
        }
        if (++reads[source.input] == 1 && !source.view) dying_[source.input] = uint64_t{1} << k;
        if (!source.view) continue;
        ++n_views_;
        const Fallback& view = source.view->fallback();
        const auto first = static_cast<uint32_t>(fallback_.nodes.size());
        for (size_t m = 0; m < view.nodes.size(); ++m) {
            fallback_.nodes.push_back(view.nodes[m]);
            fallback_.sources.push_back({m == 0 ? Fallback::Source{true, source.input}
                                                : Fallback::Source{false, first + static_cast<uint32_t>(m) - 1}});
        }
        member_of[k] = static_cast<uint32_t>(fallback_.nodes.size()) - 1;
    }
    for (size_t input = 0; input < reads.size(); ++input)
        if (reads[input] > 1) dying_[input] = 0;
    n_view_members_ = fallback_.nodes.size();
    const auto shift = static_cast<uint32_t>(n_view_members_);
    const Fallback& members = group_->fallback();
    for (size_t m = 0; m < members.nodes.size(); ++m) {
        fallback_.nodes.push_back(members.nodes[m]);
        std::vector<Fallback::Source>& from = fallback_.sources.emplace_back(members.sources[m]);
        for (Fallback::Source& each : from) {
            if (!each.external) {
                each.index += shift;
            } else if (sources_[each.index].view) {
                each = {false, member_of[each.index]};
            } else {
                each.index = sources_[each.index].input;
            }
        }
    }
    for (const auto& [member, output] : members.outputs) fallback_.outputs.emplace_back(member + shift, output);
}

int ViewedGroup::run(PyObject* const* inputs, PyObject** results, const StepContext& context) const {
    StackArray<ShownArray, 8> shown(n_views_);
    StackArray<PyObject*, 16> given(sources_.size());
    size_t n = 0;
    for (size_t k = 0; k < sources_.size(); ++k) {
        const Source& source = sources_[k];
        given[k] = inputs[source.input];
        if (!source.view) continue;
        if (!is_exact_array(given[k]) || !source.view->show(as_array(given[k]), shown[n].view)) return 0;
        given[k] = shown[n++].show();
    }
    StepContext own = context;
    own.holders = nullptr;
    own.dying = 0;
    for (size_t input = 0; input < dying_.size(); ++input)
        if (context.dying >> input & 1) own.dying |= dying_[input];
    return group_->run(given.data(), results, own);
}

// Arrays that do not suit the group are as often views as not.
int ViewedGroup::call(const Graph& g, PyObject* const* inputs, PyObject** results) const {
    StackRefs<8> views(sources_.size());
    StackArray<PyObject*, 16> given(sources_.size());
    for (size_t k = 0; k < sources_.size(); ++k) {
        const Source& source = sources_[k];
        PyObject* const* const input = &inputs[source.input];
        given[k] = *input;
        if (!source.view) continue;
        const int done = source.view->run(input, &views[k], {});
        if (done < 0 || (done == 0 && source.view->fallback().call(g, input, &views[k]) < 0)) return -1;
        given[k] = views[k];
    }
    return group_->fallback().call(g, given.data(), results);
}

bool ViewedGroup::record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const {
    std::vector<TapeValue> given(sources_.size());
    for (size_t k = 0; k < sources_.size(); ++k) {
        const TapeValue* const input = &inputs[sources_[k].input];
        if (!sources_[k].view)
            given[k] = *input;
        else if (!sources_[k].view->record(tape, input, &given[k]))
            return false;
    }
    return group_->record(tape, given.data(), results);
}

std::string ViewedGroup::describe(size_t member) const {
    if (member >= n_view_members_) return group_->describe(member - n_view_members_);
    return "view, read through by the group";
}

}  // namespace pyop

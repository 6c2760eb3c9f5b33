// plan/native_call.cpp: check a declaration against what is known of a node's arrays.
#include "plan/native_call.h"

#include <array>

namespace pyop {

namespace {

constexpr int64_t kNotSeen = INT64_MIN;

struct Sizes {
    std::array<int64_t, Contract::kMaxNames> names;
    std::array<const std::vector<int64_t>*, Contract::kMaxVariadics> variadics{};
};

// Sizes that are the same number or the same symbol are equal in every run.
bool fits(const ArraySpec& spec, const std::vector<int64_t>& dims, Sizes& sizes) {
    if (!spec.rank_known) return true;
    if (spec.variadic >= 0) {
        const int32_t name = spec.dims[static_cast<size_t>(spec.variadic)].name;
        if (spec.dims.size() != 1) return false;
        if (name < 0) return true;
        const std::vector<int64_t>*& bound = sizes.variadics[static_cast<size_t>(name)];
        if (!bound) bound = &dims;
        return *bound == dims;
    }
    if (!spec.plain || spec.plain_dims.size() != dims.size()) return false;
    for (size_t d = 0; d < dims.size(); ++d) {
        const npy_intp want = spec.plain_dims[d];
        if (want == -1) continue;
        if (dims[d] == kUnknownSize) return false;
        int64_t known = want;
        if (want <= -2) {
            int64_t& bound = sizes.names[static_cast<size_t>(-2 - want)];
            if (bound == kNotSeen) bound = dims[d];
            known = bound;
        }
        if (known != dims[d]) return false;
    }
    return true;
}

}  // namespace

bool is_kept(const Graph& g, const PyNode& node) {
    const Contract& c = *node.contract();
    if (!c.inputs_declared || c.abstract || c.inputs->size() != node.inputs().size()) return false;
    for (const Edge e : node.inputs())
        if (g.spec(e).ndim < 0) return false;
    if (c.gufunc) {  // of scalars: any shapes that broadcast
        for (const ArraySpec& spec : *c.inputs)
            if (!spec.dims.empty()) return false;
        return true;
    }
    Sizes sizes;
    sizes.names.fill(kNotSeen);
    const std::vector<int64_t>* shape = nullptr;  // of the result
    for (size_t k = 0; k < node.inputs().size(); ++k) {
        const std::vector<int64_t>& dims = g.spec(node.inputs()[k]).dims;
        if (!fits((*c.inputs)[k], dims, sizes)) return false;
        if (!shape || shape->empty())
            shape = &dims;
        else if (!dims.empty() && dims != *shape)
            return false;
    }
    for (const int64_t size : *shape)
        if (size == kUnknownSize) return false;
    for (const ArraySpec& spec : *c.outputs)
        if (!fits(spec, *shape, sizes)) return false;
    return true;
}

}  // namespace pyop

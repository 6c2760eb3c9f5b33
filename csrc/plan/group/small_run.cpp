// plan/group/small_run.cpp: choose which groups are run so, and run them.
#include "plan/group/small_run.h"

#include "array/view/strided_walk.h"

namespace pyop {

std::unique_ptr<SmallRun> SmallRun::make(const LoopGroup& group, int ndim, const npy_intp* shape,
                                         const std::vector<bool>& repeated) {
    const LoopGroup::Code& code = group.code_;
    if (group.may_fail_ || group.may_decline_ || !group.reductions_.empty()) return nullptr;
    if (code.operations.empty() || code.streams.size() > kMostStreams || repeated.size() != group.n_externals_)
        return nullptr;
    auto made = std::make_unique<SmallRun>();
    made->n_externals_ = group.n_externals_;
    for (int d = 0; d < ndim; ++d)
        if (shape[d] <= 0 || __builtin_mul_overflow(made->size_, shape[d], &made->size_)) return nullptr;
    // To NumPy single elements are a matter of their own (GroupLayout).
    if (made->size_ < 2 || made->size_ > group.block_ || made->size_ >= group.release_at_) return nullptr;
    const npy_intp block_bytes = (made->size_ * group.widest_ + 63) & ~npy_intp{63};
    if (block_bytes * static_cast<npy_intp>(group.n_blocks_) > static_cast<npy_intp>(kScratch)) return nullptr;

    std::vector<npy_intp> strides;
    for (size_t k = 0; k < code.streams.size(); ++k) {
        const LoopGroup::Stream& stream = code.streams[k];
        const auto at = static_cast<uint16_t>(k);
        const auto offset = static_cast<uint32_t>(std::max<npy_intp>(stream.block, 0) * block_bytes);
        strides.push_back(stream.itemsize);
        switch (stream.kind) {
            case LoopGroup::Stream::External:
                if (!repeated[k] && (group.single_ >> k & 1)) return nullptr;
                if (!repeated[k]) break;
                if (group.cast_ >> k & 1) return nullptr;
                strides.back() = 0;
                made->repeated_.push_back({at, offset, static_cast<uint32_t>(stream.itemsize)});
                break;
            case LoopGroup::Stream::Number:
                strides.back() = 0;
                made->numbers_.push_back({at, group.number_blocks_[stream.index].get()});
                break;
            case LoopGroup::Stream::Scratch:
                made->scratch_.push_back({at, offset});
                break;
            case LoopGroup::Stream::Output:
                break;
        }
    }
    for (const uint16_t at : group.output_streams_) {
        const LoopGroup::Stream& stream = code.streams[at];
        if (stream.kind != LoopGroup::Stream::Output) return nullptr;
        made->results_.push_back({stream.dtype, made->size_ * stream.itemsize, at});
    }
    for (const LoopGroup::Operation& op : code.operations) {
        Operation& own = made->operations_.emplace_back();
        own.kernel = op.kernel;
        own.loop = op.loop;
        own.test_flags = op.test_flags;
        for (size_t k = 0; k < kMostOperands; ++k) {
            own.streams[k] = op.streams[k];
            own.strides[k] = strides[op.streams[k]];
        }
        if ((op.loop && op.loop->is_foreign()) || op.n_operands > kMostOperands) return nullptr;
    }
    const LoopGroup::Operation& first = code.operations.front();
    made->only_ = code.operations.size() == 1 && first.kernel;
    for (size_t k = 0; k < first.n_operands; ++k) {
        const uint16_t at = first.streams[k];
        const LoopGroup::Stream::Kind kind = code.streams[at].kind;
        made->only_ &= kind == LoopGroup::Stream::Output || (kind == LoopGroup::Stream::External && !repeated[at]);
    }
    return made;
}

bool SmallRun::clear() {
    clear_all_fp_errors();
    return false;
}

bool SmallRun::run_all(char** streams) const {
    alignas(64) char scratch[kScratch];
    const npy_intp n = size_;
    for (const Repeated& r : repeated_) {
        gather(scratch + r.offset, streams[r.external], 0, n, r.itemsize);
        streams[r.external] = scratch + r.offset;
    }
    for (const Number& number : numbers_) streams[number.stream] = number.data;
    for (const Scratch& s : scratch_) streams[s.stream] = scratch + s.offset;
    for (const Operation& op : operations_) {
        char* data[kMostOperands];
        gather_operands(op, streams, data);
        if (PYOP_LIKELY(op.kernel != nullptr)) {
            op.kernel(data, n);
            if (op.test_flags && PYOP_UNLIKELY(fp_errors() != 0)) return clear();
            continue;
        }
        if ((*op.loop)(data, n, op.strides) < 0) return clear();
        if (!op.test_flags || PYOP_LIKELY(all_fp_errors() == 0)) continue;
        clear();
        if (!op.loop->ignores_flags()) return false;
    }
    return true;
}

}  // namespace pyop

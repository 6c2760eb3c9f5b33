// plan/group/compile.cpp: build a LoopGroup from operations on values: assign each stream its scratch block.
#include <algorithm>

#include "array/loop/exact_loop.h"
#include "plan/group/loop_group.h"

namespace pyop {

namespace {

constexpr npy_intp kScratchBytes = 24 << 10;  // of a first cache of 32 KiB or more
constexpr npy_intp kMostScratchBytes = 160 << 10;  // of a second cache of 256 KiB or more
// Below 256 elements, what calling the kernels costs is more than the first cache saves.
constexpr npy_intp kSmallestBlock = 128, kSmallBlock = 256, kLargestBlock = 512, kMostElements = 1 << 14;

}  // namespace

class GroupCompiler {
  public:
    GroupCompiler(LoopGroup& group, const GroupIr& ir, LoopGroup::Code& code) : group_(group), ir_(ir), code_(code) {}

    // Gives every value a stream: externals first, then numbers, then a stream for each result.
    void run() {
        stream_of_.resize(ir_.values.size());
        for (size_t k = 0; k < ir_.n_externals; ++k) code_.streams.emplace_back();
        for (size_t v = 0; v < ir_.values.size(); ++v) {
            const GroupIr::Value& value = ir_.values[v];
            LoopGroup::Stream stream{LoopGroup::Stream::External, value.index, -1, PyDataType_ELSIZE(value.dtype),
                                     value.dtype};
            if (value.kind == GroupIr::Value::External) {
                stream.block = take_block();  // for good: it is filled when a run begins
                code_.streams[value.index] = stream;
                stream_of_[v] = value.index;
                continue;
            }
            if (value.kind == GroupIr::Value::Number) {
                stream.kind = LoopGroup::Stream::Number;
            } else if (value.output != GroupIr::kNoOutput) {
                stream.kind = LoopGroup::Stream::Output;
                stream.index = static_cast<uint16_t>(value.output);
            } else {
                stream.kind = LoopGroup::Stream::Scratch;
            }
            stream_of_[v] = static_cast<uint16_t>(code_.streams.size());
            code_.streams.push_back(stream);
        }
        std::vector<uint32_t> reads(ir_.values.size());
        for (const GroupIr::Operation& op : ir_.operations)
            for (size_t k = 0; k < op.n_inputs; ++k) ++reads[op.operands[k]];
        for (const GroupIr::Reduction& reduction : ir_.reductions) {
            ++reads[reduction.value];  // to the end of the block
            code_.reduced.push_back(stream_of_[reduction.value]);
        }
        for (const GroupIr::Operation& op : ir_.operations) add(op, reads);
        // A test waits until all is computed, so it is left out where nothing has raised a flag since the last one.
        bool untested = false;
        for (size_t i = 0; i < code_.operations.size(); ++i) {
            auto& op = code_.operations[i];
            const bool last = i + 1 == code_.operations.size();
            untested |= op.loop || !ir_.operations[i].quiet;
            op.test_flags = untested && (last || op.loop || code_.operations[i + 1].loop);
            untested &= !op.test_flags;
        }
        group_.n_blocks_ = std::max(group_.n_blocks_, n_blocks_);
    }

    uint16_t stream_of_value(size_t v) const { return stream_of_[v]; }

  private:
    void add(const GroupIr::Operation& from, std::vector<uint32_t>& reads) {
        LoopGroup::Operation op{from.kernel,
                                from.kernel ? nullptr : from.loop(),
                                from.kernel && is_exact_kernel(from.kernel) ? from.loop() : nullptr,
                                from.member,
                                static_cast<uint8_t>(from.operands.size()),
                                true,
                                leaves(from, reads),
                                from.does,
                                from.element,
                                {}};
        // Results get their blocks before the inputs give theirs back: loops do not work in place.
        for (size_t k = 0; k < from.operands.size(); ++k) {
            LoopGroup::Stream& stream = code_.streams[op.streams[k] = stream_of_[from.operands[k]]];
            if (k >= from.n_inputs && stream.kind == LoopGroup::Stream::Scratch) stream.block = take_block();
            if ((from.numbers >> k & 1) && stream.kind == LoopGroup::Stream::External)
                group_.single_ |= uint64_t{1} << op.streams[k];
        }
        for (size_t k = 0; k < from.operands.size(); ++k) {
            const LoopGroup::Stream& stream = code_.streams[op.streams[k]];
            if (stream.kind != LoopGroup::Stream::Scratch) continue;
            const bool read_later = k < from.n_inputs ? --reads[from.operands[k]] > 0 : reads[from.operands[k]] > 0;
            if (!read_later) spare_.push_back(stream.block);
        }
        code_.operations.push_back(op);
    }

    int16_t leaves(const GroupIr::Operation& op, const std::vector<uint32_t>& reads) const {
        if (!op.kernel || op.operands.size() != op.n_inputs + 1u) return -1;
        const uint16_t v = op.operands.back();
        return reads[v] == 0 ? static_cast<int16_t>(ir_.values[v].output) : int16_t{-1};
    }

    int16_t take_block() {
        if (spare_.empty()) return static_cast<int16_t>(n_blocks_++);
        const int16_t block = spare_.back();
        spare_.pop_back();
        return block;
    }

    LoopGroup& group_;
    const GroupIr& ir_;
    LoopGroup::Code& code_;
    std::vector<uint16_t> stream_of_;
    std::vector<int16_t> spare_;
    size_t n_blocks_ = 0;
};

namespace {

// Whether a kernel or loop reads a number as often as there are elements.
bool repeats_numbers(const GroupIr& ir) {
    for (const GroupIr::Operation& op : ir.operations)
        for (size_t k = 0; k < op.n_inputs; ++k)
            if (ir.values[op.operands[k]].kind == GroupIr::Value::Number && !(op.numbers >> k & 1)) return true;
    return false;
}

}  // namespace

LoopGroup::LoopGroup(Fallback fallback, const GroupIr& plain, const GroupIr& combined, std::vector<Ref> numbers)
    : NativeStep(std::move(fallback)), numbers_(std::move(numbers)), n_externals_(plain.n_externals) {
    GroupCompiler(*this, plain, plain_).run();
    GroupCompiler compiler(*this, combined, code_);
    compiler.run();

    names_.resize(fallback_.nodes.size());
    for (const GroupIr::Operation& op : plain.operations) {
        if (op.call) names_[op.member] = op.call->name;
        if (op.call) in_place_ |= op.call->in_place;
        if (op.kernel) continue;
        loops_.push_back(op.call->loop);
        if (op.loop()->is_foreign()) release_at_ = kReleaseForeign;
        may_fail_ |= !op.call->safe;
    }
    does_members_.reserve(combined.operations.size());
    for (const GroupIr::Operation& op : combined.operations) does_members_.push_back(op.does_members);

    // What each result depends on, through the operations in order.
    std::vector<uint64_t> depends(plain.values.size());
    output_streams_.resize(plain.n_outputs);
    depends_.resize(plain.n_outputs);
    recyclers_.resize(plain.n_outputs);
    for (size_t v = 0; v < plain.values.size(); ++v)
        if (plain.values[v].kind == GroupIr::Value::External) {
            depends[v] = uint64_t{1} << plain.values[v].index;
            if (plain.values[v].strict) strict_ |= depends[v];
        }
    for (const GroupIr::Operation& op : plain.operations) {
        uint64_t mask = 0;
        for (size_t k = 0; !op.kernel && op.n_inputs > 1 && k < op.n_inputs; ++k)
            if (const int from = plain.values[op.operands[k]].producer;
                from >= 0 && plain.operations[static_cast<size_t>(from)].is_cast())
                cast_ |= depends[op.operands[k]];
        if (op.is_cast() && plain.values[op.operands[0]].producer < 0) copied_ |= depends[op.operands[0]];
        for (size_t k = 0; k < op.operands.size(); ++k)
            if (k < op.n_inputs)
                mask |= depends[op.operands[k]];
            else
                depends[op.operands[k]] = mask;
    }
    for (size_t v = 0; v < plain.values.size(); ++v) {
        const int output = plain.values[v].output;
        if (output == GroupIr::kNoOutput) continue;
        output_streams_[static_cast<size_t>(output)] = compiler.stream_of_value(v);
        depends_[static_cast<size_t>(output)] = depends[v];
    }
    may_decline_ = may_fail_;
    reduction_of_output_.assign(plain.n_outputs, -1);
    for (const GroupIr::Reduction& reduction : plain.reductions) {
        names_[reduction.member] = "reduce";
        may_decline_ |= reduction.what->mean;  // for errors in the division
        if (reduction.output != GroupIr::kNoOutput) {
            reduction_of_output_[static_cast<size_t>(reduction.output)] = static_cast<int16_t>(reductions_.size());
            depends_[static_cast<size_t>(reduction.output)] = depends[reduction.value];
        }
        reductions_.push_back({reduction.what, reduction.member, reduction.output});
    }

    for (const Stream& stream : plain_.streams) widest_ = std::max(widest_, stream.itemsize);
    const npy_intp of_each = widest_ * static_cast<npy_intp>(std::max<size_t>(n_blocks_, 1));
    // Where nothing stands between operations, the first cache has nothing to keep but numbers that are repeated, and
    // of narrow elements a block holds more, or the calls for it would cost more than they do.
    const bool nothing_between = n_blocks_ == n_externals_;
    const npy_intp fitting =
        nothing_between ? kMostScratchBytes / of_each
                        : std::max(kScratchBytes / of_each, std::min(kMostScratchBytes / of_each, kSmallBlock));
    const npy_intp bytes = kLargestBlock * (!nothing_between ? 8 : repeats_numbers(combined) ? 32 : 128);
    block_ =
        std::clamp(fitting & ~npy_intp{63}, kSmallestBlock, std::clamp(bytes / widest_, kLargestBlock, kMostElements));
    // Whole cache lines, and no power of two, or the blocks would compete for the same places of the cache.
    block_bytes_ = block_ * widest_ + 192;

    for (const Ref& number : numbers_) {
        PyArrayObject* a = as_array(number.get());
        const auto itemsize = static_cast<size_t>(PyArray_ITEMSIZE(a));
        auto& block = number_blocks_.emplace_back(new char[static_cast<size_t>(block_) * itemsize]);
        gather(block.get(), PyArray_BYTES(a), 0, block_, itemsize);
    }
}

std::string LoopGroup::describe(size_t member) const {
    for (const Reduction& reduction : reductions_)
        if (reduction.member == member)
            return (reduction.what->mean ? "mean, " : "") + reduction.what->call.ufunc + " of each block, NumPy's loop";
    for (size_t k = code_.operations.size(); k-- > 0;) {
        const Operation& op = code_.operations[k];
        if (op.member != member) continue;
        std::string text = op.of_number            ? "exact kernel "
                           : op.kernel             ? "kernel "
                           : op.loop->is_foreign() ? "native code "
                                                   : "NumPy's loop ";
        if (does_members_[k].empty()) text += "cast";
        for (size_t m = 0; m < does_members_[k].size(); ++m) text += (m ? "+" : "") + names_[does_members_[k][m]];
        return text;
    }
    return "";
}

}  // namespace pyop

// plan/group/loop_group.cpp: make one run: blocks, threads, floating-point errors, and the results' memory.
#include "plan/group/loop_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>

#include "array/loop/fp_flags.h"
#include "array/loop/ufunc_errors.h"
#include "array/memory/overlap.h"
#include "array/memory/pool.h"
#include "array/reduction/row_reduction.h"
#include "plan/group/cursors.h"
#include "plan/group/layout.h"
#include "plan/group/scratch.h"
#include "plan/group/strided_target.h"
#include "runtime/attach.h"
#include "runtime/cpu_pool.h"
#include "runtime/interrupt.h"
#include "runtime/release_gil.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

constexpr size_t kScratchOnStack = 4096;        // bytes
constexpr npy_intp kShareElements = 1 << 17;    // for each thread, at least

thread_local ScratchMemory scratch_memory;

std::mutex diagnosis_mutex;  // of GroupRun::flags_, when several threads share a run

}  // namespace

// One run of a group.
class GroupRun : private GroupState {
  public:
    GroupRun(const LoopGroup& of, PyObject* const* given, PyObject** made, const StepContext& context)
        : GroupState(of, given, made), context_(context) {}

    int run() {
        if (!layout.find(group, inputs) || !find_rows()) return 0;
        const size_t n = group.depends_.size();
        for (size_t k = 0; k < n; ++k) {
            results[k] = result_new(k);
            if (results[k]) continue;
            drop(k);
            return -1;
        }
        in_blocks = layout.by_lines || !parts_.empty();
        if (in_blocks) find_row_targets();
        set_block();
        bool enough_memory;
        if (layout.size >= group.release_at_ && !at_once_) interrupts_.begin();
        {
            const DetachScope detached(layout.size >= group.release_at_);
            enough_memory = run_all();
        }
        if (PYOP_UNLIKELY(interrupts_.raised())) {
            drop(n);
            interrupts_.raise();
            return -1;
        }
        if (PYOP_UNLIKELY(!enough_memory)) {
            drop(n);
            PyErr_NoMemory();
            return -1;
        }
        // Loops of the older kind return nothing: an error set is all that tells of their failure.
        if (PYOP_UNLIKELY(failed || (group.may_fail_ && PyErr_Occurred()))) {
            PyErr_Clear();  // the ufunc will set it again, with all its words
            drop(n);
            return 0;
        }
        if (PYOP_UNLIKELY(flags_ != nullptr) && report() < 0) {
            drop(n);
            return -1;
        }
        return 1;
    }

  private:
    using Code = LoopGroup::Code;
    using Stream = LoopGroup::Stream;

    // --- results

    PyObject* result_new(size_t k) {
        if (const int r = group.reduction_of_output_[k]; r >= 0)
            return reduced_new(group.reductions_[static_cast<size_t>(r)], k);
        PyArray_Descr* dtype = group.code_.streams[group.output_streams_[k]].dtype;
        PyObject* target = context_.targets ? context_.targets[k] : nullptr;
        // Compiled code from outside may take minutes, and what writes into the caller's memory is not stopped
        // half-way.
        if (context_.in_callers_memory && group.release_at_ < kReleaseElements) target = nullptr;
        if (target && (may_write(target, dtype) || may_write_part(target, dtype, k))) {
            at_once_ |= context_.in_callers_memory;
            return Py_NewRef(target);
        }
        const uint64_t may_hold = layout.by_lines ? 0 : context_.dying & layout.contiguous;
        for (uint64_t rest = may_hold; rest && !group.may_decline_; rest &= rest - 1) {
            const int j = __builtin_ctzll(rest);
            PyArrayObject* a = as_array(inputs[j]);
            if (PyArray_DESCR(a) != dtype || (overwritten >> j & 1) || PyArray_NDIM(a) != layout.ndim) continue;
            uint64_t same = 0;  // one array may be two externals: one that is strict and one that is not
            for (size_t other = 0; other < group.n_externals_; ++other)
                if (inputs[other] == inputs[j]) same |= uint64_t{1} << other;
            if (same & ~layout.contiguous) continue;
            overwritten |= same;
            return Py_NewRef(inputs[j]);
        }
        if (PYOP_LIKELY(!layout.fortran)) {
            const npy_intp elements = layout.by_lines ? layout.lines.elements : layout.size;
            if (elements * PyDataType_ELSIZE(dtype) <= ResultRecycler::kMostBytes)
                return group.recyclers_[k].take(dtype, layout.ndim, layout.shape);
            return pooled_array_new(dtype, layout.ndim, layout.shape, nullptr);
        }
        npy_intp strides[NPY_MAXDIMS], step = PyDataType_ELSIZE(dtype);
        for (int d = 0; d < layout.ndim; step *= std::max<npy_intp>(layout.shape[d++], 1)) strides[d] = step;
        return pooled_array_new(dtype, layout.ndim, layout.shape, strides);
    }

    PyObject* reduced_new(const LoopGroup::Reduction& reduction, size_t k) {
        const Reduction& how = reduction.what->call.reduction;
        const int kept = layout.ndim - reduction.what->n_axes;
        npy_intp shape[NPY_MAXDIMS], size = how.loop->itemsize();
        for (int d = 0; d < layout.ndim; ++d) shape[d] = d < kept ? layout.shape[d] : 1;
        for (int d = 0; d < kept; ++d) size *= shape[d];
        const int ndim = how.keepdims ? layout.ndim : kept;
        if (size > ResultRecycler::kMostBytes) return pooled_array_new(how.loop->dtype(), ndim, shape, nullptr);
        return group.recyclers_[k].take(how.loop->dtype(), ndim, shape);
    }

    // Elements in the rows that are reduced. False if there is nothing to reduce, or if rows do not lie side by side.
    bool find_rows() {
        for (const LoopGroup::Reduction& r : group.reductions_) {
            const int kept = layout.ndim - r.what->n_axes;
            if (layout.size == 0 || kept < 0 || (layout.fortran && kept > 0)) return false;
            npy_intp row = 1;
            for (int d = kept; d < layout.ndim; ++d) row *= layout.shape[d];
            rows_.push_back(row);
        }
        return true;
    }

    // Whether an array of the caller can take a result as it is computed: of its dtype, shape and order, and apart from
    // everything that is read. An input it coincides with is read before it is written.
    bool may_write(PyObject* target, PyArray_Descr* dtype) {
        if (!is_exact_array(target) || group.may_decline_) return false;
        PyArrayObject* a = as_array(target);
        const int order = layout.fortran ? NPY_ARRAY_F_CONTIGUOUS : NPY_ARRAY_C_CONTIGUOUS;
        if (PyArray_DESCR(a) != dtype || PyArray_NDIM(a) != layout.ndim ||
            !PyArray_CHKFLAGS(a, order | NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE) ||
            !PyArray_CompareLists(PyArray_DIMS(a), layout.shape, layout.ndim))
            return false;
        uint64_t same = 0;
        const npy_intp bytes = layout.size * PyDataType_ELSIZE(dtype);
        for (size_t j = 0; j < group.n_externals_; ++j) {
            PyArrayObject* read = as_array(inputs[j]);
            // Contiguous externals lie as side by side as the target does.
            if (PYOP_LIKELY(layout.contiguous >> j & 1)) {
                const char* low = PyArray_BYTES(read);
                const npy_intp extent = layout.size * PyDataType_ELSIZE(PyArray_DESCR(read));
                if (low + extent <= PyArray_BYTES(a) || PyArray_BYTES(a) + bytes <= low) continue;
            } else if (!may_overlap(a, read)) {
                continue;
            }
            const bool coincides = (layout.contiguous >> j & 1) && !layout.by_lines &&
                                   PyArray_DATA(read) == PyArray_DATA(a) &&
                                   PyArray_ITEMSIZE(read) == PyArray_ITEMSIZE(a) && !(overwritten >> j & 1);
            if (!coincides) return false;
            same |= uint64_t{1} << j;
        }
        for (PyObject** other = results; *other != nullptr && other < results + group.depends_.size(); ++other)
            if (may_overlap(a, as_array(*other))) return false;
        overwritten |= same;
        return true;
    }

    // As may_write, for part of an array. What is read there is read block by block, before a block is written: the
    // same elements, or such as lie behind them. Where elements before them are read too, as in a step of Jacobi, a
    // block waits to be written until they have been.
    bool may_write_part(PyObject* target, PyArray_Descr* dtype, size_t k) {
        if (!is_exact_array(target) || group.may_decline_ || layout.fortran) return false;
        PyArrayObject* a = as_array(target);
        StridedTarget part;
        if (PyArray_DESCR(a) != dtype || PyArray_NDIM(a) != layout.ndim || !PyArray_ISBEHAVED(a) ||
            !PyArray_CompareLists(PyArray_DIMS(a), layout.shape, layout.ndim) || !part.find(a))
            return false;
        bool behind = false, read_there = false;
        npy_intp farthest = 0;
        for (size_t j = 0; j < group.n_externals_; ++j) {
            PyArrayObject* read = as_array(inputs[j]);
            if (!may_overlap(a, read)) continue;
            if (PyArray_NDIM(read) != layout.ndim || PyArray_ITEMSIZE(read) != PyArray_ITEMSIZE(a) ||
                (layout.scalar >> j & 1) || (overwritten >> j & 1) ||
                !PyArray_CompareLists(PyArray_DIMS(read), layout.shape, layout.ndim) ||
                !PyArray_CompareLists(PyArray_STRIDES(read), PyArray_STRIDES(a), layout.ndim))
                return false;
            if (const npy_intp before = PyArray_BYTES(a) - PyArray_BYTES(read); before > 0) {
                const npy_intp itemsize = PyArray_ITEMSIZE(a);
                constexpr npy_intp kFarthest = 1 << 17;  // elements
                if (!(layout.contiguous >> j & 1) || !(layout.by_lines || layout.ndim == 1) ||
                    group.depends_.size() != 1 || !group.reductions_.empty() || before % itemsize != 0 ||
                    before / itemsize > std::min(layout.size / 4, kFarthest))
                    return false;
                farthest = std::max(farthest, before / itemsize);
            }
            behind |= PyArray_BYTES(read) > PyArray_BYTES(a);
            read_there = true;
        }
        for (PyObject** other = results; *other != nullptr && other < results + group.depends_.size(); ++other)
            if (may_overlap(a, as_array(*other))) return false;
        if (parts_.empty()) parts_.resize(group.depends_.size());
        parts_[k] = part;
        if (read_there) reads_parts_ |= uint64_t{1} << k;
        if (farthest > 0) before_ = farthest;
        in_order_ |= behind || farthest > 0;
        return true;
    }

    // Where kernels alone compute, of what lies where it is read, and nothing reads the results in the group, these
    // need no blocks: row after row is computed to its end, and left where it belongs.
    void find_row_targets() {
        if (layout.fortran || !group.loops_.empty() || !layout.gathered.empty() || overwritten != 0 ||
            reads_parts_ != 0)
            return;
        if (layout.by_lines)
            rows = layout.lines;
        else
            rows.of_shape(layout.ndim, layout.shape);
        constexpr npy_intp kShortest = 8;  // elements of a row that are worth a call
        if (rows.shape[rows.ndim - 1] < kShortest) return;
        std::vector<RowTarget> targets(group.depends_.size());
        for (const LoopGroup::Operation& op : code().operations) {
            if (op.leaves < 0) continue;
            const auto k = static_cast<size_t>(op.leaves);
            if ((layout.by_lines || (k < parts_.size() && parts_[k].found())) &&
                !targets[k].find(rows, as_array(results[k])))
                return;
        }
        for (const RowTarget& target : targets)
            if (!target.found()) return;
        row_targets = std::move(targets);
    }

    void drop(size_t n) {
        for (size_t k = 0; k < n; ++k) Py_CLEAR(results[k]);
    }

    // --- blocks

    // As many elements as fit, and a multiple of what a repeated operand repeats after, if that is short.
    void set_block() {
        block = group.block_;
        period = 1;
        for (const StridedWalk& walk : layout.gathered)
            if (walk.period() > period && walk.period() <= block / 2 && walk.period() % period == 0)
                period = walk.period();
        if (layout.by_lines) block = block_of_lines();
        block -= block % period;
        if (before_ > 0) waiting_ = (before_ + block - 1) / block;
        block_bytes = group.block_bytes_;
        if (layout.size < block) block_bytes = (layout.size * group.widest_ + 63) & ~npy_intp{63};
    }

    // Whole lines, or a line in parts as long as each other: so that few of them are divided.
    npy_intp block_of_lines() const {
        const npy_intp pitch = layout.lines.pitch[layout.lines.ndim - 2];
        if (pitch <= block) return block / pitch * pitch;
        const npy_intp parts = (pitch + block - 1) / block;
        return (pitch + parts - 1) / parts;
    }

    bool run_all() {
        if (PYOP_LIKELY(layout.size < 2 * kShareElements) || in_order_) return run_range(0, layout.size);
        const npy_intp n_blocks = (layout.size + block - 1) / block;
        const auto parts = static_cast<int>(
            std::min<npy_intp>({static_cast<npy_intp>(context_.threads), layout.size / kShareElements, n_blocks}));
        // An error that a loop sets on another thread would be lost.
        if (PYOP_LIKELY(parts <= 1 || group.may_fail_)) return run_range(0, layout.size);
        // Rows are not divided: each is reduced as NumPy would.
        npy_intp grain = block;
        if (!rows_.empty()) {
            grain = period;
            for (const npy_intp row : rows_) grain = std::lcm(grain, row);
        }
        const npy_intp n_grains = (layout.size + grain - 1) / grain;
        if (n_grains < parts) return run_range(0, layout.size);
        std::atomic<bool> done = true;
        // What has begun to write into the caller's memory must not find out that there is no scratch.
        std::vector<ScratchMemory> scratch(static_cast<size_t>(parts));
        for (ScratchMemory& own : scratch)
            if (at_once_ && !own.reserve(scratch_bytes())) return false;
        run_parts(parts, [&](int part) {
            const npy_intp from = n_grains * part / parts * grain;
            const npy_intp to = std::min(n_grains * (part + 1) / parts * grain, layout.size);
            ScratchMemory* const own = at_once_ ? &scratch[static_cast<size_t>(part)] : nullptr;
            if (!run_range(from, to, own)) done = false;
        });
        return done;
    }

    size_t scratch_bytes() const {
        const size_t waiting = before_ > 0 ? static_cast<size_t>(waiting_) + 1 : 0;
        return static_cast<size_t>(block_bytes) * (group.n_blocks_ + (in_blocks ? group.depends_.size() : 0) + waiting);
    }

    // False if there is no memory.
    bool run_range(npy_intp from, npy_intp to, ScratchMemory* own = nullptr) {
        alignas(64) char here[kScratchOnStack];
        char* scratch = here;
        if (scratch_bytes() > kScratchOnStack) {
            scratch = (own ? *own : scratch_memory).reserve(scratch_bytes());
            if (!scratch) return false;
        }
        // Flags that were raised before make the first block look as if it had failed: it is diagnosed, which clears
        // them.
        GroupCursors cursors(*this, code(), scratch);
        cursors.prepare(from, std::min(block, to - from));
        std::vector<RowReduction> reductions;
        reductions.reserve(rows_.size());
        for (size_t k = 0; k < rows_.size(); ++k) {
            const LoopGroup::Reduction& r = group.reductions_[k];
            const ReductionLoop& loop = *r.what->call.reduction.loop;
            reductions.emplace_back(loop, r.what->initial(), rows_[k], reduced(k, from));
        }
        // What was raised before is not the reductions' fault; kernels leave the x87 flags, which NumPy's loops look at
        // too.
        if (!reductions.empty() && all_fp_errors()) clear_all_fp_errors();
        unsigned blocks = 0;
        npy_intp dirty = from;  // up to here rows have raised a flag
        for (npy_intp start = from; start < to; start += block) {
            if (!row_targets.empty() && start >= dirty) {
                constexpr npy_intp kAtOnce = 16;  // blocks
                if (interrupted()) return true;
                const npy_intp rest = std::min(kAtOnce * block, to - start);
                if (PYOP_LIKELY(cursors.execute_rows(start, rest) == 0)) {
                    start += rest - block;
                    continue;
                }
                clear_all_fp_errors();
                dirty = start + rest;
            }
            if (PYOP_UNLIKELY(++blocks % 16 == 0) && interrupted()) return true;
            const npy_intp count = std::min(block, to - start);
            if (start != from || cursors.gathers()) cursors.move(start, count);
            if (!group.loops_.empty() && to - from > block) cursors.fetch(count);
            const bool clean = cursors.execute(count) == 0;
            if (PYOP_LIKELY(clean)) {
                reduce(cursors, count, reductions);
            } else {
                GroupCursors plain(*this, group.plain_, scratch);
                diagnose(plain, start, count);
                reduce(plain, count, reductions);
            }
            if (before_ > 0)
                store_later(scratch, start / block, count);
            else if (in_blocks)
                store_block(scratch, start, count);
        }
        if (before_ > 0)
            for (npy_intp i = 0, n = (to + block - 1) / block; i < waiting_; ++i) store_later(scratch, n + i, 0);
        for (size_t k = 0; k < rows_.size(); ++k) {
            const RowsReduced& what = *group.reductions_[k].what;
            char* const sums = reduced(k, from);
            if (!what.mean || !sums) continue;
            const bool wide = what.call.reduction.loop->itemsize() == sizeof(double);
            divide_sums(sums, (to - from) / rows_[k], rows_[k], wide);
            if (all_fp_errors()) failed = true;  // NumPy will say what it calls it
            clear_all_fp_errors();
        }
        return true;
    }

    // A handler of a signal may run anything, this very group on this thread too: that gets scratch of its own.
    bool interrupted() {
        if (PYOP_LIKELY(!interrupts_.due())) return interrupts_.raised();
        ScratchMemory ours;
        ours.swap(scratch_memory);
        interrupts_.listen();
        ours.swap(scratch_memory);
        if (all_fp_errors()) clear_all_fp_errors();
        return interrupts_.raised();
    }

    // Keeps the result of the i-th block, and writes that of the block before which nothing is read any more. The whole
    // of a run, in order.
    void store_later(char* scratch, npy_intp i, npy_intp count) const {
        char* const kept = block_of_result(scratch, 1);
        const auto place_of = [&](npy_intp n) { return kept + n % (waiting_ + 1) * block_bytes; };
        if (count > 0)
            std::memcpy(place_of(i), block_of_result(scratch, 0),
                        static_cast<size_t>(count * PyArray_ITEMSIZE(as_array(results[0]))));
        const npy_intp due = i - waiting_;
        if (due >= 0) store_result(0, place_of(due), due * block, std::min(block, layout.size - due * block));
    }

    // The elements of a block go to the results, and what lies between lines nowhere.
    void store_block(char* scratch, npy_intp start, npy_intp count) const {
        for (size_t k = 0; k < group.depends_.size(); ++k) {
            if (group.reduction_of_output_[k] >= 0) continue;
            store_result(k, block_of_result(scratch, group.code_.streams[group.output_streams_[k]].index), start,
                         count);
        }
    }

    void store_result(size_t k, const char* from, npy_intp start, npy_intp count) const {
        const npy_intp itemsize = PyArray_ITEMSIZE(as_array(results[k]));
        char* const whole = PyArray_BYTES(as_array(results[k]));
        const StridedTarget* const part = k < parts_.size() && parts_[k].found() ? &parts_[k] : nullptr;
        const auto store = [&](npy_intp place, npy_intp element, npy_intp n) {
            const char* const here = from + (place - start) * itemsize;
            if (part)
                part->write(element, n, here);
            else
                std::memcpy(whole + element * itemsize, here, static_cast<size_t>(n * itemsize));
        };
        if (layout.by_lines)
            layout.lines.each(start, count, store);
        else
            store(start, start, count);
    }

    // Runs a block again, one operation a call, and notes which ones raise which flags. Threads may do it at once.
    PYOP_COLD void diagnose(GroupCursors& cursors, npy_intp start, npy_intp count) {
        cursors.prepare(start, count);
        cursors.move(start, count, true);
        if (PYOP_LIKELY(!layout.by_lines)) return run_and_note(cursors, count);
        layout.lines.each(start, count, [&](npy_intp place, npy_intp, npy_intp n) {
            cursors.move_within(start, place);
            run_and_note(cursors, n);
        });
    }

    void run_and_note(GroupCursors& cursors, npy_intp count) {
        for (const LoopGroup::Operation& op : group.plain_.operations) {
            clear_all_fp_errors();
            cursors.run_one(op, count);
            if (!op.loop || !op.loop->ignores_flags()) note_flags(op.member);
        }
        clear_all_fp_errors();
    }

    void note_flags(size_t member) {
        const int flags = all_fp_errors();
        if (PYOP_LIKELY(flags == 0)) return;
        const std::lock_guard lock(diagnosis_mutex);
        if (!flags_) flags_ = std::make_unique<int[]>(group.names_.size());
        flags_[member] |= flags;
        clear_all_fp_errors();
    }

    // Where the results of a reduction's rows from that of an element on go; null: nowhere.
    char* reduced(size_t k, npy_intp from) const {
        const LoopGroup::Reduction& r = group.reductions_[k];
        if (r.output < 0) return nullptr;
        return PyArray_BYTES(as_array(results[r.output])) + from / rows_[k] * r.what->call.reduction.loop->itemsize();
    }

    // Hands the elements of a block that are to be reduced on.
    void reduce(const GroupCursors& cursors, npy_intp count, std::vector<RowReduction>& reductions) {
        for (size_t k = 0; k < reductions.size(); ++k) {
            if (reductions[k].add(cursors.reduced(k), count) < 0) failed = true;
            if (group.reductions_[k].what->call.reduction.loop->loop().ignores_flags())
                clear_all_fp_errors();
            else
                note_flags(group.reductions_[k].member);
        }
    }

    // As the calls one after the other would have.
    PYOP_COLD int report() const {
        for (size_t member = 0; member < group.names_.size(); ++member)
            if (flags_[member] && report_fp_errors(group.names_[member].c_str(), flags_[member]) < 0) return -1;
        return 0;
    }

    const StepContext& context_;
    std::vector<npy_intp> rows_;  // by reduction: elements of each row
    std::vector<StridedTarget> parts_;  // by result that goes into part of an array; empty: none does
    uint64_t reads_parts_ = 0;  // results whose part of an array is read, too
    bool at_once_ = false;  // some result is computed in the caller's memory, once and for all
    bool in_order_ = false;  // what a block overwrites is read by the blocks before it
    npy_intp before_ = 0;    // how far before what is written the one result reads, in places
    npy_intp waiting_ = 0;   // blocks that wait for that to be written
    Interrupts interrupts_;
    std::unique_ptr<int[]> flags_;  // by member; null while none was raised
};

int LoopGroup::run(PyObject* const* inputs, PyObject** results, const StepContext& context) const {
    return GroupRun(*this, inputs, results, context).run();
}

}  // namespace pyop

// array/memory/pool.cpp: keep blocks by size class and age, with the lock around them, and provide NumPy's handler.
#include "array/memory/pool.h"

#include <pthread.h>   // pthread_atfork
#include <sched.h>     // sched_yield
#include <sys/mman.h>  // mmap
#include <unistd.h>    // sysconf

#include <algorithm>  // std::min, std::max
#include <atomic>     // std::atomic
#include <bit>        // std::bit_width
#include <cstdio>     // std::fopen
#include <cstdlib>    // std::aligned_alloc
#include <mutex>      // std::lock_guard
#include <new>        // placement new

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace pyop {

namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kMapped = size_t{256} << 10;  // blocks from here on are mappings of their own
// In a mapping the data begin half a page after a page does. NumPy's begin right after one; a processor that loads a
// number from the same place of a page as one that it is still storing waits, so that results that lie so beside their
// operands are written a fifth slower.
constexpr size_t kHalfPage = 2048;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHuge = size_t{4} << 20;  // from here on huge pages are asked for, as NumPy does
constexpr size_t kMostBytes = size_t{1} << 47;
constexpr size_t kDefaultLimit = size_t{512} << 20;

// Sizes of blocks, header included: eight to each power of two, so that at most an eighth is wasted, all multiples
// of a cache line.
constexpr int kFirstShift = 6;

struct SizeClass {
    unsigned index;
    size_t bytes;
};

SizeClass size_class(size_t bytes) {  // 0 < bytes <= kMostBytes
    const int shift = std::max(static_cast<int>(std::bit_width(bytes - 1)) - 4, kFirstShift);
    const size_t eighths = ((bytes - 1) >> shift) + 1;  // 1..16 at the first shift, then 9..16
    return {static_cast<unsigned>(static_cast<size_t>(shift - kFirstShift) * 8 + eighths - 1), eighths << shift};
}
constexpr unsigned kClasses = (47 - 4 - kFirstShift) * 8 + 16;

// The header. Kept blocks are in two lists: the stack of their class, and one of all by age.
struct alignas(kCacheLine) Block {
    size_t bytes;  // header included
    unsigned index;
    Block *above, *below;  // in the stack: given later, earlier
    Block *newer, *older;  // among all

    void* data() { return this + 1; }
    static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
};
static_assert(sizeof(Block) == kCacheLine);

class SpinLock {
  public:
    void lock() {
        while (taken_.exchange(true, std::memory_order_acquire)) {
            while (taken_.load(std::memory_order_relaxed)) sched_yield();
        }
    }
    void unlock() { taken_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> taken_{false};
};

constexpr size_t kUnset = ~size_t{0};

struct BlockPool {
    SpinLock lock;
    Block* top[kClasses] = {};
    Block *newest = nullptr, *oldest = nullptr;
    std::atomic<size_t> limit{kUnset};
    size_t kept = 0, blocks = 0;
    unsigned long long hits = 0, misses = 0, evicted = 0;

    void link(Block* b) {
        b->above = nullptr;
        b->below = top[b->index];
        if (b->below) b->below->above = b;
        top[b->index] = b;
        b->newer = nullptr;
        b->older = newest;
        (newest ? newest->newer : oldest) = b;
        newest = b;
        kept += b->bytes;
        ++blocks;
    }
    void unlink(Block* b) {
        (b->above ? b->above->below : top[b->index]) = b->below;
        if (b->below) b->below->above = b->above;
        (b->newer ? b->newer->older : newest) = b->older;
        (b->older ? b->older->newer : oldest) = b->newer;
        kept -= b->bytes;
        --blocks;
    }
    // Takes the oldest blocks out until no more than `most` bytes are kept; returns them, linked by `below`.
    Block* evict_down_to(size_t most) {
        Block* out = nullptr;
        while (kept > most) {
            Block* b = oldest;
            unlink(b);
            b->below = out;
            out = b;
            ++evicted;
        }
        return out;
    }
};
constinit BlockPool block_pool;

// --- blocks from the system

constexpr size_t kLead = kHalfPage - sizeof(Block);

Block* map_block(size_t bytes) {
    bytes += kLead;
    const size_t slack = bytes >= kHuge ? kHugePage : 0;
    void* p = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    if (slack) {
        // Only whole aligned huge pages are made huge, so the mapping begins with one.
        const size_t lead = -reinterpret_cast<uintptr_t>(p) % kHugePage;
        char* start = static_cast<char*>(p) + lead;
        if (lead) munmap(p, lead);
        if (slack != lead) munmap(start + bytes, slack - lead);
        p = start;
#ifdef MADV_HUGEPAGE
        madvise(p, bytes, MADV_HUGEPAGE);  // a wish: it does not matter whether it is heard
#endif
    }
    return reinterpret_cast<Block*>(static_cast<char*>(p) + kLead);
}

void unmap_block(Block* b) { munmap(reinterpret_cast<char*>(b) - kLead, b->bytes + kLead); }

Block* block_new(SizeClass c) {
    void* p = c.bytes >= kMapped ? map_block(c.bytes) : std::aligned_alloc(kCacheLine, c.bytes);
    return p ? new (p) Block{c.bytes, c.index, nullptr, nullptr, nullptr, nullptr} : nullptr;
}

void block_free(Block* b) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(b->data(), b->bytes - sizeof(Block));
#endif
    if (b->bytes >= kMapped) {
        unmap_block(b);
    } else {
        std::free(b);
    }
}

void free_all(Block* b) {
    while (b) {
        Block* next = b->below;
        block_free(b);
        b = next;
    }
}

// A lock that another thread holds at a fork would stay taken in the child.
void survive_forks() {
    [[maybe_unused]] static const int once = pthread_atfork(
        [] { block_pool.lock.lock(); }, [] { block_pool.lock.unlock(); }, [] { block_pool.lock.unlock(); });
}

// --- the limit

// What a container may use, if it is told in the usual places; 0 if not.
size_t container_memory() {
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::FILE* file = std::fopen(path, "re");
        if (!file) continue;
        unsigned long long bytes = 0;
        const bool read = std::fscanf(file, "%llu", &bytes) == 1;  // "max" is no number
        std::fclose(file);
        if (read) return bytes;
    }
    return 0;
}

// A sixteenth of the memory there is, at most 512 MiB.
PYOP_COLD size_t default_limit() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t memory = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : kDefaultLimit;
    if (const size_t most = container_memory()) memory = std::min(memory, most);
    return std::min(memory / 16, kDefaultLimit);
}

size_t limit() {
    size_t limit = block_pool.limit.load(std::memory_order_relaxed);
    if (PYOP_UNLIKELY(limit == kUnset)) {
        // Whoever sets it in the meantime wins.
        size_t unset = kUnset;
        const size_t value = default_limit();
        limit = block_pool.limit.compare_exchange_strong(unset, value) ? value : unset;
    }
    return limit;
}

}  // namespace

void* pool_take(size_t bytes) {
    if (bytes > kMostBytes) return nullptr;
    const SizeClass c = size_class(bytes + sizeof(Block));
    Block* b;
    {
        std::lock_guard hold(block_pool.lock);
        b = block_pool.top[c.index];
        if (b) {
            block_pool.unlink(b);
            ++block_pool.hits;
        } else {
            ++block_pool.misses;
        }
    }
    if (!b) {
        survive_forks();
        b = block_new(c);
        if (PYOP_UNLIKELY(!b)) {
            // What is kept may be what is missing.
            pool_trim();
            b = block_new(c);
            if (!b) return nullptr;
        }
    }
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(b->data(), b->bytes - sizeof(Block));
#endif
    return b->data();
}

void pool_give(void* data) {
    if (!data) return;
    Block* b = Block::of(data);
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(data, b->bytes - sizeof(Block));
#endif
    const size_t most = limit();
    if (b->bytes > most) {
        block_free(b);
        return;
    }
    Block* out;
    {
        std::lock_guard hold(block_pool.lock);
        block_pool.link(b);
        out = PYOP_UNLIKELY(block_pool.kept > most) ? block_pool.evict_down_to(most) : nullptr;
    }
    if (out) free_all(out);
}

size_t pool_room(void* data) { return Block::of(data)->bytes - sizeof(Block); }

PoolStats pool_stats() {
    const size_t most = limit();
    std::lock_guard hold(block_pool.lock);
    return {most, block_pool.kept, block_pool.blocks, block_pool.hits, block_pool.misses, block_pool.evicted};
}

size_t pool_set_limit(size_t bytes) {
    const size_t old = limit();
    bytes = std::min(bytes, kMostBytes);
    block_pool.limit.store(bytes);
    Block* out;
    {
        std::lock_guard hold(block_pool.lock);
        out = block_pool.evict_down_to(bytes);
    }
    free_all(out);
    return old;
}

size_t pool_trim() {
    Block* out;
    size_t bytes;
    {
        std::lock_guard hold(block_pool.lock);
        bytes = block_pool.kept;
        out = block_pool.evict_down_to(0);
    }
    free_all(out);
    return bytes;
}

}  // namespace pyop

// runtime/cpu_pool.cpp: run the pool of C++ threads and its queue of tasks.
#include "runtime/cpu_pool.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace pyop {

namespace {

struct Task {
    void (*part)(void*, int);
    void* work;
    int n_parts;
    int next = 0, done = 0;  // guarded by the pool's mutex
    std::condition_variable finished;
};

// All state is behind one mutex: parts are long enough (100 µs and more) that nobody waits for it.
class Pool {
  public:
    void run(Task& task) {
        std::unique_lock lock(mutex_);
        tasks_.push_back(&task);
        while (n_threads_ < task.n_parts - 1 && n_threads_ < kMaxThreads && start()) ++n_threads_;
        wanted_.notify_all();
        while (task.next < task.n_parts) work_on(task, lock);
        task.finished.wait(lock, [&] { return task.done == task.n_parts; });
    }

  private:
    static constexpr int kMaxThreads = 256;

    bool start() {
        try {
            std::thread([this] { serve(); }).detach();
            return true;
        } catch (const std::system_error&) {
            return false;  // the others will do
        }
    }

    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wanted_.wait(lock, [&] { return !tasks_.empty(); });
            work_on(*tasks_.front(), lock);
        }
    }

    // Takes one part. The task may be gone afterwards, if it was the last and the caller has seen it.
    void work_on(Task& task, std::unique_lock<std::mutex>& lock) {
        const int k = task.next++;
        if (task.next == task.n_parts) std::erase(tasks_, &task);
        lock.unlock();
        task.part(task.work, k);
        lock.lock();
        if (++task.done == task.n_parts) task.finished.notify_one();
    }

    std::mutex mutex_;
    std::condition_variable wanted_;
    std::deque<Task*> tasks_;  // those with parts left
    int n_threads_ = 0;
};

// Outlives static destruction: workers sleep in it to the end.
Pool* pool = nullptr;
std::mutex pool_mutex;

Pool& the_pool() {
    const std::lock_guard lock(pool_mutex);
    if (!pool) {
        static const int registered = pthread_atfork([] { pool_mutex.lock(); }, [] { pool_mutex.unlock(); },
                                                     [] {
                                                         pool = nullptr;  // its threads are not in the child
                                                         pool_mutex.unlock();
                                                     });
        static_cast<void>(registered);
        pool = new Pool;
    }
    return *pool;
}

}  // namespace

void detail::run_parts(int n_parts, void (*part)(void*, int), void* work) {
    Task task{part, work, n_parts};
    the_pool().run(task);
}

}  // namespace pyop

// A pool of threads that compute beside the caller, and the device that carries it. They are
// started on first use and end with the process. The caller does tasks too, and in the end waits
// only for those that workers have begun.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>

#include "rltools/core/device.h"
#include "rltools/kernels/threads/handover.h"
#include "rltools/kernels/threads/processors.h"
#include "rltools/kernels/threads/punctuality.h"

namespace rlt {

namespace threads {

// Nothing is allocated here; the system allocates the threads' stacks. Where it refuses to start a
// thread, the pool works with those that it has started. The caller does all tasks alone where
// there is a single processor, and where another caller uses the pool.
class Pool {
 public:
  static constexpr int kMaxThreads = 64;

  // Set how many threads compute, the caller's among them. False, and nothing changes, where
  // `count` is not 1 to kMaxThreads, and within a task.
  bool set_threads(int count) {
    if (count < 1 || count > kMaxThreads || is_worker || is_in_task()) return false;
    take_over();
    end_workers();
    threads_ = count;
    is_complete_ = false;
    release();
    return true;
  }

  // task(index) for index = 0 .. count-1, for tasks of microseconds. They pay only where workers
  // begin at once: where these are late, the caller works alone for a number of calls
  // (punctuality.h).
  template <class Task>
  void run_tasks(int count, Task& task) {
    if (count < 2 || !take()) return run_alone(count, task);
    if (punctuality_.works_alone() || !has_workers()) {
      release();
      return run_alone(count, task);
    }
    const bool in_time = run_together(count, task);
    if (is_crowded_.load(std::memory_order_relaxed) || !in_time) {
      is_crowded_.store(false, std::memory_order_relaxed);
      punctuality_.note_late();
    } else if (handover_.claimed_by_workers() == 0) {
      punctuality_.note_unclaimed();
    } else {
      punctuality_.note_in_time();
    }
    release();
  }

  // The same for tasks that take longer than a worker takes to wake up: they are always offered to
  // the workers.
  template <class Task>
  void run_long_tasks(int count, Task& task) {
    if (count < 2 || !take()) return run_alone(count, task);
    if (!has_workers()) {
      release();
      return run_alone(count, task);
    }
    run_together(count, task);
    release();
  }

 private:
  static constexpr std::size_t kStackBytes = std::size_t(8) << 20;  // kernels keep tiles there

  // ---- The caller's part -----------------------------------------------------------------------

  template <class Task>
  static void run_alone(int count, Task& task) {
    for (int index = 0; index < count; index++) task(index);
  }

  // Do the tasks with the workers; return what await_workers() does.
  template <class Task>
  bool run_together(int count, Task& task) {
    Task* const own = &task;
    note_processor();
    handover_.offer([](const void* work, int index) { (**static_cast<Task* const*>(work))(index); },
                    &own, count, workers_);
    task(0);
    for (;;) {
      const Handover::Tasks claimed = handover_.claim_first();
      if (claimed.count() == 0) return await_workers();  // they read `own` meanwhile
      for (int index = claimed.first; index < claimed.end; index++) task(index);
    }
  }

  // Tells the workers the caller's processor. It is written only where it has changed, as the
  // workers read it before each of their tasks.
  void note_processor() {
    const int processor = current_processor();
    if (caller_processor_.load(std::memory_order_relaxed) == processor) return;
    caller_processor_.store(processor, std::memory_order_relaxed);
  }

  // Wait until the workers' tasks are done; false where that takes more than kPatientSpins.
  bool await_workers() {
    for (int spins = 0; spins < Punctuality::kPatientSpins; spins++) {
      if (handover_.are_workers_done()) return true;
      pause_core();
    }
    while (!handover_.are_workers_done()) sched_yield();
    return false;
  }

  // False where another caller has the pool.
  bool take() {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    caller_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }
  void take_over() {
    while (!take()) sched_yield();
  }
  void release() {
    caller_.store(pthread_t{}, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
  }
  bool is_in_task() const { return taken_.load() && pthread_equal(caller_, pthread_self()); }

  // ---- The workers -----------------------------------------------------------------------------

  // Start the workers where that has not been tried yet; false where there are none.
  bool has_workers() {
    if (!is_complete_) {
      is_complete_ = true;
      if (threads_ > 1 && available_processors() > 1 && is_known_to_forks()) start_workers();
    }
    return workers_ > 0;
  }

  void start_workers() {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    if (pthread_attr_setstacksize(&attributes, kStackBytes) == 0) {
      const auto serve = [](void* pool) -> void* {
        static_cast<Pool*>(pool)->serve();
        return nullptr;
      };
      while (workers_ < threads_ - 1 &&
             pthread_create(&worker_[workers_], &attributes, serve, this) == 0) {
        workers_++;
      }
    }
    pthread_attr_destroy(&attributes);
  }

  void end_workers() {
    handover_.end_workers();
    for (; workers_ > 0; workers_--) pthread_join(worker_[workers_ - 1], nullptr);
    handover_.begin_workers();
  }

  void serve() {
    is_worker = true;
    int tasks_since_move = kMinBetweenMoves;
    while (handover_.await_tasks()) {
      keep_off_caller(tasks_since_move);
      handover_.do_last();
    }
  }

  // A worker that the system has put on the caller's processor only takes the caller's time. It
  // moves to another processor, but not again before kMinBetweenMoves tasks: where it comes back
  // sooner, or may use no other, the caller works alone.
  void keep_off_caller(int& tasks_since_move) {
    const int processor = current_processor();
    if (processor < 0 || processor != caller_processor_.load(std::memory_order_relaxed)) {
      if (tasks_since_move < kMinBetweenMoves) tasks_since_move++;
      return;
    }
    const bool may_move = tasks_since_move == kMinBetweenMoves;
    tasks_since_move = 0;
    if (!may_move || !leave_processor(processor)) is_crowded_ = true;
  }

  // ---- Forks: a child has the thread that forked and no other ----------------------------------

  static inline thread_local bool is_worker = false;  // whether this thread is a pool's
  // The list of all pools that have started workers.
  static inline std::atomic<Pool*> first_started{nullptr};

  template <class Function>
  static void for_each_started(Function&& function) {
    for (Pool* pool = first_started; pool; pool = pool->next_started_) {
      function(*pool);
    }
  }

  // Has the system call this class when the process forks; false where it refuses.
  bool is_known_to_forks() {
#if defined(_WIN32)  // no process forks
    return true;
#else
    if (is_listed_) return true;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static bool is_registered = false;
    pthread_once(&once, [] {
      is_registered =
          pthread_atfork([] { for_each_started([](auto& pool) { pool.before_fork(); }); },
                         [] { for_each_started([](auto& pool) { pool.in_parent(); }); },
                         [] { for_each_started([](auto& pool) { pool.in_child(); }); }) == 0;
    });
    if (!is_registered) return false;
    next_started_ = first_started;
    while (!first_started.compare_exchange_weak(next_started_, this)) {
    }
    is_listed_ = true;
    return true;
#endif
  }

  // Wait until no task is under way but the forking thread's own. Where a worker forks, which is
  // within a task, that is not possible: the child must not use this class.
  void before_fork() {
    if (is_worker) return;
    forks_in_task_ = is_in_task();
    if (!forks_in_task_) take_over();
    handover_.suspend();
  }
  void in_parent() {
    if (is_worker) return;
    handover_.resume();
    if (!forks_in_task_) release();
  }
  void in_child() {
    if (is_worker) return;
    handover_.resume_without_workers();
    workers_ = 0;
    is_complete_ = false;
    punctuality_ = {};
    if (!forks_in_task_) release();
  }

  static constexpr int kMinBetweenMoves = 256;  // tasks of a worker

  alignas(64) std::atomic<bool> taken_{false};  // by a caller
  std::atomic<pthread_t> caller_{};             // who has taken it
  int threads_ = 2, workers_ = 0;
  bool is_complete_ = false;  // the workers were started, or refused by the system
  Punctuality punctuality_;
  alignas(64) std::atomic<int> caller_processor_{-1};
  std::atomic<bool> is_crowded_{false};  // a worker shares the caller's processor
  Handover handover_;
  pthread_t worker_[kMaxThreads - 1] = {};
  Pool* next_started_ = nullptr;
  bool is_listed_ = false, forks_in_task_ = false;
};

inline Pool pool;  // what a device has unless it is given another

}  // namespace threads

// The host's vectors with several threads. What a single one computes is HostSimd's.
struct HostSimdThreads : HostSimd {
  static constexpr int kMaxParts = 8;
  using OneWorker = HostSimd;
  threads::Pool* pool = &threads::pool;
};

template <class Task>
HostSimdThreads run_tasks(HostSimdThreads device, int count, Task&& task) {
  device.pool->run_tasks(count, task);
  return device;
}
template <class Task>
HostSimdThreads run_long_tasks(HostSimdThreads device, int count, Task&& task) {
  device.pool->run_long_tasks(count, task);
  return device;
}
inline bool set_threads(HostSimdThreads device, int count) {
  return device.pool->set_threads(count);
}

}  // namespace rlt

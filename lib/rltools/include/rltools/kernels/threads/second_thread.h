// A thread beside the caller's, and the device that carries it: started on first use, ended with
// the process. The caller does not wait for a task that the thread has not begun.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "rltools/core/device.h"
#include "rltools/kernels/threads/handover.h"
#include "rltools/kernels/threads/punctuality.h"

namespace rlt {

namespace threads {

// The processor that the calling thread is on; -1 where the system does not say.
inline int present_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Number of processors that this process may use.
inline int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// Nothing is allocated here; the system allocates the thread's stack. Where there is no second
// processor or no thread to be had, and where another caller has the thread, the caller does all
// tasks.
class SecondThread {
 public:
  // task(index) for index = 0 .. count-1
  template <class Task>
  void run_tasks(int count, Task& task) {
    if (count < 2 || !take()) {
      for (int index = 0; index < count; index++) task(index);
      return;
    }
    Task* const own = &task;
    handover_.offer([](const void* work, int index) { (**static_cast<Task* const*>(work))(index); },
                    &own, count);
    task(0);
    while (const int index = handover_.claim_first()) task(index);
    if (handover_.claimed_by_worker() == 0) {
      punctuality_.note_unclaimed();
    } else if (!await_worker() || is_on_this_processor()) {
      punctuality_.note_late();
    } else {
      punctuality_.note_in_time();
    }
    release();
  }

 private:
  enum class Start : unsigned char { untried, running, refused };
  static constexpr std::size_t kStackBytes = std::size_t(8) << 20;  // kernels keep tiles there

  // False where the caller must do all tasks.
  bool take() {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    caller_.store(pthread_self(), std::memory_order_relaxed);
    if (!punctuality_.works_alone()) {
      if (start_ == Start::untried) start_ = start() ? Start::running : Start::refused;
      if (start_ == Start::running) return true;
    }
    release();
    return false;
  }
  void release() {
    caller_.store(pthread_t{}, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
  }

  bool start() {
    if (available_processors() < 2 || !is_known_to_forks()) return false;
    pthread_t worker;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    const bool started =
        pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_create(
            &worker, &attributes,
            [](void* self) -> void* { static_cast<SecondThread*>(self)->serve(); }, this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  [[noreturn]] void serve() {
    is_worker = true;
    for (;;) {
      handover_.serve([this] { processor_.store(present_processor(), std::memory_order_relaxed); });
    }
  }

  // Until the worker's tasks are done; false where that takes longer than tasks do.
  bool await_worker() {
    for (int spins = 0; spins < Punctuality::kPatientSpins; spins++) {
      if (handover_.is_worker_done()) return true;
      pause_core();
    }
    while (!handover_.is_worker_done()) sched_yield();
    return false;
  }

  bool is_on_this_processor() const {
    const int processor = processor_.load(std::memory_order_relaxed);
    return processor >= 0 && processor == present_processor();
  }

  // ---- Forks: a child has the thread that forked and no other
  // ------------------------------------

  static inline thread_local bool is_worker = false;  // whether this thread is a second one
  // All that were started, in a list.
  static inline std::atomic<SecondThread*> first_started{nullptr};

  template <class Function>
  static void for_each_started(Function&& function) {
    for (SecondThread* thread = first_started; thread; thread = thread->next_started_) {
      function(*thread);
    }
  }

  // False where the system cannot call this class when the process forks.
  bool is_known_to_forks() {
    if (is_listed_) return true;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static bool is_registered = false;
    pthread_once(&once, [] {
      is_registered = pthread_atfork([] { for_each_started([](auto& t) { t.before_fork(); }); },
                                     [] { for_each_started([](auto& t) { t.in_parent(); }); },
                                     [] { for_each_started([](auto& t) { t.in_child(); }); }) == 0;
    });
    if (!is_registered) return false;
    next_started_ = first_started;
    while (!first_started.compare_exchange_weak(next_started_, this)) {
    }
    is_listed_ = true;
    return true;
  }

  // Waits until no task is under way but the forking thread's own. Where the worker forks, in a
  // task, nobody can wait for it; its child must not use this class.
  void before_fork() {
    if (is_worker) return;
    const bool in_task = taken_.load() && pthread_equal(caller_, pthread_self());
    while (!in_task && taken_.exchange(true, std::memory_order_acquire)) sched_yield();
    forks_in_task_ = in_task;
    if (start_ == Start::running) handover_.suspend();
  }
  void in_parent() {
    if (is_worker) return;
    if (start_ == Start::running) handover_.resume();
    if (!forks_in_task_) release();
  }
  void in_child() {
    if (is_worker) return;
    if (start_ == Start::running) handover_.resume_without_worker();
    start_ = Start::untried;
    punctuality_ = {};
    if (!forks_in_task_) release();
  }

  alignas(64) std::atomic<bool> taken_{false};  // by a caller
  std::atomic<pthread_t> caller_{};             // that has taken it
  Start start_ = Start::untried;
  Punctuality punctuality_;
  Handover handover_;
  std::atomic<int> processor_{-1};  // that the worker was on
  SecondThread* next_started_ = nullptr;
  bool is_listed_ = false, forks_in_task_ = false;
};

inline SecondThread second_thread;  // what a device has unless it is given another

}  // namespace threads

// The host's vectors with a second thread. What a single worker computes is HostSimd's.
struct HostSimdThreads : HostSimd {
  static constexpr int kWorkers = 2;
  using OneWorker = HostSimd;
  threads::SecondThread* thread = &threads::second_thread;
};

template <class Task>
HostSimdThreads run_tasks(HostSimdThreads device, int count, Task&& task) {
  device.thread->run_tasks(count, task);
  return device;
}

}  // namespace rlt

// One thread beside the caller's, for work of microseconds: it waits for the next piece by spinning
// for a bounded time, then asleep. Whoever comes first takes a piece: where the thread is late the
// caller does not wait for it. Where another process has the thread's core the caller notices by
// the delay, and works alone for a while.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rltools/core/device.h"

namespace rlt {

namespace threads {

// Tells the core that this is a loop that waits.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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

// Made on first use, ended with the process. Nothing is allocated here; the system allocates the
// thread's stack. Where there is no second processor or no thread to be had, and where the thread
// is taken already, both pieces of work are done by the caller.
class SecondThread {
 public:
  template <class First, class Second>
  void run_both(First& first, Second& second) {
    if (!take()) {
      first();
      second();
      return;
    }
    offer([](void* work) { (*static_cast<Second*>(work))(); }, &second);
    first();
    if (claim()) {
      second();
      note_late(++unclaimed_ == kUnclaimedInARow);
    } else {
      unclaimed_ = 0;
      const bool in_time = await();
      const int processor = processor_.load(std::memory_order_relaxed);
      note_late(!in_time || (processor >= 0 && processor == present_processor()));
    }
    taken_.store(false, std::memory_order_release);
  }

 private:
  enum class Start : std::uint8_t { untried, running, refused };
  // A piece of work is offered, then claimed by one of the two threads.
  enum class Work : std::uint32_t { none, offered };

  static constexpr int kSpins = 4096;  // of the waiting thread before it sleeps: some 0.1 ms
  // Of the caller, before it takes the thread for interrupted: some 0.4 ms. A time slice is longer.
  static constexpr int kPatience = 16384;
  static constexpr int kUnclaimedInARow = 256;  // more than it takes to wake up
  // Pieces of work that the caller does alone once the thread is late; doubled each time.
  static constexpr int kFewestAlone = 256, kMostAlone = 16384;
  static constexpr std::size_t kStackBytes = std::size_t(8) << 20;  // kernels keep tiles there

  // False where the caller must do both pieces: a piece within a piece, or no second thread.
  bool take() {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    if (alone_ > 0) {
      alone_--;
      taken_.store(false, std::memory_order_release);
      return false;
    }
    if (start_ == Start::untried) start_ = start() ? Start::running : Start::refused;
    if (start_ == Start::running) return true;
    taken_.store(false, std::memory_order_release);
    return false;
  }

  bool start() {
    if (available_processors() < 2) return false;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                         pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_create(
                             &thread, &attributes,
                             [](void* self) -> void* {
                               static_cast<SecondThread*>(self)->serve();
                               return nullptr;
                             },
                             this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  void offer(void (*function)(void*), void* argument) {
    function_ = function;
    argument_ = argument;
    done_.store(false, std::memory_order_relaxed);
    // With the loads in sleep() and here in one order: either the thread sees the work, or this
    // sees that the thread sleeps.
    work_.store(Work::offered, std::memory_order_seq_cst);
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    pthread_mutex_lock(&mutex_);
    pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
  }

  bool claim() {
    Work expected = Work::offered;
    return work_.compare_exchange_strong(expected, Work::none, std::memory_order_acq_rel);
  }

  // Until the piece is done, which is under way on the other thread; false where that took longer
  // than work takes.
  bool await() {
    for (int spins = 0; spins < kPatience; spins++) {
      if (done_.load(std::memory_order_acquire)) return true;
      pause_core();
    }
    while (!done_.load(std::memory_order_acquire)) sched_yield();
    return false;
  }

  void note_late(bool is_late) {
    if (is_late) {
      unclaimed_ = 0;
      alone_ = next_alone_;
      next_alone_ = next_alone_ * 2 < kMostAlone ? next_alone_ * 2 : kMostAlone;
    } else if (next_alone_ > kFewestAlone) {
      next_alone_--;
    }
  }

  void serve() {
    for (;;) {
      int spins = 0;
      while (work_.load(std::memory_order_relaxed) == Work::none && spins < kSpins) {
        pause_core();
        spins++;
      }
      if (spins == kSpins) sleep();
      if (claim()) {
        function_(argument_);
        processor_.store(present_processor(), std::memory_order_relaxed);
        done_.store(true, std::memory_order_release);
      }
    }
  }

  void sleep() {
    pthread_mutex_lock(&mutex_);
    asleep_.store(true, std::memory_order_seq_cst);
    while (work_.load(std::memory_order_seq_cst) == Work::none) {
      pthread_cond_wait(&condition_, &mutex_);
    }
    asleep_.store(false, std::memory_order_seq_cst);
    pthread_mutex_unlock(&mutex_);
  }

  // What only the caller writes, and what both write, on cache lines of their own.
  alignas(64) std::atomic<bool> taken_{false};
  Start start_ = Start::untried;
  int unclaimed_ = 0;
  int alone_ = 0;
  int next_alone_ = kFewestAlone;
  alignas(64) std::atomic<Work> work_{Work::none};
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::atomic<bool> asleep_{false};
  alignas(64) std::atomic<bool> done_{true};
  std::atomic<int> processor_{-1};  // that the thread was on
  alignas(64) pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

inline SecondThread second_thread;

}  // namespace threads

template <class First, class Second>
HostSimdThreads call_both(HostSimdThreads, First&& first, Second&& second) {
  threads::second_thread.run_both(first, second);
  return {};
}

}  // namespace rlt

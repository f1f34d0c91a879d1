// Hands tasks of microseconds from one thread, the caller, to a second one, the worker. The caller
// claims them from the first on, the worker from the last on. The worker waits for tasks by
// spinning for a bounded time, then asleep. Nothing is allocated.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

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

class Handover {
 public:
  using Task = void (*)(const void* work, int index);

  // ---- The caller's part. Between offer() and the end of all tasks it makes no other offer. ----

  // Offers the tasks 1 .. count-1; task 0 is the caller's own.
  void offer(Task task, const void* work, int count) {
    task_ = task;
    work_ = work;
    count_ = count;
    done_.store(0, std::memory_order_relaxed);
    // With the loads in wait_asleep() and here in one order: either the worker sees the tasks, or
    // this sees that the worker sleeps.
    unclaimed_.store(pack({1, count}), std::memory_order_seq_cst);
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    pthread_mutex_lock(&mutex_);
    pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
  }

  // The index of a task that is the caller's from now on; 0 where none is left.
  int claim_first() {
    return claim([](Tasks& tasks) { return tasks.first++; });
  }

  // Of tasks that the worker has claimed, which no longer changes when none is left.
  int claimed_by_worker() const { return count_ - unpack(unclaimed_.load()).end; }

  bool is_worker_done() const {
    return done_.load(std::memory_order_acquire) == claimed_by_worker();
  }

  // ---- The worker's part -----------------------------------------------------------------------

  // Does one task, when there is one; `done` is called before the caller learns of it.
  template <class Done>
  void serve(Done&& done) {
    int spins = 0;
    while (!has_tasks() && spins < kSpins) {
      pause_core();
      spins++;
    }
    if (spins == kSpins) wait_asleep();
    const int index = claim([](Tasks& tasks) { return --tasks.end; });
    if (index == 0) return;
    task_(work_, index);
    done();
    done_.fetch_add(1, std::memory_order_release);
  }

  // ---- Around a fork, while no tasks are offered or by the caller within one of its tasks ------

  // Afterwards the worker is in no task and does not hold the mutex; it stays so until resume().
  void suspend() {
    Tasks held = unpack(unclaimed_.load());
    Tasks none;
    do {
      none = {held.end, held.end};
    } while (!exchange(held, none));
    held_ = held;
    while (!is_worker_done()) pause_core();
    pthread_mutex_lock(&mutex_);
  }
  void resume() {
    unclaimed_.store(pack(held_));
    pthread_mutex_unlock(&mutex_);
  }
  // Where the worker does not exist, in the child.
  void resume_without_worker() {
    unclaimed_.store(pack(held_));
    asleep_.store(false);
    mutex_ = PTHREAD_MUTEX_INITIALIZER;
    condition_ = PTHREAD_COND_INITIALIZER;
  }

 private:
  static constexpr int kSpins = 4096;  // some 0.1 ms

  // The tasks first .. end-1 are not claimed; in one word, so that they are claimed at once.
  struct Tasks {
    int first, end;
  };
  static std::uint32_t pack(Tasks tasks) {
    return static_cast<std::uint32_t>(tasks.first) | static_cast<std::uint32_t>(tasks.end) << 16;
  }
  static Tasks unpack(std::uint32_t word) {
    return {static_cast<int>(word & 0xffffu), static_cast<int>(word >> 16)};
  }

  // Sets `wanted` where `present` is there, else loads what is.
  bool exchange(Tasks& present, Tasks wanted) {
    std::uint32_t word = pack(present);
    if (unclaimed_.compare_exchange_strong(word, pack(wanted), std::memory_order_acq_rel)) {
      return true;
    }
    present = unpack(word);
    return false;
  }

  template <class Take>
  int claim(Take&& take) {
    Tasks present = unpack(unclaimed_.load(std::memory_order_relaxed));
    while (present.first < present.end) {
      Tasks left = present;
      const int index = take(left);
      if (exchange(present, left)) return index;
    }
    return 0;
  }

  bool has_tasks() const {
    const Tasks tasks = unpack(unclaimed_.load(std::memory_order_seq_cst));
    return tasks.first < tasks.end;
  }

  void wait_asleep() {
    pthread_mutex_lock(&mutex_);
    asleep_.store(true, std::memory_order_seq_cst);
    while (!has_tasks()) pthread_cond_wait(&condition_, &mutex_);
    asleep_.store(false, std::memory_order_seq_cst);
    pthread_mutex_unlock(&mutex_);
  }

  // What one thread writes often has a cache line of its own.
  alignas(64) std::atomic<std::uint32_t> unclaimed_{0};
  Task task_ = nullptr;
  const void* work_ = nullptr;
  int count_ = 0;
  std::atomic<bool> asleep_{false};
  alignas(64) std::atomic<int> done_{0};  // by the worker
  alignas(64) pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  Tasks held_{0, 0};
};

}  // namespace threads

}  // namespace rlt

// Hands tasks from one thread, the caller, to others, the workers. The caller claims them from the
// first on, workers from the last on, a few at once while many are left. Workers wait for tasks by
// spinning for a bounded time, then asleep. Nothing is allocated, and nobody waits for a lock but
// to sleep and to wake.
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

  // The tasks first .. end-1.
  struct Tasks {
    int first, end;
    int count() const { return end - first; }
  };

  // ---- The caller's part. Between offer() and the end of all tasks it makes no other offer. ----

  // Offers the tasks 1 .. count-1 to `workers` threads; task 0 is the caller's own.
  void offer(Task task, const void* work, int count, int workers) {
    task_ = task;
    work_ = work;
    count_ = count;
    claims_.store(kClaimsOfThread * (workers + 1), std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    // With the loads in sleep() and here in one order: either a worker sees the tasks, or this sees
    // that it sleeps.
    unclaimed_.store(pack({1, count}), std::memory_order_seq_cst);
    const int asleep = asleep_.load(std::memory_order_seq_cst);
    const int missing = count - 1 - (workers - asleep);
    if (asleep > 0 && missing > 0) wake(missing < asleep ? missing : asleep);
  }

  // Tasks that are the caller's from now on; none where none is left.
  Tasks claim_first() { return claim(false); }

  // Of tasks that workers have claimed, which no longer changes when none is left.
  int claimed_by_workers() const { return count_ - unpack(unclaimed_.load()).end; }

  bool are_workers_done() const {
    return done_.load(std::memory_order_acquire) == claimed_by_workers();
  }

  // Every worker's await_tasks() is false from now on, until begin_workers().
  void end_workers() {
    is_over_.store(true, std::memory_order_seq_cst);
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&condition_);
    pthread_mutex_unlock(&mutex_);
  }
  void begin_workers() { is_over_.store(false); }

  // ---- A worker's part -------------------------------------------------------------------------

  // Returns when there are tasks, which may be another's by then; false when the workers are to
  // end.
  bool await_tasks() {
    for (int spins = 0; !has_news(); spins++) {
      if (spins == kSpins) {
        sleep();
        break;
      }
      pause_core();
    }
    return !is_over_.load(std::memory_order_relaxed);
  }

  // Does some of the tasks, where any are left.
  void do_last() {
    const Tasks own = claim(true);
    for (int index = own.end; index-- > own.first;) task_(work_, index);
    if (own.count() > 0) done_.fetch_add(own.count(), std::memory_order_release);
  }

  // ---- Around a fork, while no tasks are offered or by the caller within one of its tasks ------

  // Afterwards no worker is in a task or holds the mutex; it stays so until resume().
  void suspend() {
    Tasks held = unpack(unclaimed_.load());
    Tasks none;
    do {
      none = {held.end, held.end};
    } while (!exchange(held, none));
    held_ = held;
    while (!are_workers_done()) pause_core();
    pthread_mutex_lock(&mutex_);
  }
  void resume() {
    unclaimed_.store(pack(held_));
    pthread_mutex_unlock(&mutex_);
  }
  // Where no worker exists, in the child.
  void resume_without_workers() {
    unclaimed_.store(pack(held_));
    asleep_.store(0);
    mutex_ = PTHREAD_MUTEX_INITIALIZER;
    condition_ = PTHREAD_COND_INITIALIZER;
  }

 private:
  static constexpr int kSpins = 4096;  // some 0.1 ms
  // A claim takes one part of the tasks that are left, of so many parts for each thread: several at
  // once where many are left, single ones towards the end, where the threads must meet.
  static constexpr int kClaimsOfThread = 8;

  static std::uint64_t pack(Tasks tasks) {
    return static_cast<std::uint32_t>(tasks.first) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(tasks.end)) << 32;
  }
  static Tasks unpack(std::uint64_t word) {
    return {static_cast<int>(word & 0xffffffffu), static_cast<int>(word >> 32)};
  }

  // Sets `wanted` where `present` is there, else loads what is.
  bool exchange(Tasks& present, Tasks wanted) {
    std::uint64_t word = pack(present);
    if (unclaimed_.compare_exchange_strong(word, pack(wanted), std::memory_order_acq_rel)) {
      return true;
    }
    present = unpack(word);
    return false;
  }

  // Tasks that are the caller's or the worker's from now on; none where none is left.
  Tasks claim(bool from_last) {
    Tasks left = unpack(unclaimed_.load(std::memory_order_relaxed));
    while (left.count() > 0) {
      const int count = 1 + (left.count() - 1) / claims_.load(std::memory_order_relaxed);
      const int cut = from_last ? left.end - count : left.first + count;
      const Tasks first{left.first, cut}, last{cut, left.end};
      if (exchange(left, from_last ? first : last)) return from_last ? last : first;
    }
    return {0, 0};
  }

  // Whether there is something to do for a worker, or nothing more ever.
  bool has_news() const {
    return unpack(unclaimed_.load(std::memory_order_seq_cst)).count() > 0 ||
           is_over_.load(std::memory_order_seq_cst);
  }

  void sleep() {
    pthread_mutex_lock(&mutex_);
    asleep_.fetch_add(1, std::memory_order_seq_cst);
    while (!has_news()) pthread_cond_wait(&condition_, &mutex_);
    asleep_.fetch_sub(1, std::memory_order_seq_cst);
    pthread_mutex_unlock(&mutex_);
  }
  void wake(int workers) {
    pthread_mutex_lock(&mutex_);
    for (; workers > 0; workers--) pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
  }

  // What one thread writes often has a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> unclaimed_{0};
  Task task_ = nullptr;
  const void* work_ = nullptr;
  int count_ = 0;
  std::atomic<int> claims_{1};  // of all threads together, about
  std::atomic<int> asleep_{0};  // workers
  std::atomic<bool> is_over_{false};
  alignas(64) std::atomic<int> done_{0};  // by workers
  alignas(64) pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  Tasks held_{0, 0};
};

}  // namespace threads

}  // namespace rlt

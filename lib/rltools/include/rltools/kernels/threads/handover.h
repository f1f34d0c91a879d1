// Hands tasks from one thread, the caller, to others, the workers. The caller claims them from the
// first on, workers from the last on, a few at once while many are left: a claim is one
// compare-and-swap of a word. Workers wait for tasks by spinning for a bounded time, then asleep.
// Nothing is allocated. The mutex is used only to put workers to sleep, to wake them, and for a
// fork.
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
    // This store and the load behind it, and in sleep() the count and the load behind it, have one
    // order for all threads: either the worker sees the tasks, or the caller sees that it sleeps.
    unclaimed_.store(pack({1, count}), std::memory_order_seq_cst);
    const int asleep = asleep_.load(std::memory_order_seq_cst);
    const int missing = count - 1 - (workers - asleep);
    if (asleep > 0 && missing > 0) wake(missing < asleep ? missing : asleep);
  }

  // Take tasks for the caller; an empty range where none is left.
  Tasks claim_first() { return claim(false); }

  // Return the number of tasks that workers have claimed. It is final as soon as no task is left to
  // claim.
  int claimed_by_workers() const { return count_ - unpack(unclaimed_.load()).end; }

  bool are_workers_done() const {
    return done_.load(std::memory_order_acquire) == claimed_by_workers();
  }

  // await_tasks() returns false to every worker, until begin_workers().
  void end_workers() {
    is_over_.store(true, std::memory_order_seq_cst);
    pthread_mutex_lock(&mutex_);
    pthread_cond_broadcast(&condition_);
    pthread_mutex_unlock(&mutex_);
  }
  void begin_workers() { is_over_.store(false); }

  // ---- A worker's part -------------------------------------------------------------------------

  // Wait for tasks. True: there were some, which others may have claimed meanwhile. False: the
  // worker is to end.
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

  // Claim tasks, where any are left, and do them.
  void do_last() {
    const Tasks own = claim(true);
    for (int index = own.end; index-- > own.first;) task_(work_, index);
    if (own.count() > 0) done_.fetch_add(own.count(), std::memory_order_release);
  }

  // ---- Around a fork, while no tasks are offered or by the caller within one of its tasks ------

  // Take back the tasks that are not claimed, wait for the workers' tasks and lock the mutex, so
  // that no worker is in a task or holds the mutex until resume().
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
  // resume() in the child of the fork, where no worker exists.
  void resume_without_workers() {
    unclaimed_.store(pack(held_));
    asleep_.store(0);
    mutex_ = PTHREAD_MUTEX_INITIALIZER;
    condition_ = PTHREAD_COND_INITIALIZER;
  }

 private:
  static constexpr int kSpins = 4096;  // some 0.1 ms
  // A claim takes 1 / (kClaimsOfThread * threads) of the tasks that are left, at least one: several
  // at once while many are left, single ones toward the end, so that the threads end together.
  static constexpr int kClaimsOfThread = 8;

  static std::uint64_t pack(Tasks tasks) {
    return static_cast<std::uint32_t>(tasks.first) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(tasks.end)) << 32;
  }
  static Tasks unpack(std::uint64_t word) {
    return {static_cast<int>(word & 0xffffffffu), static_cast<int>(word >> 32)};
  }

  // Replaces `present` by `wanted`. False where the tasks are others than `present`, which is then
  // set to what they are.
  bool exchange(Tasks& present, Tasks wanted) {
    std::uint64_t word = pack(present);
    if (unclaimed_.compare_exchange_strong(word, pack(wanted), std::memory_order_acq_rel)) {
      return true;
    }
    present = unpack(word);
    return false;
  }

  // Take tasks from the first on, or from the last on; an empty range where none is left.
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

  // Return whether there are tasks, or the workers are to end.
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

  // Each group that another thread writes often begins a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> unclaimed_{0};
  Task task_ = nullptr;
  const void* work_ = nullptr;
  int count_ = 0;
  std::atomic<int> claims_{1};  // kClaimsOfThread * threads
  std::atomic<int> asleep_{0};  // how many workers sleep
  std::atomic<bool> is_over_{false};
  alignas(64) std::atomic<int> done_{0};  // how many tasks workers have done
  alignas(64) pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  Tasks held_{0, 0};  // taken back by suspend()
};

}  // namespace threads

}  // namespace rlt

// A block of a GPU's threads that trains one agent. One of them, the leader, runs the program as it
// stands; the others wait for its operations, and share their elements. An element is computed by
// one thread, as the reference computes it, so that the bits are the reference's.
//
// An operation is a phase, or some of them: run(task) calls task(thread) for every thread, and
// returns when all are done. A task is a copy that the threads have in common. It may point to the
// agent's memory, and never to the leader's own: its stack is not in the other threads' reach.
//
// On a host (boards/host-block.json, and the tests) a loop takes the threads' place, from the first
// to the last or the other way around: a phase whose threads need each other's results computes
// other bits then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rltools/core/device.h"

namespace rlt {

namespace block {

constexpr int kThreads = 256;            // that share the operations: 8 warps
constexpr int kMaxTaskBytes = 1024;      // of a task with what it has captured
constexpr int kMaxCopied = 1024;         // numbers that the leader gives to a task, or gets from it
constexpr int kMinElementsToShare = 16;  // fewer take the leader no longer than a phase

// What the threads have in common.
struct Threads {
  alignas(16) unsigned char task[kMaxTaskBytes];
  alignas(16) unsigned char copied_input[4 * kMaxCopied], copied_output[4 * kMaxCopied];

  // Memory for `Count` numbers that a task leaves for the leader.
  template <class T, int Count>
  T* results() {
    static_assert(sizeof(T) * Count <= sizeof copied_output);
    return reinterpret_cast<T*>(copied_output);
  }

#if defined(__NVPTX__)
  void (*function)(const void* task, int thread);  // null: the program has ended

  template <class Task>
  static void call(const void* task, int thread) {
    (*static_cast<const Task*>(task))(thread);
  }
  template <class Task>
  void run(const Task& own) {
    static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) <= kMaxTaskBytes);
    __builtin_memcpy(task, &own, sizeof own);
    function = &call<Task>;
    __nvvm_barrier_sync(0);
    __nvvm_barrier_sync(0);
  }
  // What every thread but the leader does.
  void serve(int thread) {
    for (;;) {
      __nvvm_barrier_sync(0);
      if (function == nullptr) return;
      function(task, thread);
      __nvvm_barrier_sync(0);
    }
  }
  // End it.
  void dismiss() {
    function = nullptr;
    __nvvm_barrier_sync(0);
  }
  static bool is_private(const void* address) { return __nvvm_isspacep_local(address); }
#else
  bool is_reversed = false;

  template <class Task>
  void run(const Task& own) {
    static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) <= kMaxTaskBytes);
    __builtin_memcpy(task, &own, sizeof own);
    Task& common = *reinterpret_cast<Task*>(task);
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&common);  // it may hold anything
    require_shared(sizeof own);
#endif
    for (int i = 0; i < kThreads; i++) common(is_reversed ? kThreads - 1 - i : i);
  }
  static bool is_private(const void* address) {
    return is_on_stack(reinterpret_cast<std::uintptr_t>(address));
  }

 private:
  // Return whether an address is above this function's frame, and near it.
  [[gnu::noinline]] static bool is_on_stack(std::uintptr_t address) {
    constexpr std::uintptr_t kMaxStack = std::uintptr_t{8} << 20u;
    return address - reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < kMaxStack;
  }
  // End the program where a task points to the leader's stack: a GPU's threads would read their
  // own.
  void require_shared(std::size_t bytes) const {
    for (std::size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
      std::uintptr_t word;
      __builtin_memcpy(&word, task + at, sizeof word);
      if (is_on_stack(word)) __builtin_trap();
    }
  }
#endif
};

#if !defined(__NVPTX__)
inline Threads threads;  // what a device has unless it is given others
#endif

}  // namespace block

struct Block : Generic {
#if defined(__NVPTX__)
  block::Threads* threads;
#else
  block::Threads* threads = &block::threads;
#endif
};

namespace block {

template <class... Pointers>
bool are_shared(const Pointers*... pointers) {
  return (!Threads::is_private(pointers) && ...);
}

// Call task(i) for i = 0 .. count-1, shared by the threads unless there are few or one of the
// arrays is the leader's own. The count is an int, or a constant that converts to one.
template <class Number, class Task, class... Arrays>
Block for_each_element(Block device, Number count, const Task& task, const Arrays*... arrays) {
  if (count >= kMinElementsToShare && are_shared(arrays...)) {
    device.threads->run([task, count](int thread) {
      for (int i = thread; i < count; i += kThreads) task(i);
    });
  } else {
    for (int i = 0; i < count; i++) task(i);
  }
  return device;
}
template <int Count, class Task, class... Arrays>
Block for_each_element(Block device, const Task& task, const Arrays*... arrays) {
  return for_each_element(device, std::integral_constant<int, Count>{}, task, arrays...);
}

// An array of `count` numbers of four bytes as a task may have it: a short one of the leader's own
// is copied.
template <class T>
struct Input {
  const T* data;

  Input(Block device, const T* array, int count) : data(array) {
    if (count > kMaxCopied || !Threads::is_private(array)) return;
    T* copy = reinterpret_cast<T*>(device.threads->copied_input);
    for (int i = 0; i < count; i++) copy[i] = array[i];
    data = copy;
  }
};
template <class T>
struct Output {
  T *data, *own;
  int count;

  Output(Block device, T* array, int length) : data(array), own(array), count(length) {
    if (count > kMaxCopied || !Threads::is_private(array)) return;
    data = reinterpret_cast<T*>(device.threads->copied_output);
  }
  void copy_back() const {
    if (data == own) return;
    for (int i = 0; i < count; i++) own[i] = data[i];
  }
};

}  // namespace block

}  // namespace rlt

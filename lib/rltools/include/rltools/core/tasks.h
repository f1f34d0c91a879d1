// Work that is divided into tasks. No task reads or writes what another one writes, so that they
// may be done one after another, or at once on a device with workers (threads). The bits are the
// same with any number of workers, which is known at run time only.
//
// A device with workers defines kMaxParts, the largest number of parts into which an array is
// divided for them, and OneWorker, a base of the device with which a single worker computes. Tasks
// are given a OneWorker, so that a task cannot start tasks of its own on the workers.
#pragma once

#include <type_traits>

#include "rltools/core/device.h"

namespace rlt {

template <class Device, class = void>
struct WorkersOf {
  static constexpr int kMaxParts = 1;
  using OneWorker = Device;
};
template <class Device>
struct WorkersOf<Device, std::void_t<decltype(Device::kMaxParts)>> {
  static constexpr int kMaxParts = Device::kMaxParts;
  using OneWorker = typename Device::OneWorker;
};

// The operations that devices with workers override: task(index) for index = 0 .. count-1.
// run_tasks() is for tasks that take some microseconds, all about the same time.
template <class Task>
Generic run_tasks(Generic device, int count, Task&& task) {
  for (int index = 0; index < count; index++) task(index);
  return device;
}
// run_long_tasks() is for tasks that take ten microseconds or more, and need not take the same
// time.
template <class Task>
Generic run_long_tasks(Generic device, int count, Task&& task) {
  return run_tasks(device, count, task);
}

// Set how many threads compute; false where the device cannot have so many. One without workers
// has one.
inline bool set_threads(Generic, int count) { return count == 1; }

// function(one_worker, index) for index = 0 .. count-1, such as the environments of a rollout:
// tasks of ten microseconds and more, of which each worker takes the next when it is done with one.
template <class Device, class Function>
void for_each_index(Device device, int count, Function&& function) {
  const typename WorkersOf<Device>::OneWorker one_worker = device;
  run_long_tasks(device, count, [&](int index) { function(one_worker, index); });
}

namespace detail {

template <int Index, int Count, class Device, class Function>
void call_with_index(Device device, int index, Function& function) {
  if constexpr (Index + 1 < Count) {
    if (index != Index) return call_with_index<Index + 1, Count>(device, index, function);
  }
  function(device, std::integral_constant<int, Index>{});
}

}  // namespace detail

// function(one_worker, integral_constant) for 0 .. Count-1, as tasks
template <int Count, class Device, class Function>
void for_each_task(Device device, Function&& function) {
  const typename WorkersOf<Device>::OneWorker one_worker = device;
  run_tasks(device, Count,
            [&](int index) { detail::call_with_index<0, Count>(one_worker, index, function); });
}

// The elements [kFirst, kFirst + kCount) of an array, or rows of a batch.
template <int First, int Count>
struct Range {
  static constexpr int kFirst = First;
  static constexpr int kCount = Count;
};

// Count elements in Parts ranges: where range `index` begins, a multiple of Multiple.
template <int Count, int Parts, int Multiple>
constexpr int range_begin(int index) {
  const int units = (Count + Multiple - 1) / Multiple;
  const int begin = (units * index + Parts - 1) / Parts * Multiple;
  return begin < Count ? begin : Count;
}
template <int Count, int Parts, int Multiple, int Index>
using RangeOf = Range<range_begin<Count, Parts, Multiple>(Index),
                      range_begin<Count, Parts, Multiple>(Index + 1) -
                          range_begin<Count, Parts, Multiple>(Index)>;

// function(device, Range) for all of Count elements, in Parts ranges for the workers; where that is
// one, or there are too few elements, all of them with the whole device.
template <int Count, int Parts, int Multiple = 1, class Device, class Function>
void for_ranges(Device device, Function&& function) {
  if constexpr (Parts > 1 && Count >= Parts * Multiple) {
    for_each_task<Parts>(device, [&](auto one_worker, auto index) {
      function(one_worker, RangeOf<Count, Parts, Multiple, decltype(index)::value>{});
    });
  } else {
    function(device, Range<0, Count>{});
  }
}

// Return into how many parts work is divided. Below `min_operations` (some microseconds) into one:
// handing a part over would cost more than it gains. From there on into two, and into more, up to
// kMaxParts, where each part has `part` operations or more: each part has a cost, which two
// workers would not regain.
template <class Device>
constexpr int parts_of(long operations, long min_operations, long part) {
  constexpr int kMaxParts = WorkersOf<Device>::kMaxParts;
  if (kMaxParts < 2 || operations < min_operations) return 1;
  const long parts = operations / part;
  return parts < 2 ? 2 : parts < kMaxParts ? static_cast<int>(parts) : kMaxParts;
}

constexpr long kMinMultiplyAddsToShare = 100000, kMultiplyAddsOfPart = 400000;

template <class Device>
constexpr int parts_of_product(long multiply_adds) {
  return parts_of<Device>(multiply_adds, kMinMultiplyAddsToShare, kMultiplyAddsOfPart);
}

// The same for the rows of a batch.
template <int Rows, long MultiplyAddsPerRow, class Device, class Function>
void for_rows(Device device, Function&& function) {
  for_ranges<Rows, parts_of_product<Device>(Rows * MultiplyAddsPerRow)>(device, function);
}

}  // namespace rlt

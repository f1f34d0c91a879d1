// Work that is done in tasks, none of which reads or writes what another one writes: one after
// another, or at once on a device with several workers. The bits are the same.
//
// A device that has workers names their number, at most, as kWorkers, and its base that a single
// worker computes with as OneWorker. A task gets that base: workers do not nest.
#pragma once

#include <type_traits>

#include "rltools/core/device.h"

namespace rlt {

template <class Device, class = void>
struct WorkersOf {
  static constexpr int kCount = 1;
  using OneWorker = Device;
};
template <class Device>
struct WorkersOf<Device, std::void_t<decltype(Device::kWorkers)>> {
  static constexpr int kCount = Device::kWorkers;
  using OneWorker = typename Device::OneWorker;
};

// The operation that devices override: task(index) for index = 0 .. count-1.
template <class Task>
Generic run_tasks(Generic device, int count, Task&& task) {
  for (int index = 0; index < count; index++) task(index);
  return device;
}

// function(one_worker, index) for index = 0 .. count-1, as tasks.
template <class Device, class Function>
void for_each_index(Device device, int count, Function&& function) {
  const typename WorkersOf<Device>::OneWorker one_worker = device;
  run_tasks(device, count, [&](int index) { function(one_worker, index); });
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

// function(device, Range) for all of Count elements: a range for each worker where they are
// `Shared`, else all of them with the whole device.
template <int Count, bool Shared, int Multiple = 1, class Device, class Function>
void for_ranges(Device device, Function&& function) {
  constexpr int kWorkers = WorkersOf<Device>::kCount;
  if constexpr (Shared && kWorkers > 1 && Count >= kWorkers * Multiple) {
    for_each_task<kWorkers>(device, [&](auto one_worker, auto index) {
      function(one_worker, RangeOf<Count, kWorkers, Multiple, decltype(index)::value>{});
    });
  } else {
    function(device, Range<0, Count>{});
  }
}

// Below this number of multiply-adds (some microseconds) handing over costs more than it gains.
constexpr long kFewestMultiplyAddsToShare = 100000;

// The same for the rows of a batch, shared where they are enough work.
template <int Rows, long MultiplyAddsPerRow, class Device, class Function>
void for_rows(Device device, Function&& function) {
  for_ranges<Rows, Rows * MultiplyAddsPerRow >= kFewestMultiplyAddsToShare>(device, function);
}

}  // namespace rlt

// Two pieces of work that do not touch what the other writes: one after another, or at once on a
// device with a second thread. The bits are the same.
#pragma once

#include <type_traits>

#include "rltools/core/device.h"

namespace rlt {

// The device of each piece of work: a tag with a second thread names another one as its OneThread,
// since the second thread is taken while both run.
template <class Device, class = void>
struct OneThreadOf {
  static constexpr bool kHasSecondThread = false;
  using Type = Device;
};
template <class Device>
struct OneThreadOf<Device, std::void_t<typename Device::OneThread>> {
  static constexpr bool kHasSecondThread = true;
  using Type = typename Device::OneThread;
};

// The operation that devices override; the functions take no arguments.
template <class First, class Second>
Generic call_both(Generic, First&& first, Second&& second) {
  first();
  second();
  return {};
}

// Calls first(one_thread) and second(one_thread), in any order or at once.
template <class Device, class First, class Second>
void run_both(Device device, First&& first, Second&& second) {
  const typename OneThreadOf<Device>::Type one_thread{};
  call_both(device, [&] { first(one_thread); }, [&] { second(one_thread); });
}

// The rows [kFirst, kFirst + kCount) of a batch.
template <int First, int Count>
struct RowRange {
  static constexpr int kFirst = First;
  static constexpr int kCount = Count;
};

// Below this number of multiply-adds (some microseconds) handing over costs more than it gains.
constexpr long kFewestMultiplyAddsToSplit = 100000;

// Calls function(device, RowRange) for all rows: one half on each thread where there are two and
// enough work.
template <int Rows, long MultiplyAddsPerRow, class Device, class Function>
void for_rows(Device device, Function&& function) {
  if constexpr (OneThreadOf<Device>::kHasSecondThread && Rows > 1 &&
                Rows * MultiplyAddsPerRow >= kFewestMultiplyAddsToSplit) {
    constexpr int kHalf = (Rows + 1) / 2;
    run_both(
        device, [&](auto one_device) { function(one_device, RowRange<0, kHalf>{}); },
        [&](auto one_device) { function(one_device, RowRange<kHalf, Rows - kHalf>{}); });
  } else {
    function(device, RowRange<0, Rows>{});
  }
}

}  // namespace rlt

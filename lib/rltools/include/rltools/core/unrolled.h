// Calls repeated a fixed number of times without a loop. In code that is stepped in lanes
// (core/lanes.h) the only loop is to be the one over the lanes.
#pragma once

#include <utility>

namespace rlt {

template <class Function, int... I>
[[gnu::always_inline]] constexpr void unrolled(Function&& function,
                                               std::integer_sequence<int, I...>) {
  (function(I), ...);
}
// function(0) to function(Count - 1), one after the other.
template <int Count, class Function>
[[gnu::always_inline]] constexpr void unrolled(Function&& function) {
  unrolled(function, std::make_integer_sequence<int, Count>{});
}

}  // namespace rlt

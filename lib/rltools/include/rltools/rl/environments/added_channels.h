// What wrappers need that put channels behind an environment's observations: texts that are made
// when the program is compiled, and the ticks of a step.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::detail {

// A text that is put together when the program is compiled, of fewer bytes than Capacity.
template <int Capacity>
struct ConstantText {
  char characters[Capacity]{};
  int length = 0;

  constexpr bool fits() const { return length < Capacity; }
  constexpr void add(char character) {
    if (length + 1 < Capacity) characters[length] = character;
    length++;
  }
  constexpr ConstantText& add(const char* text) {
    for (; *text != '\0'; text++) add(*text);
    return *this;
  }
  constexpr ConstantText& add(int number) {
    if (number >= 10) add(number / 10);
    add(static_cast<char>('0' + number % 10));
    return *this;
  }
};

constexpr int kChannelNameBytes = 24, kEnvironmentNameBytes = 32;  // of a policy image

// Ticks of the contract's rate that a step lasts; an environment that acts less often than the
// place where its policies are to act states `kTicksPerStep`.
template <class E, class = void>
struct TicksPerStep {
  static constexpr int kCount = 1;
};
template <class E>
struct TicksPerStep<E, typename VoidOf<decltype(E::kTicksPerStep)>::Type> {
  static constexpr int kCount = E::kTicksPerStep;
  static_assert(kCount >= 1, "a step lasts a tick at least: kTicksPerStep");
};

}  // namespace rlt::detail

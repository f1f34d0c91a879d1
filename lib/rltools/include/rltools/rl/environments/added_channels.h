// Lists and texts for environments that put channels behind another's observations, made when the
// program is compiled.
#pragma once

#include "rltools/core/unrolled.h"
#include "rltools/rl/environment.h"

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

template <int Count>
struct ChannelList {
  Channel of[Count];
};

// Return the observations of E, and `own` behind them.
template <class E, int Count>
constexpr ChannelList<E::kObservationDim + Count> with_channels(const ChannelList<Count>& own) {
  ChannelList<E::kObservationDim + Count> all{};
  for (int i = 0; i < E::kObservationDim; i++) all.of[i] = E::kObservations[i];
  for (int i = 0; i < Count; i++) all.of[E::kObservationDim + i] = own.of[i];
  return all;
}

// Insert `added` (Count) behind the policy's observations of E; the critics' come last.
template <class E, int Count, class T>
void insert_observations(const T* added, T* observation) {
  constexpr int kLast = kCriticObservationDim<E> - 1;
  unrolled<kCriticObservationDim<E> - E::kObservationDim>(
      [&](int i) { observation[Count + kLast - i] = observation[kLast - i]; });
  unrolled<Count>([&](int i) { observation[E::kObservationDim + i] = added[i]; });
}

constexpr int kChannelNameBytes = 24, kEnvironmentNameBytes = 32;  // of a policy image

}  // namespace rlt::detail

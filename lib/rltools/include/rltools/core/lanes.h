// Many structs of a kind side by side: the same field of kLaneCount of them is one row, so that a
// loop over them loads and stores whole vectors. Structs lie in memory one after the other; what
// turns one order into the other is transpose_words(), which a device does with its vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rltools/core/device.h"
#include "rltools/core/unrolled.h"

// Attribute of functions that hold a loop over lanes: it lets the compiler see all of it, and take
// the widest vectors there are, which GCC does not by itself on every processor that has them. The
// choice is a function's own, and lost where that becomes part of another.
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
#define RLT_LOOP_OVER_LANES [[gnu::flatten, gnu::noinline, gnu::target("prefer-vector-width=512")]]
#else
#define RLT_LOOP_OVER_LANES [[gnu::flatten]]
#endif

namespace rlt {

// As many as the widest vectors have numbers of 4 bytes.
constexpr int kLaneCount = 16;

// True if a device transposes quickly enough for lanes to be worth their while (kernels/simd).
constexpr std::false_type transposes_fast(Generic) { return {}; }

namespace detail {

struct FieldSizes {
  std::size_t words = 0;
  bool all_are_words = true;
  template <class Field>
  constexpr void operator()(const char*, const Field&) {
    using Number = std::remove_all_extents_t<Field>;
    all_are_words = all_are_words && sizeof(Number) == 4;
    words += sizeof(Field) / 4;
  }
};

template <class Struct>
constexpr FieldSizes field_sizes() {
  FieldSizes sizes;
  Struct{}.for_each_field(sizes);
  return sizes;
}

}  // namespace detail

// True if every field of a struct that lists its fields has 4 bytes; and the number of fields.
template <class Struct>
constexpr bool kIsOfWords = detail::field_sizes<Struct>().all_are_words &&
                            detail::field_sizes<Struct>().words * 4 == sizeof(Struct);
template <class Struct>
constexpr int kWords = static_cast<int>(detail::field_sizes<Struct>().words);

// Row k is word k of each struct.
template <int Words>
struct alignas(64) Lanes {
  float word[Words][kLaneCount];
};
template <>
struct Lanes<0> {};

namespace detail {

template <int Words>
struct ReadLane {
  const Lanes<Words>& lanes;
  int lane, next = 0;

  template <class Number>
  [[gnu::always_inline]] constexpr void operator()(const char*, Number& field) {
    __builtin_memcpy(&field, &lanes.word[next++][lane], 4);
  }
  template <class Number, std::size_t Count>
  [[gnu::always_inline]] constexpr void operator()(const char*, Number (&field)[Count]) {
    unrolled<static_cast<int>(Count)>([&](int i) { (*this)("", field[i]); });
  }
};

template <int Words>
struct WriteLane {
  Lanes<Words>& lanes;
  int lane, next = 0;

  template <class Number>
  [[gnu::always_inline]] constexpr void operator()(const char*, const Number& field) {
    __builtin_memcpy(&lanes.word[next++][lane], &field, 4);
  }
  template <class Number, std::size_t Count>
  [[gnu::always_inline]] constexpr void operator()(const char*, const Number (&field)[Count]) {
    unrolled<static_cast<int>(Count)>([&](int i) { (*this)("", field[i]); });
  }
};

}  // namespace detail

// One of the structs, field by field, and back.
template <class Struct>
[[gnu::always_inline]] inline void read_lane(const Lanes<kWords<Struct>>& lanes, int lane,
                                             Struct& to) {
  to.for_each_field(detail::ReadLane<kWords<Struct>>{lanes, lane});
}
template <class Struct>
[[gnu::always_inline]] inline void write_lane(Lanes<kWords<Struct>>& lanes, int lane,
                                              const Struct& from) {
  from.for_each_field(detail::WriteLane<kWords<Struct>>{lanes, lane});
}
// The same of an array.
template <int Words>
[[gnu::always_inline]] inline void read_array(const Lanes<Words>& lanes, int lane,
                                              float (&to)[Words]) {
  detail::ReadLane<Words>{lanes, lane}("", to);
}
template <int Words>
[[gnu::always_inline]] inline void write_array(Lanes<Words>& lanes, int lane,
                                               const float (&from)[Words]) {
  detail::WriteLane<Words>{lanes, lane}("", from);
}

// kLaneCount structs of `Words` words each, one after the other, into lanes, and back.
template <int Words>
void transpose_words(Generic, const void* structs, Lanes<Words>& lanes) {
  const auto* bytes = static_cast<const unsigned char*>(structs);
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < Words; k++) {
      __builtin_memcpy(&lanes.word[k][lane], bytes + (lane * Words + k) * 4, 4);
    }
  }
}
template <int Words>
void transpose_words(Generic, const Lanes<Words>& lanes, void* structs) {
  auto* bytes = static_cast<unsigned char*>(structs);
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < Words; k++) {
      __builtin_memcpy(bytes + (lane * Words + k) * 4, &lanes.word[k][lane], 4);
    }
  }
}

}  // namespace rlt

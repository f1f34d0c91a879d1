// Structs into lanes and back: the host's vectors against the plain loops.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "rltools/devices/host.h"

namespace rlt {

template <int Words>
void check_transposition() {
  CAPTURE(Words);
  constexpr int kCount = kLaneCount * Words;
  constexpr std::uint32_t kUntouched = 0xdeadbeefu;
  std::vector<std::uint32_t> structs(kCount + 1, kUntouched), back = structs;
  // Also the bits of what is no number, which must come through.
  for (int i = 0; i < kCount; i++) structs[i] = 0x7f800000u + static_cast<std::uint32_t>(i);
  Lanes<Words> plain, lanes;
  transpose_words(Generic{}, structs.data(), plain);
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < Words; k++) {
      REQUIRE(math::to_bits(plain.word[k][lane]) == structs[lane * Words + k]);
    }
  }
  transpose_words(Host{}, structs.data(), lanes);
  CHECK(std::memcmp(&lanes, &plain, sizeof lanes) == 0);
  transpose_words(Host{}, lanes, back.data());
  structs[kCount] = kUntouched;  // nothing beyond is written
  CHECK(back == structs);
  std::fill(back.begin(), back.end(), kUntouched);
  transpose_words(Generic{}, lanes, back.data());
  CHECK(back == structs);
}

template <int... Words>
void check_transpositions() {
  (check_transposition<Words>(), ...);
}

TEST_CASE("structs of any number of words are transposed into lanes and back") {
  static_assert(!decltype(transposes_fast(Generic{}))::value);
  static_assert(decltype(transposes_fast(Host{}))::value == (kernels::kLanes > 1));
  check_transpositions<1, 3, 4, 7, 8, 16, 17, 33, 44>();
}

}  // namespace rlt

// Structs side by side: which word of which struct is where, of the plain loops. What a device's
// vectors make of it: tests/lib/kernels/simd; what is stepped in lanes:
// tests/lib/rl/test_lanes.cpp.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "rltools/core/fields.h"
#include "rltools/core/lanes.h"

using namespace rlt;

namespace {

using Pair = float[2];
#define LANE_FIELDS(X) X(float, one) X(Pair, two) X(std::uint32_t, four)
RLT_DEFINE_FIELDS(Fields, LANE_FIELDS)
#define LONG_FIELDS(X) X(float, one) X(double, two)
RLT_DEFINE_FIELDS(Long, LONG_FIELDS)
#define SHORT_FIELDS(X) X(float, one) X(std::uint8_t, two)
RLT_DEFINE_FIELDS(Short, SHORT_FIELDS)

static_assert(kIsOfWords<Fields> && kWords<Fields> == 4);
static_assert(!kIsOfWords<Long> && !kIsOfWords<Short>);

// Word `k` of struct `lane`.
std::uint32_t number(int lane, int k) { return static_cast<std::uint32_t>(100 * lane + k + 1); }
std::uint32_t word_of(const float& value) {
  std::uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

}  // namespace

TEST_CASE("row k has word k of each struct, there and back") {
  std::uint32_t structs[kLaneCount][4], back[kLaneCount][4] = {};
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < 4; k++) structs[lane][k] = number(lane, k);
  }
  Lanes<4> lanes{};
  transpose_words(Generic{}, structs, lanes);
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < 4; k++) CHECK(word_of(lanes.word[k][lane]) == number(lane, k));
  }
  transpose_words(Generic{}, lanes, back);
  CHECK(std::memcmp(back, structs, sizeof structs) == 0);
}

TEST_CASE("a struct and an array are read from their lane, and written there alone") {
  std::uint32_t structs[kLaneCount][4];
  for (int lane = 0; lane < kLaneCount; lane++) {
    for (int k = 0; k < 4; k++) structs[lane][k] = number(lane, k);
  }
  Lanes<4> lanes, copy{};
  transpose_words(Generic{}, structs, lanes);
  for (int lane = 0; lane < kLaneCount; lane++) {
    Fields fields;
    float array[4];
    read_lane(lanes, lane, fields);
    read_array(lanes, lane, array);
    CHECK(word_of(fields.one) == number(lane, 0));
    CHECK(word_of(fields.two[0]) == number(lane, 1));
    CHECK(word_of(fields.two[1]) == number(lane, 2));
    CHECK(fields.four == number(lane, 3));
    CHECK(std::memcmp(array, &fields, sizeof array) == 0);
    if (lane % 2 == 0) write_lane(copy, lane, fields);
    if (lane % 2 == 1) write_array(copy, lane, array);
  }
  CHECK(std::memcmp(&copy, &lanes, sizeof lanes) == 0);
}

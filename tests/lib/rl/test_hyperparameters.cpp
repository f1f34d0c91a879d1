// Hyperparameters: the list's struct, table and access by index, for a list of this test and for
// TD3's.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

using namespace rlt;

#define RLT_TEST_HYPERPARAMETERS(X)                                              \
  X(std::uint32_t, count, 3, 1, 10, "items", "A whole number.")                  \
  X(float, rate, 0.25, -0.5, 1, "1/s", "A fraction.")                            \
  X(std::uint32_t, any_whole_number, 7, 0, 4294967295.0, "", "All of uint32_t.") \
  X(float, sixteen_letters_, 1e-8, 1e-30, 1, "", "A name as long as MAVLink allows.")

RLT_DEFINE_HYPERPARAMETERS(TestHyperparameters, RLT_TEST_HYPERPARAMETERS)

namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Set by bits, read back as the same bits, in the member of that name and no other.
template <class H>
bool accepts(int index, std::uint32_t bits) {
  H hyperparameters;
  std::uint32_t before[64];
  for (int i = 0; i < H::kCount; i++) before[i] = hyperparameters.get_bits(i);
  const bool accepted = hyperparameters.set_bits(index, bits);
  for (int i = 0; i < H::kCount; i++) {
    const std::uint32_t expected = accepted && i == index ? bits : before[i];
    CHECK(hyperparameters.get_bits(i) == expected);
  }
  return accepted;
}

}  // namespace

TEST_CASE("bounds belong to the range, what is beyond is refused and changes nothing") {
  using H = TestHyperparameters;
  for (const std::uint32_t good : {1u, 2u, 10u}) CHECK(accepts<H>(0, good));
  for (const std::uint32_t bad : {0u, 11u, 4294967295u}) CHECK_FALSE(accepts<H>(0, bad));
  for (const float good : {-0.5f, -0.0f, 0.0f, 1e-45f, 1.0f}) {
    CHECK(accepts<H>(1, bits_of(good)));
  }
  for (const float bad : {-0.50000006f, 1.0000001f, 3e38f}) {
    CHECK_FALSE(accepts<H>(1, bits_of(bad)));
  }
  for (const std::uint32_t good : {0u, 1u << 31, 16777217u, 4294967295u}) {
    CHECK(accepts<H>(2, good));
  }
  CHECK_FALSE(accepts<H>(3, bits_of(0.0f)));
  CHECK_FALSE(accepts<H>(3, bits_of(9e-31f)));
}

TEST_CASE("what is not a finite number is refused") {
  using Limits = std::numeric_limits<float>;
  for (int i = 0; i < Td3Hyperparameters::kCount; i++) {
    if (Td3Hyperparameters::info(i).type != DataType::f32) continue;
    CAPTURE(Td3Hyperparameters::info(i).name);
    CHECK_FALSE(accepts<Td3Hyperparameters>(i, bits_of(Limits::infinity())));
    CHECK_FALSE(accepts<Td3Hyperparameters>(i, bits_of(-Limits::infinity())));
    for (const std::uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
      CHECK_FALSE(accepts<Td3Hyperparameters>(i, nan));
    }
  }
}

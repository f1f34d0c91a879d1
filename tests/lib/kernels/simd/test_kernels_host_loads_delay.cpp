// Test: kernel_agreement address
// The host's kernels as they are chosen for a core with 512-bit units whose loads delay its
// multiply-adds. Where this machine's core is one, test_kernels_host.cpp compiles and tests these
// already, and test_kernels_host_512_bit_units.cpp those of one whose loads do not.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel_agreement.h"

#if defined(__AVX512F__)
#define RLT_UNIT_BITS 512
#define RLT_LOADS_DELAY 1
#include "rltools/devices/host.h"
static_assert(rlt::kernels::kWideUnits && rlt::kernels::kLoadsDelay);

TEST_CASE("the kernels for a core whose loads delay multiply-adds give the reference's bits") {
  CHECK(rlt::kernels::kKindOfCore == doctest::String("512-bit units that loads delay"));
  kernel_agreement::run_briefly<rlt::Host>();
}

TEST_CASE("ReLU by class of number gives the bits of a comparison") {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> interesting = {0.0f,
                                          -0.0f,
                                          1.0f,
                                          -1.0f,
                                          0.75f,
                                          -3.5f,
                                          Limits::max(),
                                          -Limits::max(),
                                          Limits::min(),
                                          -Limits::min(),
                                          Limits::denorm_min(),
                                          -Limits::denorm_min(),
                                          Limits::infinity(),
                                          -Limits::infinity(),
                                          Limits::quiet_NaN(),
                                          -Limits::quiet_NaN()};
  REQUIRE(interesting.size() == rlt::kernels::kLanes);
  const auto sums = rlt::kernels::load(interesting.data());
  float found[rlt::kernels::kLanes], expected[rlt::kernels::kLanes];
  rlt::kernels::store(found, rlt::kernels::relu_of_sum(sums));
  rlt::kernels::store(expected, rlt::kernels::relu(sums));
  CHECK(std::memcmp(found, expected, sizeof found) == 0);
  for (std::size_t i = 0; i < interesting.size(); i++) {
    const float reference = rlt::activation_value<rlt::Activation::relu>(interesting[i]);
    CHECK(std::memcmp(&found[i], &reference, sizeof reference) == 0);
  }
}

namespace {

// One sample of a layer with few outputs, by the host's kernel and by the reference.
template <rlt::Activation A, int In, int Out>
void check_short_row() {
  std::vector<float> weights, bias, input;
  for (int i = 0; i < In * Out; i++) weights.push_back(std::sin(0.7f * static_cast<float>(i)));
  for (int i = 0; i < Out; i++) bias.push_back(0.1f * static_cast<float>(i) - 0.2f);
  for (int i = 0; i < In; i++) input.push_back(i % 3 == 0 ? 0.0f : std::cos(static_cast<float>(i)));
  float found[Out + 1] = {}, expected[Out + 1] = {};
  found[Out] = expected[Out] = 7.0f;  // is not written
  rlt::dense_forward<A, 1, In, Out>(rlt::Host{}, weights.data(), bias.data(), input.data(), found);
  rlt::dense_forward<A, 1, In, Out>(rlt::Generic{}, weights.data(), bias.data(), input.data(),
                                    expected);
  CHECK(std::memcmp(found, expected, sizeof found) == 0);
}

}  // namespace

TEST_CASE("a few sums in a whole vector are the reference's, for rows of several words too") {
  check_short_row<rlt::Activation::identity, 64, 1>();
  check_short_row<rlt::Activation::relu, 150, 4>();
  check_short_row<rlt::Activation::tanh, 128, 3>();
  check_short_row<rlt::Activation::identity, 17, 8>();
}

#else
TEST_CASE("no vectors of 512 bits" * doctest::skip()) {}
#endif

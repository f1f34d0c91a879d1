// Test: address all
// Shapes of products without their zero terms that the sizes of kernel_agreement.h do not make: a
// block of columns with a whole tile and a smaller one, which takes vectors of at most 256 bits,
// and a single sample with few outputs and more than 64 inputs.
#define RLT_VECTOR_BITS 256
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "rltools/core/random.h"
#include "rltools/devices/host.h"

using namespace rlt;

namespace {

// Half of them zero where `has_zeros`, as behind a ReLU.
std::vector<float> values(int count, std::uint32_t stream, bool has_zeros = false) {
  std::vector<float> result(static_cast<std::size_t>(count));
  fill_standard_normal(Generic{}, {3, Purpose::shuffle, stream}, result.data(), count);
  for (float& value : result) value = has_zeros && value < 0.0f ? 0.0f : value;
  return result;
}

template <int Batch, int In, int Out>
void check() {
  CAPTURE(Batch);
  CAPTURE(In);
  CAPTURE(Out);
  const auto weights = values(In * Out, 1), bias = values(Out, 2);
  const auto input = values(Batch * In, 3, true);
  std::vector<float> expected(Batch * Out), actual(Batch * Out);
  dense_forward<Activation::identity, Batch, In, Out>(Generic{}, weights.data(), bias.data(),
                                                      input.data(), expected.data());
  dense_forward<Activation::identity, Batch, In, Out>(Host{}, weights.data(), bias.data(),
                                                      input.data(), actual.data());
  CHECK(std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("a block of columns with a whole tile and a smaller one") {
  check<20, 64, 40>();
  check<20, 64, 120>();
}

TEST_CASE("one sample, few outputs, more inputs than a word has bits") {
  check<1, 65, 1>();
  check<1, 130, 3>();
}

// Test: kernel_agreement address
// The kernels that device Rv32imc selects: which one for each operation, and the same bits as the
// reference.
#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/rv32imc.h"

using namespace rlt;

RLT_ASSERT_DISPATCH(Rv32imc, SoftFloat, SoftFloat, Generic, Generic, Generic);

TEST_CASE("the kernels on integers give the reference's bits") {
  kernel_agreement::run_briefly<Rv32imc>();
}

namespace {

using kernel_agreement::DenseKernels;

constexpr std::uint32_t kRare[] = {0x00000001u, 0x007fffffu, 0x00800000u, 0x1f800000u,
                                   0x20000001u, 0x5f7fffffu, 0x3f800000u, 0x7f7fffffu,
                                   0x00000000u, 0x7f800000u, 0x7fc00000u};

// Random numbers up to `scale`, and among them the first `kinds` rare ones of either sign. Infinity
// goes without zeros: their product is left out, and NaN in the reference.
void fill(std::vector<float>& values, RandomStream random, std::uint32_t kinds, float scale) {
  for (std::uint32_t i = 0; i < values.size(); i++) {
    const std::uint32_t word = random_word(random, i);
    std::uint32_t pattern = kRare[(word >> 8) % kinds];
    if (kinds > 9u && pattern == 0u) pattern = kRare[0];
    pattern |= word & math::kSignBit;
    values[i] = word % 16u < 3u ? math::from_bits(pattern) : uniform(random, i, -scale, scale);
  }
}

void check_rare_numbers(const DenseKernels& reference, const DenseKernels& device) {
  const auto values = [](int count) { return std::vector<float>(static_cast<std::size_t>(count)); };
  auto input = values(device.batch * device.in), weights = values(device.in * device.out);
  auto bias = values(device.out);
  auto expected = values(device.batch * device.out), actual = expected;
  CAPTURE(device.in);
  for (const std::uint32_t kinds : {8u, 9u, 10u, 11u}) {
    for (std::uint32_t round = 0; round < 60; round++) {
      CAPTURE(kinds);
      CAPTURE(round);
      const float scale = round % 3u == 0u ? 0x1p-66f : round % 3u == 1u ? 0x1p-90f : 0x1p60f;
      fill(input, {round, Purpose::shuffle, kinds, 0}, kinds, 0x1p-60f);
      fill(weights, {round, Purpose::shuffle, kinds, 1}, kinds, scale);
      fill(bias, {round, Purpose::shuffle, kinds, 2}, kinds, 0x1p-126f);
      reference.forward(weights.data(), bias.data(), input.data(), expected.data());
      device.forward(weights.data(), bias.data(), input.data(), actual.data());
      CHECK(kernel_agreement::same_numbers(expected, actual));
    }
  }
}

template <Activation A, int In>
void check_rare_numbers() {
  check_rare_numbers(kernel_agreement::dense_kernels<Generic, A, 4, In, 9>(),
                     kernel_agreement::dense_kernels<Rv32imc, A, 4, In, 9>());
}

}  // namespace

// Sums that leave the normal numbers and return, and weights that are no normal numbers.
TEST_CASE("rare numbers in every place give the reference's bits") {
  check_rare_numbers<Activation::identity, 1>();
  check_rare_numbers<Activation::identity, 2>();
  check_rare_numbers<Activation::relu, 3>();
  check_rare_numbers<Activation::identity, 130>();
}

RLT_TEST_DENSE_AT_RUN_TIME(Rv32imc, rlt::SoftFloat)

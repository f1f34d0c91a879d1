// The kernels that device Rv32imc selects: which one for each operation, and the same bits as the
// reference.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/rv32imc.h"

using namespace rlt;

// A lost optimisation is a failed build.
RLT_ASSERT_DISPATCH(Rv32imc, dense_forward, SoftFloat);
RLT_ASSERT_DISPATCH(Rv32imc, dense_backward_weights, SoftFloat);
RLT_ASSERT_DISPATCH(Rv32imc, dense_backward_input, SoftFloat);
RLT_ASSERT_DISPATCH(Rv32imc, activation_forward, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, activation_backward, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, relu_forward, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, relu_backward, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, adam_update, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, polyak_update, Generic);
RLT_ASSERT_DISPATCH(Rv32imc, call_both, Generic);

TEST_CASE("the kernels on integers give the reference's bits") {
  kernel_agreement::run_briefly<Rv32imc>();
}

// Sums that leave the normal numbers and return, and weights that are no normal numbers.
TEST_CASE("rare numbers in every place give the reference's bits") {
  constexpr int kBatch = 4, kIn = 130, kOut = 9;
  std::vector<float> input(kBatch * kIn), weights(kIn * kOut), bias(kOut);
  std::vector<float> expected(kBatch * kOut), actual(kBatch * kOut);
  const std::uint32_t rare[] = {0x00000001u, 0x007fffffu, 0x00800000u, 0x1f800000u,
                                0x20000001u, 0x5f7fffffu, 0x3f800000u, 0x7f7fffffu,
                                0x00000000u, 0x7f800000u, 0x7fc00000u};
  // With zeros, or with infinity and NaN: their product is left out, and NaN in the reference.
  for (const std::uint32_t kinds : {8u, 9u, 10u, 11u}) {
    for (std::uint32_t round = 0; round < 40; round++) {
      const auto draw = [&](std::uint32_t stream, std::vector<float>& values, float scale) {
        const RandomStream random{round, Purpose::shuffle, kinds, stream};
        for (std::size_t i = 0; i < values.size(); i++) {
          const std::uint32_t word = random_word(random, static_cast<std::uint32_t>(i));
          std::uint32_t pattern = rare[(word >> 8) % kinds];
          if (kinds > 9u && pattern == 0u) pattern = rare[0];
          pattern |= word & math::kSignBit;
          const float number = uniform<float>(random, static_cast<std::uint32_t>(i), -scale, scale);
          values[i] = word % 16u < 3u ? math::from_bits(pattern) : number;
        }
      };
      draw(0, input, 0x1p-60f);
      draw(1, weights, round % 2u == 0u ? 0x1p-66f : 0x1p60f);
      draw(2, bias, 0x1p-126f);
      dense_forward<Activation::identity, kBatch, kIn, kOut>(Generic{}, weights.data(), bias.data(),
                                                             input.data(), expected.data());
      dense_forward<Activation::identity, kBatch, kIn, kOut>(Rv32imc{}, weights.data(), bias.data(),
                                                             input.data(), actual.data());
      CHECK(kernel_agreement::same_numbers(expected, actual));
    }
  }
}

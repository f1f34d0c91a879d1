// Test: as-firmware kernel_agreement
// The kernels of a block of a GPU's threads: which one for each operation, and the reference's
// bits, whichever thread goes first.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/block.h"

#include <cstring>

using namespace rlt;

RLT_ASSERT_SELECTED(Block, dense_forward, Block);
RLT_ASSERT_SELECTED(Block, dense_backward_weights, Block);
RLT_ASSERT_SELECTED(Block, dense_backward_input, Block);
RLT_ASSERT_SELECTED(Block, activation_forward, Block);
RLT_ASSERT_SELECTED(Block, activation_backward, Block);
RLT_ASSERT_SELECTED(Block, gru_step_forward, Block);
RLT_ASSERT_SELECTED(Block, gru_step_backward, Block);
RLT_ASSERT_SELECTED(Block, adam_update, Block);
RLT_ASSERT_SELECTED(Block, polyak_update, Block);
RLT_ASSERT_SELECTED(Block, gather, Block);
RLT_ASSERT_SELECTED(Block, gather_transitions, Block);
RLT_ASSERT_SELECTED(Block, join_columns, Block);
RLT_ASSERT_SELECTED(Block, copy_columns, Block);
RLT_ASSERT_SELECTED(Block, add_noise, Block);
RLT_ASSERT_SELECTED(Block, add_bounded_noise, Block);
RLT_ASSERT_SELECTED(Block, take_minimum, Block);
RLT_ASSERT_SELECTED(Block, fill, Block);
RLT_ASSERT_SELECTED(Block, scale, Block);
RLT_ASSERT_SELECTED(Block, add_scaled, Block);
RLT_ASSERT_SELECTED(Block, minimum_backward, Block);
RLT_ASSERT_SELECTED(Block, discounted_targets, Block);
RLT_ASSERT_SELECTED(Block, normalize_rows, Block);

TEST_CASE("a block's kernels give the reference's bits") {
  SUBCASE("from the first thread to the last") { block::threads.is_reversed = false; }
  SUBCASE("from the last thread to the first") { block::threads.is_reversed = true; }
  kernel_agreement::run<Block>();
}

TEST_CASE("a layer whose input and output are the leader's own has the reference's bits") {
  constexpr int kBatch = 3, kIn = 20, kOut = 24;
  static float weights[kIn * kOut], bias[kOut];
  float input[kBatch * kIn], expected[kBatch * kOut], output[kBatch * kOut];
  for (int i = 0; i < kIn * kOut; i++) weights[i] = 0.1f * static_cast<float>(i % 13) - 0.5f;
  for (int i = 0; i < kBatch * kIn; i++) input[i] = 0.3f * static_cast<float>(i % 7) - 0.8f;
  REQUIRE(block::Threads::is_private(input));
  REQUIRE(block::Threads::is_private(output));
  dense_forward<Activation::tanh, kBatch, kIn, kOut>(Generic{}, weights, bias, input, expected);
  for (const bool is_reversed : {false, true}) {
    block::threads.is_reversed = is_reversed;
    dense_forward<Activation::tanh, kBatch, kIn, kOut>(Block{}, weights, bias, input, output);
    CHECK(std::memcmp(output, expected, sizeof output) == 0);
  }
}

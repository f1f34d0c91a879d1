// Test: as-firmware
// The reference device selects the reference implementation of every operation.
#include <doctest/doctest.h>

#include "dispatch_assertions.h"
#include "rltools/devices/generic.h"

using namespace rlt;

RLT_ASSERT_DISPATCH(Generic, dense_forward, Generic);
RLT_ASSERT_DISPATCH(Generic, dense_backward_weights, Generic);
RLT_ASSERT_DISPATCH(Generic, dense_backward_input, Generic);
RLT_ASSERT_DISPATCH(Generic, activation_forward, Generic);
RLT_ASSERT_DISPATCH(Generic, activation_backward, Generic);
RLT_ASSERT_DISPATCH(Generic, relu_forward, Generic);
RLT_ASSERT_DISPATCH(Generic, relu_backward, Generic);
RLT_ASSERT_DISPATCH(Generic, adam_update, Generic);
RLT_ASSERT_DISPATCH(Generic, polyak_update, Generic);
RLT_ASSERT_BATCH_DISPATCH(Generic, Generic);

TEST_CASE("a product by the reference device") {
  const float weights[] = {1, 2, 3, 4}, bias[] = {10, 20}, input[] = {1, -1};  // (in, out)
  float output[2];
  const Generic selected =
      dense_forward<Activation::identity, 1, 2, 2>(Generic{}, weights, bias, input, output);
  (void)selected;
  CHECK(output[0] == 8.0f);
  CHECK(output[1] == 18.0f);
}

// The kernels that a Cortex-M with a floating-point unit selects. A lost optimisation is a failed
// build.
#pragma once

#include "dispatch_assertions.h"

#define RLT_ASSERT_CORTEX_M_DISPATCH(Device)                           \
  RLT_ASSERT_DISPATCH(Device, dense_forward, CortexM);                 \
  RLT_ASSERT_DISPATCH(Device, dense_backward_weights, CortexM);        \
  RLT_ASSERT_DISPATCH(Device, dense_backward_input, CortexM);          \
  RLT_ASSERT_DISPATCH(Device, activation_forward, Generic); /* tanh */ \
  RLT_ASSERT_DISPATCH(Device, relu_forward, CortexM);                  \
  RLT_ASSERT_DISPATCH(Device, relu_backward, CortexM);                 \
  RLT_ASSERT_DISPATCH(Device, activation_backward, Generic);           \
  RLT_ASSERT_DISPATCH(Device, adam_update, CortexM);                   \
  RLT_ASSERT_DISPATCH(Device, polyak_update, Generic);                 \
  RLT_ASSERT_BATCH_DISPATCH(Device, Generic);                          \
  RLT_ASSERT_DISPATCH(Device, run_tasks, Generic);                     \
  RLT_ASSERT_DISPATCH(Device, run_long_tasks, Generic)

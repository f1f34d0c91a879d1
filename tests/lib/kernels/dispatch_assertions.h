// Compile-time assertions of the kernel that a device selects: each operation returns the tag that
// it implements. A lost optimization is a failed build.
#pragma once

#include <type_traits>

#include "rltools/core/tasks.h"
#include "rltools/nn/gru.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/normalizer.h"

namespace dispatch {

using namespace rlt;

// Arguments of the operations, which are never called.
inline const float* from;
inline float* to;
inline const std::uint32_t* number;
inline const std::uint8_t* begins;
inline const AdamStep<float> adam_parameters{};
inline const Normalizer<float, 3> normalizer{};
inline void task(int) {}

#define RLT_SELECTED(operation, ...) \
  template <class Device>            \
  auto selected_##operation(Device device)->decltype(__VA_ARGS__)

RLT_SELECTED(dense_forward,
             dense_forward<Activation::relu, 20, 3, 64>(device, from, from, from, to));
RLT_SELECTED(dense_backward_weights, dense_backward_weights<20, 3, 64>(device, from, from, to, to));
RLT_SELECTED(dense_backward_input,
             dense_backward_input<Activation::relu, 20, 3, 64>(device, from, from, from, from, to));
RLT_SELECTED(activation_forward, activation_forward<Activation::tanh, 20>(device, from, to));
RLT_SELECTED(activation_backward,
             activation_backward<Activation::tanh, 20>(device, from, from, to));
RLT_SELECTED(relu_forward, activation_forward<Activation::relu, 20>(device, from, to));
RLT_SELECTED(relu_backward, activation_backward<Activation::relu, 20>(device, from, from, to));
RLT_SELECTED(gru_step_forward,
             gru_step_forward<2, 5, 16>(device, 0, begins, from, to, to, to, to, to));
RLT_SELECTED(gru_step_backward, gru_step_backward<2, 5, 16>(device, 0, begins, from, from, to, to,
                                                            from, from, to, to));
RLT_SELECTED(adam_update, adam_update<20>(device, adam_parameters, from, to, to, to));
RLT_SELECTED(polyak_update, polyak_update<20>(device, 0.0f, from, to));
RLT_SELECTED(run_tasks, run_tasks(device, 2, task));
RLT_SELECTED(run_long_tasks, run_long_tasks(device, 2, task));
// Operations on the rows of a batch (rl/batch.h).
RLT_SELECTED(gather, gather<20>(device, from, number, to));
RLT_SELECTED(gather_transitions, gather_transitions(device, from, number, to));
RLT_SELECTED(join_columns, join_columns<20, 3, 2>(device, from, from, to));
RLT_SELECTED(copy_columns, copy_columns<20, 5, 3, 2>(device, from, to));
RLT_SELECTED(add_noise, add_noise<20>(device, 0.0f, from, to));
RLT_SELECTED(add_bounded_noise, add_bounded_noise<20>(device, 0.0f, 0.0f, from, to));
RLT_SELECTED(take_minimum, take_minimum<20>(device, from, to));
RLT_SELECTED(fill, fill<20>(device, 0.0f, to));
RLT_SELECTED(scale, scale<20>(device, 0.0f, to));
RLT_SELECTED(add_scaled, add_scaled<20>(device, 0.0f, from, to));
RLT_SELECTED(minimum_backward, minimum_backward<20>(device, from, from, 0.0f, to, to));
RLT_SELECTED(discounted_targets, discounted_targets<20>(device, 0.0f, from, from, from, to));
RLT_SELECTED(normalize_rows, normalize_rows<20>(device, normalizer, from, number, to));

#undef RLT_SELECTED

}  // namespace dispatch

#define RLT_ASSERT_SELECTED(Device, operation, Expected)                                          \
  static_assert(                                                                                  \
      std::is_same_v<decltype(dispatch::selected_##operation(std::declval<Device>())), Expected>, \
      #Device " does not select the " #Expected " kernel for " #operation)

// Of all operations; what has no column is the reference on every device. Products are the forward
// one and the input's gradient.
#define RLT_ASSERT_DISPATCH(Device, Products, WeightsGradient, Relu, Adam, Tasks) \
  RLT_ASSERT_SELECTED(Device, dense_forward, Products);                           \
  RLT_ASSERT_SELECTED(Device, dense_backward_weights, WeightsGradient);           \
  RLT_ASSERT_SELECTED(Device, dense_backward_input, Products);                    \
  RLT_ASSERT_SELECTED(Device, activation_forward, Generic);                       \
  RLT_ASSERT_SELECTED(Device, activation_backward, Generic);                      \
  RLT_ASSERT_SELECTED(Device, relu_forward, Relu);                                \
  RLT_ASSERT_SELECTED(Device, relu_backward, Relu);                               \
  RLT_ASSERT_SELECTED(Device, gru_step_forward, Generic);                         \
  RLT_ASSERT_SELECTED(Device, gru_step_backward, Generic);                        \
  RLT_ASSERT_SELECTED(Device, adam_update, Adam);                                 \
  RLT_ASSERT_SELECTED(Device, polyak_update, Generic);                            \
  RLT_ASSERT_SELECTED(Device, run_tasks, Tasks);                                  \
  RLT_ASSERT_SELECTED(Device, run_long_tasks, Tasks);                             \
  RLT_ASSERT_SELECTED(Device, gather, Generic);                                   \
  RLT_ASSERT_SELECTED(Device, gather_transitions, Generic);                       \
  RLT_ASSERT_SELECTED(Device, join_columns, Generic);                             \
  RLT_ASSERT_SELECTED(Device, copy_columns, Generic);                             \
  RLT_ASSERT_SELECTED(Device, add_noise, Generic);                                \
  RLT_ASSERT_SELECTED(Device, add_bounded_noise, Generic);                        \
  RLT_ASSERT_SELECTED(Device, take_minimum, Generic);                             \
  RLT_ASSERT_SELECTED(Device, fill, Generic);                                     \
  RLT_ASSERT_SELECTED(Device, scale, Generic);                                    \
  RLT_ASSERT_SELECTED(Device, add_scaled, Generic);                               \
  RLT_ASSERT_SELECTED(Device, minimum_backward, Generic);                         \
  RLT_ASSERT_SELECTED(Device, discounted_targets, Generic);                       \
  RLT_ASSERT_SELECTED(Device, normalize_rows, Generic)

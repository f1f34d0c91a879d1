// Compile-time assertions of the kernel that a device selects: RLT_ASSERT_DISPATCH(Device,
// operation, Expected). Each operation returns the tag that it implements.
#pragma once

#include <type_traits>

#include "rltools/core/tasks.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/normaliser.h"

namespace dispatch {

using namespace rlt;

#define RLT_SELECTED(operation, call) \
  template <class Device>             \
  auto selected_##operation(Device device)->decltype(call)

RLT_SELECTED(dense_forward, (dense_forward<Activation::relu, 20, 3, 64>(
                                device, std::declval<const float*>(), std::declval<const float*>(),
                                std::declval<const float*>(), std::declval<float*>())));
RLT_SELECTED(dense_backward_weights,
             (dense_backward_weights<20, 3, 64>(device, std::declval<const float*>(),
                                                std::declval<const float*>(),
                                                std::declval<float*>(), std::declval<float*>())));
RLT_SELECTED(dense_backward_input, (dense_backward_input<Activation::relu, 20, 3, 64>(
                                       device, std::declval<const float*>(),
                                       std::declval<const float*>(), std::declval<const float*>(),
                                       std::declval<const float*>(), std::declval<float*>())));
RLT_SELECTED(activation_forward,
             (activation_forward<Activation::tanh, 20>(device, std::declval<const float*>(),
                                                       std::declval<float*>())));
RLT_SELECTED(activation_backward,
             (activation_backward<Activation::tanh, 20>(device, std::declval<const float*>(),
                                                        std::declval<const float*>(),
                                                        std::declval<float*>())));
RLT_SELECTED(relu_forward,
             (activation_forward<Activation::relu, 20>(device, std::declval<const float*>(),
                                                       std::declval<float*>())));
RLT_SELECTED(relu_backward,
             (activation_backward<Activation::relu, 20>(device, std::declval<const float*>(),
                                                        std::declval<const float*>(),
                                                        std::declval<float*>())));
RLT_SELECTED(adam_update, (adam_update<20>(device, std::declval<const AdamStep<float>&>(),
                                           std::declval<const float*>(), std::declval<float*>(),
                                           std::declval<float*>(), std::declval<float*>())));
RLT_SELECTED(polyak_update, (polyak_update<20>(device, 0.0f, std::declval<const float*>(),
                                               std::declval<float*>())));
RLT_SELECTED(run_tasks, (run_tasks(device, 2, std::declval<void (&)(int)>())));
RLT_SELECTED(run_long_tasks, (run_long_tasks(device, 2, std::declval<void (&)(int)>())));

// Operations on the rows of a batch (rl/batch.h), which take these.
inline const std::uint32_t* number;
inline float* to;
inline const float* from;
RLT_SELECTED(gather, (gather<20>(device, from, number, to)));
RLT_SELECTED(gather_transitions, (gather_transitions(device, from, number, to)));
RLT_SELECTED(join_columns, (join_columns<20, 3, 2>(device, from, from, to)));
RLT_SELECTED(copy_columns, (copy_columns<20, 5, 3, 2>(device, from, to)));
RLT_SELECTED(add_columns, (add_columns<20, 5, 3, 2>(device, from, from, to)));
RLT_SELECTED(add_noise, (add_noise<20>(device, 0.0f, from, to)));
RLT_SELECTED(add_bounded_noise, (add_bounded_noise<20>(device, 0.0f, 0.0f, from, to)));
RLT_SELECTED(take_minimum, (take_minimum<20>(device, from, to)));
RLT_SELECTED(add_scaled, (add_scaled<20>(device, 0.0f, from, to)));
RLT_SELECTED(minimum_backward, (minimum_backward<20>(device, from, from, 0.0f, to, to)));
RLT_SELECTED(discounted_targets, (discounted_targets<20>(device, 0.0f, from, from, from, to)));
RLT_SELECTED(normalise_rows,
             (normalise_rows<20>(device, std::declval<const Normaliser<float, 3>&>(), from, number,
                                 to)));

#undef RLT_SELECTED

}  // namespace dispatch

#define RLT_ASSERT_DISPATCH(Device, operation, Expected)                                          \
  static_assert(                                                                                  \
      std::is_same_v<decltype(dispatch::selected_##operation(std::declval<Device>())), Expected>, \
      #Device " does not select the " #Expected " kernel for " #operation)

#define RLT_ASSERT_BATCH_DISPATCH(Device, Expected)          \
  RLT_ASSERT_DISPATCH(Device, gather, Expected);             \
  RLT_ASSERT_DISPATCH(Device, gather_transitions, Expected); \
  RLT_ASSERT_DISPATCH(Device, join_columns, Expected);       \
  RLT_ASSERT_DISPATCH(Device, copy_columns, Expected);       \
  RLT_ASSERT_DISPATCH(Device, add_columns, Expected);        \
  RLT_ASSERT_DISPATCH(Device, add_noise, Expected);          \
  RLT_ASSERT_DISPATCH(Device, add_bounded_noise, Expected);  \
  RLT_ASSERT_DISPATCH(Device, take_minimum, Expected);       \
  RLT_ASSERT_DISPATCH(Device, add_scaled, Expected);         \
  RLT_ASSERT_DISPATCH(Device, minimum_backward, Expected);   \
  RLT_ASSERT_DISPATCH(Device, discounted_targets, Expected); \
  RLT_ASSERT_DISPATCH(Device, normalise_rows, Expected)

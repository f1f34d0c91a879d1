// Compile-time assertions of the kernel that a device selects: RLT_ASSERT_DISPATCH(Device,
// operation, Expected). Each operation returns the tag that it implements.
#pragma once

#include <type_traits>

#include "rltools/core/tasks.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"

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

#undef RLT_SELECTED

}  // namespace dispatch

#define RLT_ASSERT_DISPATCH(Device, operation, Expected)                                          \
  static_assert(                                                                                  \
      std::is_same_v<decltype(dispatch::selected_##operation(std::declval<Device>())), Expected>, \
      #Device " does not select the " #Expected " kernel for " #operation)

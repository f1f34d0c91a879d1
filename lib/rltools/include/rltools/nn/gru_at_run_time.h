// The gated recurrent unit (gru.h) whose shape is known at run time only, for one step of one
// sequence: what a policy image with a hidden state is run with. Its products are those of
// dense_at_run_time.h, with the kernels that a device has for them; the bits are those of
// gru_forward().
#pragma once

#include <cstddef>

#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

// Parameters of one layer, one behind the other in memory: weights (in, 3 width), bias (3 width),
// hidden weights (width, 3 width), hidden bias (3 width).
struct GruParameters {
  const AliasingFloat *weights, *bias, *hidden_weights, *hidden_bias, *end;
};
inline GruParameters gru_parameters(int in, int width, const AliasingFloat* parameters) {
  const std::size_t columns = std::size_t{3} * static_cast<std::size_t>(width);
  GruParameters found;
  found.weights = parameters;
  found.bias = found.weights + static_cast<std::size_t>(in) * columns;
  found.hidden_weights = found.bias + columns;
  found.hidden_bias = found.hidden_weights + static_cast<std::size_t>(width) * columns;
  found.end = found.hidden_bias + columns;
  return found;
}

// sums (count) = sigmoid(sums + others): reset and update gates from their two products.
inline Generic gru_gates_at_run_time(Generic device, int count, const float* others, float* sums) {
  for (int i = 0; i < count; i++) sums[i] = math::sigmoid(sums[i] + others[i]);
  return device;
}

// next_state (width) and output (width) = h' from the gates and the candidate's products (width
// each) and h, `state` (width), which may be next_state. There is no -0.
inline Generic gru_state_at_run_time(Generic device, int width, const float* reset,
                                     const float* keep, const float* input, const float* hidden,
                                     const float* state, float* next_state, float* output) {
  for (int i = 0; i < width; i++) {
    const float candidate = math::tanh(math::fma(reset[i], hidden[i], input[i]));
    const float next = math::fma(keep[i], state[i] - candidate, candidate) + 0.0f;
    next_state[i] = output[i] = next;
  }
  return device;
}

// output (width) and next_state (width) = the state after a step of input (in) from `state`
// (width), which may be next_state. `products` (6 width) is memory.
template <class Device>
void gru_forward_at_run_time(Device device, int in, int width, const GruParameters& parameters,
                             const float* input, const float* state, float* products,
                             float* next_state, float* output) {
  const int columns = 3 * width;
  float* hidden = products + columns;
  dense_forward_at_run_time(device, Activation::identity, in, columns, parameters.weights,
                            parameters.bias, input, products);
  dense_forward_at_run_time(device, Activation::identity, width, columns, parameters.hidden_weights,
                            parameters.hidden_bias, state, hidden);
  gru_gates_at_run_time(device, 2 * width, hidden, products);
  gru_state_at_run_time(device, width, products, products + width, products + 2 * width,
                        hidden + 2 * width, state, next_state, output);
}

}  // namespace rlt

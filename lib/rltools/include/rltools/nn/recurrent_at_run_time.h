// Recurrent layers whose shape is known at run time only, for one step of one sequence: what a
// policy image with a hidden state is run with. The gated recurrent unit gives the bits of
// gru_forward() (gru.h); the long short-term memory is run only, and not trained. Their products
// are those of dense_at_run_time.h, with the kernels that a device has for them.
#pragma once

#include <cstddef>

#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

constexpr int kGruGates = 3, kLstmGates = 4;  // r, z, n; i, f, g, o

// Parameters of one layer, one behind the other in memory: weights (in, gates width), bias (gates
// width), hidden weights (width, gates width), hidden bias (gates width).
struct RecurrentParameters {
  const AliasingFloat *weights, *bias, *hidden_weights, *hidden_bias, *end;
};
inline RecurrentParameters recurrent_parameters(int gates, int in, int width,
                                                const AliasingFloat* parameters) {
  const std::size_t columns = static_cast<std::size_t>(gates) * static_cast<std::size_t>(width);
  RecurrentParameters found;
  found.weights = parameters;
  found.bias = found.weights + static_cast<std::size_t>(in) * columns;
  found.hidden_weights = found.bias + columns;
  found.hidden_bias = found.hidden_weights + static_cast<std::size_t>(width) * columns;
  found.end = found.hidden_bias + columns;
  return found;
}

// sums (count) = sigmoid(sums + others): gates from their two products.
inline Generic gates_at_run_time(Generic device, int count, const float* others, float* sums) {
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

// next_state (h', then c', width each) and output (width) = h' from the gates (width each), the two
// products of the candidate, and c, `cells` (width), which may be that of next_state. There is no
// -0.
inline Generic lstm_state_at_run_time(Generic device, int width, const float* in,
                                      const float* forget, const float* out, const float* input,
                                      const float* hidden, const float* cells, float* next_state,
                                      float* output) {
  for (int i = 0; i < width; i++) {
    const float candidate = math::tanh(input[i] + hidden[i]);
    const float cell = math::fma(forget[i], cells[i], in[i] * candidate) + 0.0f;
    next_state[width + i] = cell;
    next_state[i] = output[i] = out[i] * math::tanh(cell) + 0.0f;
  }
  return device;
}

// output (width) and next_state = the state after a step of input (in) from `state`, which may be
// next_state: of a GRU h (width), of an LSTM h and behind it c. `products` (2 gates width) is
// memory. One function for both: firmware has their products and gates once.
template <class Device>
void recurrent_forward_at_run_time(Device device, int gates, int in, int width,
                                   const RecurrentParameters& parameters, const float* input,
                                   const float* state, float* products, float* next_state,
                                   float* output) {
  const int columns = gates * width, third = 2 * width, fourth = 3 * width;
  float* hidden = products + columns;
  dense_forward_at_run_time(device, Activation::identity, in, columns, parameters.weights,
                            parameters.bias, input, products);
  dense_forward_at_run_time(device, Activation::identity, width, columns, parameters.hidden_weights,
                            parameters.hidden_bias, state, hidden);
  // r and z of a GRU; i and f of an LSTM, and then o.
  for (int first = 0; first < columns; first += fourth) {
    gates_at_run_time(device, first == 0 ? third : width, hidden + first, products + first);
  }
  if (gates == kGruGates) {
    gru_state_at_run_time(device, width, products, products + width, products + third,
                          hidden + third, state, next_state, output);
  } else {
    lstm_state_at_run_time(device, width, products, products + width, products + fourth,
                           products + third, hidden + third, state + width, next_state, output);
  }
}

}  // namespace rlt

// The gated recurrent unit (Cho et al. 2014, arXiv 1406.1078) as PyTorch's GRU has it, with the
// reset gate behind the hidden product and a bias of either product:
//   r  = sigmoid(x . W_r + b_r  +  h . U_r + c_r)
//   z  = sigmoid(x . W_z + b_z  +  h . U_z + c_z)
//   n  = tanh(x . W_n + b_n  +  r (h . U_n + c_n))
//   h' = n + z (h - n)
// The three gates are one product, 3 Hidden wide: weights (In, 3 Hidden) and hidden weights
// (Hidden, 3 Hidden) have the columns of r, z and n in turn. So the products are those of dense.h,
// with the kernels that a device has for them, and what is left is element by element. Sigmoid and
// tanh are those of core/math.h.
//
// A batch is `Sequences` sequences of `Steps` steps. Its rows are sequence by sequence, row =
// sequence * Steps + step, so that sums over rows are the same whether sequences are worked through
// at once or in tiles. begins[row] is 1 where the hidden state is set to zero before that step, as
// at the beginning of an episode; of a sequence's first row it is not read, because the caller
// gives its state.
#pragma once

#include <cstdint>

#include "rltools/core/arrays.h"
#include "rltools/core/lanes.h"
#include "rltools/nn/dense.h"

namespace rlt {

// Arrays that a forward pass keeps for the backward pass, in the order of the rows. After a
// backward pass `gates` are the gradients of the input's product.
template <class T>
struct GruSequences {
  T* gates;           // (rows, 3 Hidden): the input's product, then r, z and n
  T* hidden_product;  // (rows, Hidden): h . U_n + c_n
  T* previous;        // (rows, Hidden): h
};

// Element i of a sequence's step: see gru_step_forward(). The arrays are the sequence's rows.
template <int Hidden, class T>
void gru_forward_element(int i, const T* product, T* state, T* gate, T* kept_product, T* previous,
                         T* output) {
  const T reset = math::sigmoid(gate[i] + product[i]);
  const T keep = math::sigmoid(gate[Hidden + i] + product[Hidden + i]);
  const T kept = product[2 * Hidden + i];
  const T candidate = math::tanh(math::fma(reset, kept, gate[2 * Hidden + i]));
  const T before = state[i];
  const T next = math::fma(keep, before - candidate, candidate) + T(0);
  gate[i] = reset;
  gate[Hidden + i] = keep;
  gate[2 * Hidden + i] = candidate;
  kept_product[i] = kept;
  previous[i] = before;
  output[i] = next;
  state[i] = next;
}

// Return whether the hidden state is set to zero behind a row, which is not the last one.
inline bool is_reset_behind(const std::uint8_t* begins, int row) {
  return begins != nullptr && begins[row + 1] != 0;
}

// Steps of all sequences after their hidden product (Sequences, 3 Hidden): `state` (Sequences,
// Hidden) is h before, and what the next step begins with after; `output` (rows, Hidden) is h'.
// There is no -0.
template <int Sequences, int Steps, int Hidden, class T>
RLT_LOOP_OVER_LANES Generic gru_step_forward(Generic device, int step, const std::uint8_t* begins,
                                             const T* __restrict hidden_product,
                                             T* __restrict state, T* __restrict gates,
                                             T* __restrict kept_product, T* __restrict previous,
                                             T* __restrict output) {
  const bool is_last = step == Steps - 1;
  for (int sequence = 0; sequence < Sequences; sequence++) {
    const int row = sequence * Steps + step;
    for (int i = 0; i < Hidden; i++) {
      gru_forward_element<Hidden>(i, hidden_product + sequence * 3 * Hidden,
                                  state + sequence * Hidden, gates + row * 3 * Hidden,
                                  kept_product + row * Hidden, previous + row * Hidden,
                                  output + row * Hidden);
    }
    if (is_last || !is_reset_behind(begins, row)) continue;
    for (int i = 0; i < Hidden; i++) state[sequence * Hidden + i] = T(0);
  }
  return device;
}

// Element i of a sequence's step: see gru_step_backward(). `passes` is 0 where the hidden state is
// set to zero behind it, else 1.
template <int Hidden, class T>
void gru_backward_element(int i, T passes, const T* output_gradient, const T* through, T* direct,
                          T* gate, const T* kept_product, const T* previous, T* product_gradient,
                          T* step_gradient) {
  const T reset = gate[i], keep = gate[Hidden + i], candidate = gate[2 * Hidden + i];
  const T slope = math::fma(passes, direct[i] + through[i], output_gradient[i]);
  const T difference = previous[i] - candidate;
  const T candidate_slope = math::fma(-keep, slope, slope) * math::fma(-candidate, candidate, T(1));
  const T keep_slope = slope * difference * math::fma(-keep, keep, keep);
  const T reset_slope = candidate_slope * kept_product[i] * math::fma(-reset, reset, reset);
  direct[i] = slope * keep;
  gate[i] = product_gradient[i] = step_gradient[i] = reset_slope;
  gate[Hidden + i] = product_gradient[Hidden + i] = step_gradient[Hidden + i] = keep_slope;
  gate[2 * Hidden + i] = candidate_slope;
  product_gradient[2 * Hidden + i] = step_gradient[2 * Hidden + i] = candidate_slope * reset;
}

// The gradients of a step of all sequences. `direct` and `through` (Sequences, Hidden) add up to
// the gradient of h' by the later steps; after it `direct` is that of h but for its way through the
// hidden product, whose gradient goes to `product_gradient` (rows, 3 Hidden) and, one sequence
// after the other, to `step_gradient` (Sequences, 3 Hidden). The input's product's gradient
// replaces `gates`.
template <int Sequences, int Steps, int Hidden, class T>
RLT_LOOP_OVER_LANES Generic gru_step_backward(Generic device, int step, const std::uint8_t* begins,
                                              const T* __restrict output_gradient,
                                              const T* __restrict through, T* __restrict direct,
                                              T* __restrict gates, const T* __restrict kept_product,
                                              const T* __restrict previous,
                                              T* __restrict product_gradient,
                                              T* __restrict step_gradient) {
  const bool is_last = step == Steps - 1;
  for (int sequence = 0; sequence < Sequences; sequence++) {
    const int row = sequence * Steps + step;
    const T passes = !is_last && is_reset_behind(begins, row) ? T(0) : T(1);
    for (int i = 0; i < Hidden; i++) {
      gru_backward_element<Hidden>(i, passes, output_gradient + row * Hidden,
                                   through + sequence * Hidden, direct + sequence * Hidden,
                                   gates + row * 3 * Hidden, kept_product + row * Hidden,
                                   previous + row * Hidden, product_gradient + row * 3 * Hidden,
                                   step_gradient + sequence * 3 * Hidden);
    }
  }
  return device;
}

// The largest element of a state's gradient, as it goes back from step to step. Where a network has
// become so steep that a window's gradient would grow beyond any number, the window's is scaled
// down to this at each step, and its direction stays (Pascanu, Mikolov and Bengio 2013, "On the
// difficulty of training recurrent neural networks", arXiv 1211.5063). In runs that learn it stays
// below 1, so this changes none of their bits.
constexpr int kLargestStateGradient = 100;

// `direct` and `through` (Hidden) of a sequence within that.
template <int Hidden, class T>
void gru_bound_sequence(T* __restrict direct, T* __restrict through) {
  constexpr T kLargest = T(kLargestStateGradient);
  T largest = T(0);
  for (int i = 0; i < Hidden; i++) {
    largest = math::maximum(largest,
                            math::maximum(math::absolute(direct[i]), math::absolute(through[i])));
  }
  if (!(largest > kLargest)) return;
  const T factor = kLargest / largest;
  for (int i = 0; i < Hidden; i++) {
    direct[i] *= factor;
    through[i] *= factor;
  }
}

// The same of each sequence: (Sequences, Hidden).
template <int Sequences, int Hidden, class T>
Generic gru_bound_gradients(Generic device, T* direct, T* through) {
  for (int sequence = 0; sequence < Sequences; sequence++) {
    gru_bound_sequence<Hidden>(direct + sequence * Hidden, through + sequence * Hidden);
  }
  return device;
}

// output (rows, Hidden) = the states after each step of input (rows, In). `state` (Sequences,
// Hidden) is that before the first step, and becomes that after the last. `step_product`
// (Sequences, 3 Hidden) is memory for the hidden product of a step.
template <int Sequences, int Steps, int In, int Hidden, class Device, class T>
void gru_forward(Device device, const T* weights, const T* bias, const T* hidden_weights,
                 const T* hidden_bias, const T* input, const std::uint8_t* begins, T* state,
                 T* step_product, const GruSequences<T>& kept, T* output) {
  dense_forward<Activation::identity, Sequences * Steps, In, 3 * Hidden>(device, weights, bias,
                                                                         input, kept.gates);
  for (int step = 0; step < Steps; step++) {
    dense_forward<Activation::identity, Sequences, Hidden, 3 * Hidden>(
        device, hidden_weights, hidden_bias, static_cast<const T*>(state), step_product);
    gru_step_forward<Sequences, Steps, Hidden>(
        device, step, begins, static_cast<const T*>(step_product), state, kept.gates,
        kept.hidden_product, kept.previous, output);
  }
}

// Further arrays of a backward pass through the steps.
template <class T>
struct GruGradients {
  T* product_gradient;  // (rows, 3 Hidden), of the hidden product
  T* step_gradient;     // (Sequences, 3 Hidden)
  T* direct;            // (Sequences, Hidden): in the end of the first steps' state
  T* through;           // (Sequences, Hidden)
};

// Backpropagation through time: the gradients of both products, in kept.gates and
// product_gradient, and of the state before the first step, in `direct`. The gradient of the state
// after the last step is zero but for the output's. `transposed_weights` (3 Hidden, Hidden) are the
// hidden weights': so each step's product is a forward one, of the same terms in the same order.
template <int Sequences, int Steps, int Hidden, class Device, class T>
void gru_backward_steps(Device device, const T* transposed_weights, const std::uint8_t* begins,
                        const T* output_gradient, const GruSequences<T>& kept,
                        const GruGradients<T>& gradients) {
  static constexpr T kNoBias[Hidden] = {};
  fill<Sequences * Hidden>(device, T(0), gradients.direct);
  fill<Sequences * Hidden>(device, T(0), gradients.through);
  for (int step = Steps - 1; step >= 0; step--) {
    gru_step_backward<Sequences, Steps, Hidden>(
        device, step, begins, output_gradient, static_cast<const T*>(gradients.through),
        gradients.direct, kept.gates, static_cast<const T*>(kept.hidden_product),
        static_cast<const T*>(kept.previous), gradients.product_gradient, gradients.step_gradient);
    dense_forward<Activation::identity, Sequences, 3 * Hidden, Hidden>(
        device, transposed_weights, kNoBias, static_cast<const T*>(gradients.step_gradient),
        gradients.through);
    gru_bound_gradients<Sequences, Hidden>(device, gradients.direct, gradients.through);
  }
  add_scaled<Sequences * Hidden>(device, T(1), static_cast<const T*>(gradients.through),
                                 gradients.direct);
}

}  // namespace rlt

// Activation functions and their derivatives.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// All activations. What reads, writes, describes or exports a network follows this list; a policy
// image has an activation's index in it, from 0, so that a new one comes last. In C,
// integrations/c/rlt_policy.h has them.
//   X(name, whether the derivative needs x, value at x, derivative where the value is y)
// A NaN passes through each of them. ReLU's zero has no sign. GELU is x times the normal
// distribution function (Hendrycks and Gimpel 2016), its derivative has the density besides. SiLU
// is x times the logistic function (the same paper). Hardtanh is x clipped to -1 and 1, with which
// an imported policy clips at any bounds.
#define RLT_ACTIVATION_LIST(X)                                                                 \
  X(identity, false, x, T(1))                                                                  \
  X(relu, false, x <= T(0) ? T(0) : x, y > T(0) ? T(1) : T(0))                                 \
  X(gelu, true, T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752440))),                \
    math::fma(x, T(0.39894228040143267794) * math::exp(T(-0.5) * x * x),                       \
              T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)))))                     \
  X(tanh, false, math::tanh(x), math::fma(-y, y, T(1)))                                        \
  X(sigmoid, false, math::sigmoid(x), math::fma(-y, y, y))                                     \
  X(softplus, true, math::softplus(x), math::sigmoid(x))                                       \
  X(elu, false, math::elu(x), y > T(0) ? T(1) : y + T(1))                                      \
  X(silu, true, math::sigmoid(x) * x, math::fma(y, T(1) - math::sigmoid(x), math::sigmoid(x))) \
  X(hardtanh, false, math::clamp(x, T(-1), T(1)), y <= T(-1) || y >= T(1) ? T(0) : T(1))

#define RLT_ACTIVATION_NAME(Name, NeedsInput, Value, Derivative) Name,
#define RLT_ACTIVATION_COUNT(Name, NeedsInput, Value, Derivative) +1
#define RLT_ACTIVATION_TEXT(Name, NeedsInput, Value, Derivative) \
  case Activation::Name: return #Name;
#define RLT_ACTIVATION_NEED(Name, NeedsInput, Value, Derivative) \
  case Activation::Name: return NeedsInput;
#define RLT_ACTIVATION_VALUE(Name, NeedsInput, Value, Derivative) \
  if constexpr (A == Activation::Name) return Value;
#define RLT_ACTIVATION_DERIVATIVE(Name, NeedsInput, Value, Derivative) \
  if constexpr (A == Activation::Name) return Derivative;

enum class Activation : unsigned char { RLT_ACTIVATION_LIST(RLT_ACTIVATION_NAME) };
constexpr int kActivationCount = RLT_ACTIVATION_LIST(RLT_ACTIVATION_COUNT);

// Activations of layers of run-time shape, a bit for each index of the list: where memory is
// scarce, a program leaves out what its policies do not have. GELU, sigmoid and softplus take 1.3
// KB of a Cortex-M4's code, ELU and SiLU 0.6 KB.
#ifndef RLT_ACTIVATIONS
#define RLT_ACTIVATIONS 0xffffffff
#endif
static_assert(kActivationCount <= 32, "RLT_ACTIVATIONS has a bit for 32 activations");
constexpr bool has_activation(Activation activation) {
  return (RLT_ACTIVATIONS >> static_cast<int>(activation) & 1) != 0;
}

constexpr const char* activation_name(Activation activation) {
  switch (activation) { RLT_ACTIVATION_LIST(RLT_ACTIVATION_TEXT) }
  return "unknown";
}

// True where the derivative needs the input of the activation, not only its output.
constexpr bool needs_pre_activation(Activation activation) {
  switch (activation) { RLT_ACTIVATION_LIST(RLT_ACTIVATION_NEED) }
  return false;
}

template <Activation A, class T>
inline T activation_value(T x) {
  RLT_ACTIVATION_LIST(RLT_ACTIVATION_VALUE)
}

// Derivative, from the input x (read only where needs_pre_activation) and the output y.
template <Activation A, class T>
inline T activation_derivative([[maybe_unused]] T x, [[maybe_unused]] T y) {
  RLT_ACTIVATION_LIST(RLT_ACTIVATION_DERIVATIVE)
}

// The gradient of the input from that of the output; x and y as for the derivative.
template <Activation A, class T>
inline T activation_gradient(T x, T y, T gradient) {
  if constexpr (A == Activation::identity) {
    return gradient;
  } else if constexpr (A == Activation::relu) {
    return y > T(0) ? gradient : T(0);
  } else {
    return gradient * activation_derivative<A>(x, y);
  }
}

// The same of element i; `pre_activation` is read only where needs_pre_activation(A), and may be
// null otherwise, as `output` may where A is the identity.
template <Activation A, class T>
inline T activation_gradient([[maybe_unused]] const T* pre_activation,
                             [[maybe_unused]] const T* output, [[maybe_unused]] int i, T gradient) {
  if constexpr (A == Activation::identity) {
    return gradient;
  } else {
    const T x = needs_pre_activation(A) ? pre_activation[i] : T(0);
    return activation_gradient<A>(x, output[i], gradient);
  }
}

// output[i] = A(input[i]); the two may be the same array.
template <Activation A, int Count, class T>
Generic activation_forward(Generic device, const T* input, T* output) {
  for (int i = 0; i < Count; i++) output[i] = activation_value<A>(input[i]);
  return device;
}

// gradient[i] *= A'(...): turns the gradient of the output into that of the input, in place.
template <Activation A, int Count, class T>
Generic activation_backward(Generic device, [[maybe_unused]] const T* pre_activation,
                            [[maybe_unused]] const T* output, [[maybe_unused]] T* gradient) {
  if constexpr (A != Activation::identity) {
    for (int i = 0; i < Count; i++) {
      gradient[i] = activation_gradient<A>(pre_activation, output, i, gradient[i]);
    }
  }
  return device;
}

}  // namespace rlt

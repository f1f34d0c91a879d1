// Activation functions and their derivatives: identity, ReLU, GELU (exact, with erf), tanh,
// sigmoid, softplus.
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

enum class Activation : unsigned char { identity, relu, gelu, tanh, sigmoid, softplus };

// What layers of run-time shape know, a bit for each: where memory is scarce, a program leaves out
// what its policies do not have. GELU, sigmoid and softplus take 1.2 KB of a Cortex-M4's code.
#ifndef RLT_ACTIVATIONS
#define RLT_ACTIVATIONS 0x3f
#endif
constexpr bool has_activation(Activation activation) {
  return (RLT_ACTIVATIONS >> static_cast<int>(activation) & 1) != 0;
}

constexpr const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::identity: return "identity";
    case Activation::relu: return "relu";
    case Activation::gelu: return "gelu";
    case Activation::tanh: return "tanh";
    case Activation::sigmoid: return "sigmoid";
    case Activation::softplus: return "softplus";
  }
  return "unknown";
}

// True where the derivative needs the input of the activation, not only its output.
constexpr bool needs_pre_activation(Activation activation) {
  return activation == Activation::gelu || activation == Activation::softplus;
}

// Value at x. A NaN passes through each of them. ReLU's zero has no sign.
template <Activation A, class T>
inline T activation_value(T x) {
  if constexpr (A == Activation::identity) {
    return x;
  } else if constexpr (A == Activation::relu) {
    return x <= T(0) ? T(0) : x;
  } else if constexpr (A == Activation::gelu) {
    // Hendrycks and Gimpel 2016: x * Phi(x)
    return T(0.5) * x * (T(1) + math::erf(x * T(0.70710678118654752440)));
  } else if constexpr (A == Activation::tanh) {
    return math::tanh(x);
  } else if constexpr (A == Activation::sigmoid) {
    return math::sigmoid(x);
  } else {
    return math::softplus(x);
  }
}

// Derivative, from the input x (read only where needs_pre_activation) and the output y.
template <Activation A, class T>
inline T activation_derivative(T x, T y) {
  (void)x;
  (void)y;
  if constexpr (A == Activation::identity) {
    return T(1);
  } else if constexpr (A == Activation::relu) {
    return y > T(0) ? T(1) : T(0);
  } else if constexpr (A == Activation::gelu) {
    const T cumulative = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
    const T density = T(0.39894228040143267794) * math::exp(T(-0.5) * x * x);
    return math::fma(x, density, cumulative);
  } else if constexpr (A == Activation::tanh) {
    return math::fma(-y, y, T(1));
  } else if constexpr (A == Activation::sigmoid) {
    return math::fma(-y, y, y);
  } else {
    return math::sigmoid(x);
  }
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

// output[i] = A(input[i]); the two may be the same array.
template <Activation A, int Count, class T>
Generic activation_forward(Generic device, const T* input, T* output) {
  for (int i = 0; i < Count; i++) output[i] = activation_value<A>(input[i]);
  return device;
}

// gradient[i] *= A'(...): turns the gradient of the output into that of the input, in place.
// `pre_activation` is read only where needs_pre_activation(A), and may be null otherwise.
template <Activation A, int Count, class T>
Generic activation_backward(Generic device, [[maybe_unused]] const T* pre_activation,
                            [[maybe_unused]] const T* output, [[maybe_unused]] T* gradient) {
  if constexpr (A != Activation::identity) {
    for (int i = 0; i < Count; i++) {
      const T x = needs_pre_activation(A) ? pre_activation[i] : T(0);
      gradient[i] = activation_gradient<A>(x, output[i], gradient[i]);
    }
  }
  return device;
}

}  // namespace rlt

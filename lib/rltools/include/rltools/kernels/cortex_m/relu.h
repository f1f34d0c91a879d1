// ReLU for Arm Cortex-M on the bits of a float: a floating-point comparison has to move its flags
// to the core, which costs more than integer arithmetic. Bits equal those of nn/activation.h, for
// -0 and NaN too.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rltools/nn/activation.h"

namespace rlt {

namespace kernels {

// x <= 0 ? 0 : x. The floats to replace are 0x80000000 (-0) to 0xff800000 (minus infinity).
inline float relu_value(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  bits = bits - 0x80000000u <= 0x7f800000u ? 0u : bits;
  __builtin_memcpy(&x, &bits, sizeof bits);
  return x;
}

// y > 0 ? gradient : 0. The floats above zero are 0x00000001 to 0x7f800000 (plus infinity).
inline float relu_gradient(float y, float gradient) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &y, sizeof bits);
  return bits - 1u < 0x7f800000u ? gradient : 0.0f;
}

// A(sum) of a dense layer, whose sums are never -0; with ReLU on bits.
template <Activation A>
inline float activation_of_sum(float sum) {
  if constexpr (A == Activation::relu) return relu_value(sum);
  return activation_value<A>(sum + 0.0f);
}

}  // namespace kernels

template <Activation A, int Count, std::enable_if_t<A == Activation::relu, int> = 0>
CortexM activation_forward(CortexM, const float* input, float* output) {
  for (int i = 0; i < Count; i++) output[i] = kernels::relu_value(input[i]);
  return {};
}

template <Activation A, int Count, std::enable_if_t<A == Activation::relu, int> = 0>
CortexM activation_backward(CortexM, const float*, const float* output, float* gradient) {
  for (int i = 0; i < Count; i++) gradient[i] = kernels::relu_gradient(output[i], gradient[i]);
  return {};
}

}  // namespace rlt

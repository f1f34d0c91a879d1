// ReLU for Arm Cortex-M. The loop that it replaces is that of nn/activation.h:
//
//   for (i = 0; i < count; i++) output[i] = input[i] <= 0 ? 0 : input[i];
//
// It works on the bits of a float, without a branch: a floating-point comparison has to move its
// flags to the core, which costs more than integer arithmetic. The bits are equal, for -0 and NaN
// too.
#pragma once

#include <cstdint>

#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

#include "rltools/nn/activation.h"

namespace rlt {

namespace kernels {

// The bits of x <= 0, and no others, are a negative integer when this is added without overflow.
constexpr std::int32_t kBelowZero = 0x7fffff;

// x <= 0 ? 0 : x. The floats to replace are 0x80000000 (-0) to 0xff800000 (minus infinity).
inline float relu_value(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
#if defined(__ARM_FEATURE_DSP)
  const std::int32_t sum = __qadd(static_cast<std::int32_t>(bits), kBelowZero);
  bits &= ~static_cast<std::uint32_t>(sum >> 31);
#else
  bits = bits - 0x80000000u <= 0x7f800000u ? 0u : bits;
#endif
  __builtin_memcpy(&x, &bits, sizeof bits);
  return x;
}

// Four at a time: one instruction loads or stores four integers.
inline __attribute__((noinline)) void relu_values(const float* input, float* output, int count) {
  int i = 0;
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
  for (; i + 4 <= count; i += 4) {
    __asm__ volatile(
        "ldmia %[input]!, {r4, r5, r6, r8}\n\t"
        "qadd r9, r4, %[shift]\n\t"
        "bic r4, r4, r9, asr #31\n\t"
        "qadd r9, r5, %[shift]\n\t"
        "bic r5, r5, r9, asr #31\n\t"
        "qadd r9, r6, %[shift]\n\t"
        "bic r6, r6, r9, asr #31\n\t"
        "qadd r9, r8, %[shift]\n\t"
        "bic r8, r8, r9, asr #31\n\t"
        "stmia %[output]!, {r4, r5, r6, r8}"
        : [input] "+r"(input), [output] "+r"(output)
        : [shift] "r"(kBelowZero)
        : "r4", "r5", "r6", "r8", "r9", "memory");
  }
#endif
  for (; i < count; i++) *output++ = relu_value(*input++);
}

// gradient[i] = output[i] > 0 ? gradient[i] : 0, where output > 0 are the floats 0x00000001 to
// 0x7f800000 (plus infinity).
inline __attribute__((noinline)) void relu_gradients(const float* output, float* gradient,
                                                     int count) {
  int i = 0;
#if defined(__thumb2__)
  // Each comparison borrows where the output is positive; the difference of a register and itself
  // is then -1, and else 0.
  for (; i + 4 <= count; i += 4) {
    __asm__ volatile(
        "ldmia %[output]!, {r4, r5, r6, r8}\n\t"
        "ldmia %[gradient], {r9, r10, r11, r12}\n\t"
        "sub r4, r4, #1\n\t"
        "cmp r4, #0x7f800000\n\t"
        "sbc r4, r4, r4\n\t"
        "and r9, r9, r4\n\t"
        "sub r5, r5, #1\n\t"
        "cmp r5, #0x7f800000\n\t"
        "sbc r5, r5, r5\n\t"
        "and r10, r10, r5\n\t"
        "sub r6, r6, #1\n\t"
        "cmp r6, #0x7f800000\n\t"
        "sbc r6, r6, r6\n\t"
        "and r11, r11, r6\n\t"
        "sub r8, r8, #1\n\t"
        "cmp r8, #0x7f800000\n\t"
        "sbc r8, r8, r8\n\t"
        "and r12, r12, r8\n\t"
        "stmia %[gradient]!, {r9, r10, r11, r12}"
        : [output] "+r"(output), [gradient] "+r"(gradient)
        :
        : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
  }
#endif
  for (; i < count; i++, output++, gradient++) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, output, sizeof bits);
    if (bits - 1u >= 0x7f800000u) *gradient = 0.0f;
  }
}

// A(sum) of a dense layer, whose sums are never -0; with ReLU on bits.
template <Activation A>
inline float activation_of_sum(float sum) {
  if constexpr (A == Activation::relu) return relu_value(sum);
  return activation_value<A>(sum + 0.0f);
}

template <Activation A>
inline void activations_of_sums(float* values, int count) {
  if constexpr (A == Activation::relu) {
    relu_values(values, values, count);
  } else {
    for (int i = 0; i < count; i++) values[i] = activation_of_sum<A>(values[i]);
  }
}

// Has a Type only where the condition holds, so that an overload exists only there: <type_traits>
// is not everywhere where policies run.
template <bool>
struct OnlyWhere {};
template <>
struct OnlyWhere<true> {
  using Type = int;
};

}  // namespace kernels

template <Activation A, int Count, typename kernels::OnlyWhere<A == Activation::relu>::Type = 0>
CortexM activation_forward(CortexM device, const float* input, float* output) {
  kernels::relu_values(input, output, Count);
  return device;
}

template <Activation A, int Count, typename kernels::OnlyWhere<A == Activation::relu>::Type = 0>
CortexM activation_backward(CortexM device, const float*, const float* output, float* gradient) {
  kernels::relu_gradients(output, gradient, Count);
  return device;
}

}  // namespace rlt

// Adam for Arm Cortex-M. The loop that it replaces is that of nn/optimizer.h:
//
//   for (i = 0; i < Count; i++)
//     adam_element(step, gradient[i], parameters[i], first_moment[i], second_moment[i]);
//
// Small moments are found on their bits, without moving the flags of a floating-point comparison to
// the core, and without a branch. The bits are equal.
#pragma once

#include <cstdint>

#include "rltools/nn/optimizer.h"

namespace rlt {

namespace kernels {

// Zero where |x| is below the smallest normal number; a NaN stays.
inline float without_subnormal(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
#if defined(__thumb2__)
  std::uint32_t mask;
  __asm__(
      "cmp %[below], %[bits], lsl #1\n\t"  // borrows where the number is normal
      "sbc %[mask], %[bits], %[bits]"
      : [mask] "=r"(mask)
      : [below] "r"(0x00ffffffu), [bits] "r"(bits)
      : "cc");
  bits &= mask;
#else
  if (bits << 1 < 0x01000000u) bits = 0;
#endif
  __builtin_memcpy(&x, &bits, sizeof bits);
  return x;
}

}  // namespace kernels

template <int Count>
CortexM adam_update(CortexM device, const AdamStep<float>& step, const float* gradient,
                    float* parameters, float* first_moment, float* second_moment) {
  const AdamStep<float> s = step;  // no store can change it: it stays in registers
  for (int i = 0; i < Count; i++) {
    const float g = gradient[i];
    const float first =
        kernels::without_subnormal(math::fma(s.beta1, first_moment[i], s.one_minus_beta1 * g));
    const float second =
        kernels::without_subnormal(math::fma(s.beta2, second_moment[i], s.one_minus_beta2 * g * g));
    first_moment[i] = first;
    second_moment[i] = second;
    const float denominator =
        math::fma(math::sqrt(second), s.inverse_sqrt_second_correction, s.epsilon);
    parameters[i] = math::fma(-s.learning_rate, first / denominator, parameters[i]);
  }
  return device;
}

}  // namespace rlt

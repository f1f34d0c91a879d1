// The layer of run-time shape (nn/dense_at_run_time.h) for RISC-V with floating-point unit: up to
// 16 neighbouring sums stay in registers, and inputs that are zero are left out by a branch.
#pragma once

#include "rltools/kernels/riscv_f/device.h"
#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

namespace kernels {

// The outputs `first` to `first` + Columns - 1.
template <int Columns>
inline void sums_at_run_time(int in, int out, int first, const AliasingFloat* weights,
                             const AliasingFloat* bias, const float* input, float* output) {
  float sum[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) sum[c] = bias[first + c];
  const AliasingFloat* row = weights + first;
  for (const float* const end = input + in; input != end; input++, row += out) {
    if (math::is_zero(*input)) continue;
#pragma GCC unroll 16
    for (int c = 0; c < Columns; c++) sum[c] = math::fma(*input, row[c], sum[c]);
  }
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) output[first + c] = sum[c] + 0.0f;
}

}  // namespace kernels

inline RiscvF dense_forward_at_run_time(RiscvF device, Activation activation, int in, int out,
                                        const AliasingFloat* weights, const AliasingFloat* bias,
                                        const float* input, float* output) {
  int first = 0;
  for (; first + 16 <= out; first += 16) {
    kernels::sums_at_run_time<16>(in, out, first, weights, bias, input, output);
  }
  for (; first + 4 <= out; first += 4) {
    kernels::sums_at_run_time<4>(in, out, first, weights, bias, input, output);
  }
  for (; first < out; first++) {
    kernels::sums_at_run_time<1>(in, out, first, weights, bias, input, output);
  }
  activation_at_run_time(device, activation, out, output);
  return device;
}

}  // namespace rlt

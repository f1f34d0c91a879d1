// The dense layer's three products for 32-bit RISC-V with a single-precision floating-point unit:
// the extension F, which has fused multiply-add and 32 registers. The loops that they replace are
// those of nn/dense.h:
//
//   output(s, o)           = A(bias(o) + sum over i of input(s, i) weights(i, o))
//   weights_gradient(i, o) += sum over s of input(s, i) output_gradient(s, o)
//   input_gradient(s, i)   = A'(i) sum over o of output_gradient(s, o) weights(i, o)
//
// 16 neighboring sums of a row stay in registers, and a term whose first factor is zero, as about
// half of them are behind a ReLU, is left out by a branch. The bits are equal: what is left
// accumulates in the same order.
#pragma once

#include "rltools/kernels/register_tile.h"
#include "rltools/nn/dense.h"
#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

struct RiscvF : Generic {};

namespace kernels {

constexpr int kRowColumns = 16;  // sums under way

// sum(row, c) = start(row, c); for k = 0 .. Depth-1 with a(row, k) != 0
// sum(row, c) = fma(a(row, k), b(k, c), sum(row, c)); finish(row, c, sum), for `Columns` columns c
// from `column` on.
template <int Columns, int Depth, class A, class B, class Start, class Finish>
inline void product_of_row(const float* a, const float* b, int row, int column, const Start& start,
                           const Finish& finish) {
  float sum[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) sum[c] = start(row, column + c);
  const float* factor = a + row * A::kRow;
  const float* others = b + column * B::kColumn;
  for (const float* const end = factor + Depth * A::kColumn; factor != end;
       factor += A::kColumn, others += B::kRow) {
    if (math::is_zero(*factor)) continue;
#pragma GCC unroll 16
    for (int c = 0; c < Columns; c++) {
      sum[c] = math::fma(*factor, others[c * B::kColumn], sum[c]);
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) finish(row, column + c, sum[c]);
}

// The product of a (Rows, Depth) and b (Depth, Columns).
template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline void product_by_rows(const float* a, const float* b, const Start& start,
                            const Finish& finish) {
  constexpr int kWhole = Columns / kRowColumns * kRowColumns;
  for (int row = 0; row < Rows; row++) {
    for (int column = 0; column < kWhole; column += kRowColumns) {
      product_of_row<kRowColumns, Depth, A, B>(a, b, row, column, start, finish);
    }
  }
  // Few columns: tiles of several rows share what they load.
  if constexpr (kWhole < Columns) {
    product<5, 4, Rows, kWhole, Columns, Depth, A, B>(a, b, start, finish);
  }
}

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

template <Activation A, int Batch, int In, int Out>
RiscvF dense_forward(RiscvF device, const float* weights, const float* bias, const float* input,
                     float* output) {
  kernels::product_by_rows<Batch, Out, In, kernels::Strides<In, 1>, kernels::Strides<Out, 1>>(
      input, weights, [=](int, int out) { return bias[out]; },
      [=](int sample, int out, float sum) {
        output[sample * Out + out] = activation_value<A>(sum + 0.0f);
      });
  return device;
}

template <int Batch, int In, int Out>
RiscvF dense_backward_weights(RiscvF device, const float* input, const float* output_gradient,
                              float* weights_gradient, float* bias_gradient) {
  kernels::product_by_rows<In, Out, Batch, kernels::Strides<1, In>, kernels::Strides<Out, 1>>(
      input, output_gradient, [=](int in, int out) { return weights_gradient[in * Out + out]; },
      [=](int in, int out, float sum) { weights_gradient[in * Out + out] = sum; });
  add_column_sums<Batch, Out>(output_gradient, bias_gradient);
  return device;
}

template <Activation A, int Batch, int In, int Out>
RiscvF dense_backward_input(RiscvF device, const float* weights, const float* output_gradient,
                            const float* pre_activation, const float* input,
                            float* input_gradient) {
  kernels::product_by_rows<Batch, In, Out, kernels::Strides<Out, 1>, kernels::Strides<1, Out>>(
      output_gradient, weights, [](int, int) { return 0.0f; },
      [=](int sample, int in, float sum) { input_gradient[sample * In + in] = sum; });
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

// The layer of run-time shape (nn/dense_at_run_time.h).
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

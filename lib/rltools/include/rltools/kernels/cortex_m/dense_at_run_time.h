// The fully connected layer of run-time shape for Arm Cortex-M with FPU, for one sample. The
// loop that it replaces is that of nn/dense_at_run_time.h:
//
//   for each output o:
//     sum = bias(o)
//     for i = 0 .. inputs-1: sum = fma(input(i), weights(i, o), sum)
//     output(o) = A(sum)
//
// Lists hold the terms whose first factor is not zero (term_list.h). The bits are equal.
#pragma once

#include "rltools/kernels/cortex_m/relu.h"
#include "rltools/kernels/cortex_m/term_list.h"
#include "rltools/nn/dense_at_run_time.h"
#include "rltools/nn/recurrent_at_run_time.h"

namespace rlt {

namespace kernels {

constexpr int kListedInputs = 64;  // that a list on the stack has room for

// The terms of input (in) with the rows of weights (in, out), of the columns from 0 on.
inline void list_terms_at_run_time(int in, int out, const AliasingFloat* weights,
                                   const float* input, TermList<kListedInputs>& list) {
  int minus_count = 0;
  const AliasingFloat* row = weights + in * out;
#pragma GCC unroll 4
  for (int i = in - 1; i >= 0; i--) {
    row -= out;
    minus_count = add_term(list.rows + kListedInputs - 1, list.factors + kListedInputs - 1,
                           minus_count, row, input[i]);
  }
  list.count = -minus_count;
}

// `Columns` sums, from the column `column` on; rows stand at the column `rows_at`, behind those
// that went by lists.
template <int Columns>
inline void narrow_columns(int column, int rows_at, const TermList<kListedInputs>& list,
                           const AliasingFloat* start, float* sums) {
  float sum[Columns];
#pragma GCC unroll 4
  for (int c = 0; c < Columns; c++) sum[c] = start[column + c];
  for (int i = kListedInputs - list.count; i < kListedInputs; i++) {
    const float factor = list.factors[i];
    const AliasingFloat* row = list.rows[i] + (column - rows_at);
#pragma GCC unroll 4
    for (int c = 0; c < Columns; c++) sum[c] = math::fma(factor, row[c], sum[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < Columns; c++) sums[column + c] = sum[c];
}

// The columns from `first` on, fewer than 16.
inline void last_columns(int first, int out, const TermList<kListedInputs>& list,
                         const AliasingFloat* start, float* sums) {
  int column = first;
  for (; column + 4 <= out; column += 4) narrow_columns<4>(column, first, list, start, sums);
  for (; column < out; column++) narrow_columns<1>(column, first, list, start, sums);
}

// `Columns` outputs, from `column` on, of a layer too narrow for lists.
template <int Columns>
inline void narrow_columns(int in, int out, int column, const AliasingFloat* weights,
                           const AliasingFloat* bias, const float* input, float* output) {
  float sum[Columns];
#pragma GCC unroll 4
  for (int c = 0; c < Columns; c++) sum[c] = bias[column + c];
  const AliasingFloat* row = weights + column;
#pragma GCC unroll 4
  for (int i = 0; i < in; i++, row += out) {
#pragma GCC unroll 4
    for (int c = 0; c < Columns; c++) sum[c] = math::fma(input[i], row[c], sum[c]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < Columns; c++) output[column + c] = sum[c];
}

// Twice the bits of 40, so that a sign falls out; NaN and infinity are above all numbers. Below it
// the clamps of math::sigmoid() and its test for NaN change nothing.
constexpr std::uint32_t kUnclampedBits2 = 0x42200000u << 1;

inline __attribute__((noinline)) float any_sigmoid(float x) { return math::sigmoid(x); }

}  // namespace kernels

inline CortexM dense_forward_at_run_time(CortexM device, Activation activation, int in, int out,
                                         const AliasingFloat* weights, const AliasingFloat* bias,
                                         const float* input, float* output) {
  constexpr int kAtOnce = kernels::kListedInputs;
  const int blocks = out / kernels::kListColumns;
  if (blocks == 0) {
    int column = 0;
    for (; column + 4 <= out; column += 4) {
      kernels::narrow_columns<4>(in, out, column, weights, bias, input, output);
    }
    for (; column < out; column++) {
      kernels::narrow_columns<1>(in, out, column, weights, bias, input, output);
    }
  }
  const AliasingFloat* start = bias;
  for (int first = 0; blocks > 0 && first < in; first += kAtOnce) {
    kernels::TermList<kAtOnce> list;
    kernels::list_terms_at_run_time(in - first < kAtOnce ? in - first : kAtOnce, out,
                                    weights + first * out, input + first, list);
    kernels::accumulate_terms({start, kernels::kListColumns}, output,
                              list.rows + kAtOnce - list.count, list.factors + kAtOnce - list.count,
                              list.count, blocks);
    kernels::last_columns(blocks * kernels::kListColumns, out, list, start, output);
    start = output;
  }
  if (activation == Activation::relu) {
    kernels::relu_values(output, output, out);
  } else {
    kernels::without_negative_zero(output, out);
    activation_at_run_time(device, activation, out, output);
  }
  return device;
}

// The gates of a recurrent layer of run-time shape: sums that need no clamp, as nearly all, are
// found by one comparison of integers, and their sigmoid is straight-line code. The reference is
// gates_at_run_time() of nn/recurrent_at_run_time.h; the bits are the same.
inline CortexM gates_at_run_time(CortexM device, int count, const float* others, float* sums) {
  for (int i = 0; i < count; i++) {
    const float x = sums[i] + others[i];
    const bool is_plain = math::to_bits(x) << 1 < kernels::kUnclampedBits2;
    sums[i] = is_plain ? math::unclamped_sigmoid(-x) : kernels::any_sigmoid(x);
  }
  return device;
}

}  // namespace rlt

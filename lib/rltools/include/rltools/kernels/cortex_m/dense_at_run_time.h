// The fully connected layer of run-time shape for Arm Cortex-M with FPU, for one sample: lists of
// the terms whose first factor is not zero (term_list.h). Bits equal those of
// nn/dense_at_run_time.h.
#pragma once

#include "rltools/kernels/cortex_m/relu.h"
#include "rltools/kernels/cortex_m/term_list.h"
#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

namespace kernels {

constexpr int kListedInputs = 64;  // that a list on the stack has room for

// The terms of input (in) with the rows of weights (in, out), of the columns from 0 on.
inline void list_terms_at_run_time(int in, int out, const AliasingFloat* weights,
                                   const float* input, TermList<kListedInputs>& list) {
  int minus_count = 0;
  const AliasingFloat* row = weights + in * out;
  for (int i = in - 1; i >= 0; i--) {
    row -= out;
    minus_count = add_term(list.rows + kListedInputs - 1, list.factors + kListedInputs - 1,
                           minus_count, row, input[i]);
  }
  list.count = -minus_count;
}

// The columns from `first` on, fewer than 16.
inline void last_columns(int first, int out, const TermList<kListedInputs>& list,
                         const AliasingFloat* start, float* sums) {
  const int begin = kListedInputs - list.count;
  for (int o = first; o < out; o++) {
    float sum = start[o];
    for (int i = begin; i < kListedInputs; i++) {
      // Rows stand behind the columns that went by lists.
      sum = math::fma(list.factors[i], list.rows[i][o - first], sum);
    }
    sums[o] = sum;
  }
}

}  // namespace kernels

inline CortexM dense_forward_at_run_time(CortexM device, Activation activation, int in, int out,
                                         const AliasingFloat* weights, const AliasingFloat* bias,
                                         const float* input, float* output) {
  constexpr int kAtOnce = kernels::kListedInputs;
  const int blocks = out / kernels::kListColumns;
  const AliasingFloat* start = bias;
  for (int first = 0; first < in; first += kAtOnce) {
    kernels::TermList<kAtOnce> list;
    kernels::list_terms_at_run_time(in - first < kAtOnce ? in - first : kAtOnce, out,
                                    weights + first * out, input + first, list);
    if (blocks > 0) {
      kernels::accumulate_terms({start, kernels::kListColumns}, output,
                                list.rows + kAtOnce - list.count,
                                list.factors + kAtOnce - list.count, list.count, blocks);
    }
    kernels::last_columns(blocks * kernels::kListColumns, out, list, start, output);
    start = output;
  }
  if (activation == Activation::relu) {
    kernels::relu_values(output, output, out);
  } else {
    for (int o = 0; o < out; o++) output[o] += 0.0f;  // there is no -0
    activation_at_run_time(device, activation, out, output);
  }
  return device;
}

}  // namespace rlt

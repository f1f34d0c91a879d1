// The dense layer's three products for Arm Cortex-M with FPU. The loops that they replace are those
// of nn/dense.h:
//
//   output(s, o)           = A(bias(o) + sum over i of input(s, i) weights(i, o))
//   weights_gradient(i, o) += sum over s of input(s, i) output_gradient(s, o)
//   input_gradient(s, i)   = A'(i) sum over o of output_gradient(s, o) weights(i, o)
//
// Terms whose first factor is zero are left out where there are enough of them (term_list.h); else
// tiles of 5 x 4 sums stay in the 32 single-precision registers, so that a multiply-add costs 0.45
// loads instead of 2. The bits are equal.
#pragma once

#include "rltools/kernels/cortex_m/relu.h"
#include "rltools/kernels/cortex_m/term_list.h"
#include "rltools/kernels/register_tile.h"
#include "rltools/nn/dense.h"

namespace rlt {

template <Activation A, int Batch, int In, int Out>
CortexM dense_forward(CortexM device, const float* weights, const float* bias, const float* input,
                      float* output) {
  using InputStrides = kernels::Strides<In, 1>;
  using WeightStrides = kernels::Strides<Out, 1>;
  constexpr int kListed = kernels::list_columns(Out);
  const auto start = [=](int, int out) { return bias[out]; };
  const auto finish = [=](int sample, int out, float sum) {
    output[sample * Out + out] = kernels::activation_of_sum<A>(sum);
  };
  if constexpr (kListed > 0) {
    if (kernels::lists_pay<Batch, In, InputStrides>(input)) {
      kernels::list_product<Batch, Out, In, InputStrides, WeightStrides>(
          input, weights, [=](int) { return kernels::SumStart{bias, kernels::kListColumns}; },
          [=](int sample) { return output + sample * Out; });
      kernels::product<5, 4, Batch, kListed, Out, In, InputStrides, WeightStrides>(input, weights,
                                                                                   start, finish);
      for (int sample = 0; sample < Batch; sample++) {
        kernels::activations_of_sums<A>(output + sample * Out, kListed);
      }
      return device;
    }
  }
  kernels::product<5, 4, Batch, 0, Out, In, InputStrides, WeightStrides>(input, weights, start,
                                                                         finish);
  return device;
}

template <int Batch, int In, int Out>
CortexM dense_backward_weights(CortexM device, const float* input, const float* output_gradient,
                               float* weights_gradient, float* bias_gradient) {
  using InputStrides = kernels::Strides<1, In>;
  using GradientStrides = kernels::Strides<Out, 1>;
  constexpr int kListed = kernels::list_columns(Out);
  const auto start = [=](int in, int out) { return weights_gradient[in * Out + out]; };
  const auto finish = [=](int in, int out, float sum) { weights_gradient[in * Out + out] = sum; };
  bool is_listed = false;
  if constexpr (kListed > 0) {
    is_listed = kernels::lists_pay<In, Batch, InputStrides>(input);
    if (is_listed) {
      kernels::list_product<In, Out, Batch, InputStrides, GradientStrides>(
          input, output_gradient,
          [=](int in) {
            return kernels::SumStart{weights_gradient + in * Out, kernels::kListColumns};
          },
          [=](int in) { return weights_gradient + in * Out; });
      kernels::product<5, 4, In, kListed, Out, Batch, InputStrides, GradientStrides>(
          input, output_gradient, start, finish);
    }
  }
  if (!is_listed) {
    kernels::product<5, 4, In, 0, Out, Batch, InputStrides, GradientStrides>(input, output_gradient,
                                                                             start, finish);
  }
  // Column sums, of as many columns at a time as stay in registers.
  constexpr int kColumns = 16;
  for (int first = 0; first < Out / kColumns * kColumns; first += kColumns) {
    float sum[kColumns];
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; c++) sum[c] = bias_gradient[first + c];
    for (int sample = 0; sample < Batch; sample++) {
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; c++) sum[c] += output_gradient[sample * Out + first + c];
    }
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; c++) bias_gradient[first + c] = sum[c];
  }
  for (int out = Out / kColumns * kColumns; out < Out; out++) {
    float sum = bias_gradient[out];
    for (int sample = 0; sample < Batch; sample++) sum += output_gradient[sample * Out + out];
    bias_gradient[out] = sum;
  }
  return device;
}

template <Activation A, int Batch, int In, int Out>
CortexM dense_backward_input(CortexM device, const float* weights, const float* output_gradient,
                             const float* pre_activation, const float* input,
                             float* input_gradient) {
  using GradientStrides = kernels::Strides<Out, 1>;
  using WeightStrides = kernels::Strides<1, Out>;
  constexpr int kListed =
      kernels::transposed_columns(Batch, In, Out) > 0 ? kernels::list_columns(In) : 0;
  const auto start = [](int, int) { return 0.0f; };
  const auto finish = [=](int sample, int in, float sum) {
    input_gradient[sample * In + in] = sum;
  };
  bool is_listed = false;
  if constexpr (kListed > 0) {
    is_listed = kernels::lists_pay<Batch, Out, GradientStrides>(output_gradient);
    if (is_listed) {
      kernels::list_product_of_transposed<Batch, In, Out>(output_gradient, weights, input_gradient);
      kernels::product<5, 4, Batch, kListed, In, Out, GradientStrides, WeightStrides>(
          output_gradient, weights, start, finish);
    }
  }
  if (!is_listed) {
    kernels::product<5, 4, Batch, 0, In, Out, GradientStrides, WeightStrides>(
        output_gradient, weights, start, finish);
  }
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

}  // namespace rlt

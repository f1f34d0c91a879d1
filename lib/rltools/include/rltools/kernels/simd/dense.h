// The dense layer's three products with the host's vectors. The loops that they replace are those
// of nn/dense.h:
//
//   output(s, o)           = A(bias(o) + sum over i of input(s, i) weights(i, o))
//   weights_gradient(i, o) += sum over s of input(s, i) output_gradient(s, o)
//   input_gradient(s, i)   = A'(i) sum over o of output_gradient(s, o) weights(i, o)
//
// Terms whose first factor is zero are left out where there are enough of them. The bits are equal.
#pragma once

#include "rltools/kernels/simd/blocked_product.h"
#include "rltools/nn/dense.h"

namespace rlt {

template <Activation A, int Batch, int In, int Out>
HostSimd dense_forward(HostSimd device, const float* weights, const float* bias, const float* input,
                       float* output) {
  using InputStrides = kernels::Strides<In, 1>;
  using WeightStrides = kernels::Strides<Out, 1>;
  constexpr int kVectorized = kernels::vector_columns(Out);
  constexpr bool kIsRelu = A == Activation::relu;
  const auto start = [=](int, int out) { return bias[out]; };
  const auto finish = [=](int sample, int out, float sum) {
    output[sample * Out + out] = kIsRelu ? activation_value<Activation::relu>(sum) : sum + 0.0f;
  };
  constexpr bool kIsShort = kernels::is_narrow(Out) && Batch == 1 && In >= kernels::kLanes;
  // Many sums by themselves take longer than the one vector that holds them.
  if constexpr (kIsShort && (kernels::kNarrowInWholeVector || Out > 8)) {
    const kernels::Vector sum =
        kernels::nonzero_row<Out, In>(input, weights, kernels::load_first<Out>(bias));
    kernels::store_first<Out>(
        output, kIsRelu ? kernels::relu_of_sum(sum) : kernels::without_negative_zero(sum));
  } else if constexpr (kIsShort) {
    float sum[Out];
    for (int out = 0; out < Out; out++) sum[out] = bias[out];
    kernels::nonzero_row<Out, In>(input, weights, sum);
    for (int out = 0; out < Out; out++) finish(0, out, sum[out]);
  } else if constexpr (kernels::is_narrow(Out)) {
    kernels::narrow_product<Batch, Out, In, WeightStrides>(input, weights, start, finish);
  } else {
    constexpr bool kCopy = Out > kernels::kBlock && Batch >= 16;
    kernels::blocked_product<Batch, Out, In, InputStrides>(
        input, kernels::RowPanels<In, Out, kCopy>(weights), output,
        kernels::may_skip_zeros(Out, In) &&
            kernels::skipping_pays<Batch, In, kernels::Sharing::rows>(input),
        [=](int, int out) { return kernels::load(bias + out); },
        [=](int sample, int out, kernels::Vector sum) {
          kernels::store(output + sample * Out + out,
                         kIsRelu ? kernels::relu_of_sum(sum) : kernels::without_negative_zero(sum));
        });
    if constexpr (kVectorized < Out) {
      kernels::product<8, 1, Batch, kVectorized, Out, In, InputStrides, WeightStrides>(
          input, weights, start, finish);
    }
  }
  if constexpr (A != Activation::identity && A != Activation::relu) {
    activation_forward<A, Batch * Out>(device, static_cast<const float*>(output), output);
  }
  return device;
}

template <int Batch, int In, int Out>
HostSimd dense_backward_weights(HostSimd device, const float* input, const float* output_gradient,
                                float* weights_gradient, float* bias_gradient) {
  using InputStrides = kernels::Strides<1, In>;
  using GradientStrides = kernels::Strides<Out, 1>;
  constexpr int kVectorized = kernels::vector_columns(Out);
  // Few outputs: lanes are neighboring inputs, and the sums are kept the other way round.
  constexpr int kVectorizedIn = Out == 1 || (kernels::is_narrow(Out) && Batch >= kernels::kLanes)
                                    ? kernels::vector_columns(In)
                                    : 0;
  if constexpr (kVectorizedIn > 0) {
    constexpr int kWidth = kVectorizedIn;
    alignas(64) float copy[Out == 1 ? 1 : Out * kWidth];
    float* sums = Out == 1 ? weights_gradient : copy;
    if constexpr (Out > 1) kernels::transpose<kWidth, Out, Out, kWidth>(weights_gradient, copy);
    kernels::vector_product<Out, kWidth, Batch, kernels::Strides<1, Out>, kernels::Strides<In, 1>>(
        output_gradient, input,
        [=](int out, int in) { return kernels::load(sums + out * kWidth + in); },
        [=](int out, int in, kernels::Vector sum) {
          kernels::store(sums + out * kWidth + in, sum);
        });
    if constexpr (Out > 1) kernels::transpose<Out, kWidth, kWidth, Out>(copy, weights_gradient);
  }
  if constexpr (kVectorized > 0) {
    constexpr bool kCopy = Out > kernels::kBlock && In >= 16;
    // An input's samples are read one by one: where they are pages apart, the cache holds few.
    constexpr bool kMaySkip =
        kernels::may_skip_zeros(Out, Batch) && In >= kernels::kLanes && In <= 512;
    kernels::blocked_product<In, Out, Batch, InputStrides>(
        input, kernels::RowPanels<Batch, Out, kCopy>(output_gradient), weights_gradient,
        kMaySkip && kernels::skipping_pays<Batch, In, kernels::Sharing::columns>(input),
        [=](int in, int out) { return kernels::load(weights_gradient + in * Out + out); },
        [=](int in, int out, kernels::Vector sum) {
          kernels::store(weights_gradient + in * Out + out, sum);
        });
  }
  if constexpr (kVectorized < Out && kVectorizedIn < In) {
    kernels::product<8, 1, In - kVectorizedIn, kVectorized, Out, Batch, InputStrides,
                     GradientStrides>(
        input + kVectorizedIn, output_gradient,
        [=](int in, int out) { return weights_gradient[(kVectorizedIn + in) * Out + out]; },
        [=](int in, int out, float sum) {
          weights_gradient[(kVectorizedIn + in) * Out + out] = sum;
        });
  }
  kernels::add_rows<Batch, Out>(output_gradient, bias_gradient);
  return device;
}

// Lanes are neighboring inputs, so the weights are read transposed, a block at a time.
template <Activation A, int Batch, int In, int Out>
HostSimd dense_backward_input(HostSimd device, const float* weights, const float* output_gradient,
                              const float* pre_activation, const float* input,
                              float* input_gradient) {
  using GradientStrides = kernels::Strides<Out, 1>;
  using Panels = std::conditional_t<Out == 1, kernels::RowPanels<1, In, false>,
                                    kernels::TransposedPanels<Out>>;
  constexpr int kVectorized = kernels::vector_columns(In);
  constexpr bool kIsRelu = A == Activation::relu;
  const auto start = [](int, int) { return 0.0f; };
  const auto finish = [=](int sample, int in, float sum) {
    const int i = sample * In + in;
    input_gradient[i] = kIsRelu ? activation_gradient<Activation::relu>(0.0f, input[i], sum) : sum;
  };
  if constexpr (kernels::is_narrow(In)) {
    kernels::narrow_product<Batch, In, Out, kernels::Strides<1, Out>>(output_gradient, weights,
                                                                      start, finish);
  } else {
    kernels::blocked_product<Batch, In, Out, GradientStrides>(
        output_gradient, Panels(weights), input_gradient,
        kernels::may_skip_zeros(In, Out) &&
            kernels::skipping_pays<Batch, Out, kernels::Sharing::rows>(output_gradient),
        [](int, int) { return kernels::broadcast(0.0f); },
        [=](int sample, int in, kernels::Vector sum) {
          const int i = sample * In + in;
          kernels::store(input_gradient + i,
                         kIsRelu ? kernels::relu_gradient(kernels::load(input + i), sum) : sum);
        });
    if constexpr (kVectorized < In) {
      kernels::product<4, 4, Batch, kVectorized, In, Out, GradientStrides,
                       kernels::Strides<1, Out>>(output_gradient, weights, start, finish);
    }
  }
  if constexpr (!kIsRelu) {
    activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  }
  return device;
}

}  // namespace rlt

// The dense layer's products through the C interface of BLAS (cblas_sgemm, OpenBLAS's) where a
// layer is large. NOT bit-identical: BLAS adds up in an order of its own, which depends on library,
// version and processor. Results are the reference's to rounding
// (tests/lib/kernels/blas/test_kernels_blas.cpp).
#pragma once

#include <cblas.h>
#include <type_traits>

#include "rltools/kernels/simd/dense.h"

namespace rlt {

namespace kernels::blas {

// One thread, set before main() and whatever the environment says: products of such layers end
// before further threads are awake, a benchmark on one core stays on it, and the order of the
// additions, hence the result, would otherwise depend on the number of cores.
struct SingleThread {
  SingleThread() { openblas_set_num_threads(1); }
};
inline const SingleThread kSingleThread;

// The shapes that the tag Blas leaves to BLAS; all others select the kernels of HostSimd and keep
// their bits. Measured with 6d6c5000's `bench layers`, batches 100 and 256 (docs/results.md, "Large
// layers"): with AVX-512 BLAS takes 0.99 to 1.29 times our time in these shapes, and more where
// factors are zero, which ours leave out; with AVX2 it took 0.4 to 1.1 times that of our kernels
// before they worked in blocks. In smaller shapes there is little to gain, as our kernels are near
// the core's peak. Single samples stay with our kernels also so that acting, evaluation and a
// policy's examples have everybody's bits.
constexpr bool takes(int batch, int in, int out) { return batch >= 32 && in >= 256 && out >= 256; }

// output (Batch, Out) = A(input (Batch, In) . weights (In, Out) + bias (Out))
// The bias is added last, together with the activation: one pass over the output.
template <Activation A, int Batch, int In, int Out>
inline void forward(const float* weights, const float* bias, const float* input, float* output) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, Batch, Out, In, 1.0f, input, In, weights,
              Out, 0.0f, output, Out);
  for (int sample = 0; sample < Batch; sample++) {
    float* row = output + sample * Out;
    for (int out = 0; out < Out; out++) row[out] = activation_value<A>(row[out] + bias[out]);
  }
}

// weights_gradient (In, Out) += input^T . output_gradient; bias_gradient (Out) += column sums, in
// the reference's order.
template <int Batch, int In, int Out>
inline void backward_weights(const float* input, const float* output_gradient,
                             float* weights_gradient, float* bias_gradient) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, In, Out, Batch, 1.0f, input, In,
              output_gradient, Out, 1.0f, weights_gradient, Out);
  for (int sample = 0; sample < Batch; sample++) {
    for (int out = 0; out < Out; out++) bias_gradient[out] += output_gradient[sample * Out + out];
  }
}

// input_gradient (Batch, In) = output_gradient (Batch, Out) . weights^T, times the derivative of
// the activation A that `input` came out of
template <Activation A, int Batch, int In, int Out>
inline void backward_input(Blas device, const float* weights, const float* output_gradient,
                           const float* pre_activation, const float* input, float* input_gradient) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, Batch, In, Out, 1.0f, output_gradient, Out,
              weights, Out, 0.0f, input_gradient, In);
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
}

// Where BLAS does not take a shape there is no overload, and HostSimd's is the nearest.
template <int Batch, int In, int Out>
using WhereTaken = std::enable_if_t<takes(Batch, In, Out), int>;

}  // namespace kernels::blas

template <Activation A, int Batch, int In, int Out, kernels::blas::WhereTaken<Batch, In, Out> = 0>
Blas dense_forward(Blas device, const float* weights, const float* bias, const float* input,
                   float* output) {
  kernels::blas::forward<A, Batch, In, Out>(weights, bias, input, output);
  return device;
}

template <int Batch, int In, int Out, kernels::blas::WhereTaken<Batch, In, Out> = 0>
Blas dense_backward_weights(Blas device, const float* input, const float* output_gradient,
                            float* weights_gradient, float* bias_gradient) {
  kernels::blas::backward_weights<Batch, In, Out>(input, output_gradient, weights_gradient,
                                                  bias_gradient);
  return device;
}

template <Activation A, int Batch, int In, int Out, kernels::blas::WhereTaken<Batch, In, Out> = 0>
Blas dense_backward_input(Blas device, const float* weights, const float* output_gradient,
                          const float* pre_activation, const float* input, float* input_gradient) {
  kernels::blas::backward_input<A, Batch, In, Out>(device, weights, output_gradient, pre_activation,
                                                   input, input_gradient);
  return device;
}

}  // namespace rlt

// The fully connected layer of run-time shape with the host's vectors, for one sample. The
// loop that it replaces is that of nn/dense_at_run_time.h:
//
//   for each output o:
//     sum = bias(o)
//     for i = 0 .. inputs-1: sum = fma(input(i), weights(i, o), sum)
//     output(o) = A(sum)
//
// Terms whose first factor is zero are left out. The bits are equal.
#pragma once

#include <cstdint>

#include "rltools/kernels/simd/vector.h"
#include "rltools/nn/dense_at_run_time.h"

namespace rlt {

namespace kernels {

constexpr int kInputsAtOnce = 64;  // one bit each in a word that tells which are not zero

// Bit k is set where values[k] is not zero (as NaN is not); where it is zero, it may be: beyond the
// last whole vector nobody looks. At most 64.
inline std::uint64_t nonzero_inputs(const float* values, int count) {
  const int whole = kLanes > 1 ? count / kLanes * kLanes : 0;
  std::uint64_t bits = 0;
  for (int k = 0; k < whole; k += kLanes) {
    bits |= std::uint64_t{nonzero_lanes(load(values + k))} << k;
  }
  const int rest = count - whole;
  return rest == 0 ? bits : bits | ~std::uint64_t{0} >> (64 - rest) << whole;
}

// End of a sum: more terms follow, or it is the output, with ReLU or without. An output is never
// -0.
enum class SumEnd { more_terms, output, relu_output };

template <SumEnd End>
inline Vector end_of_sum(Vector sum) {
  if constexpr (End == SumEnd::output) return without_negative_zero(sum);
  if constexpr (End == SumEnd::relu_output) return relu(sum);
  return sum;
}
template <SumEnd End>
inline float end_of_single_sum(float sum) {
  if constexpr (End == SumEnd::output) return sum + 0.0f;
  if constexpr (End == SumEnd::relu_output) return activation_value<Activation::relu>(sum);
  return sum;
}

// sums (Vectors * kLanes) = start + the terms that `bits` names; the rows of weights are `stride`
// apart.
template <int Vectors, SumEnd End>
inline void accumulate_columns(std::uint64_t bits, const float* input, const AliasingFloat* weights,
                               int stride, const AliasingFloat* start, float* sums) {
  Vector sum[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) sum[v] = load(start + v * kLanes);
  while (bits != 0) {
    const int k = __builtin_ctzll(bits);
    bits &= bits - 1;
    const Vector factor = broadcast(input[k]);
    const AliasingFloat* row = weights + k * stride;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) {
      sum[v] = multiply_add(factor, load(row + v * kLanes), sum[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) store(sums + v * kLanes, end_of_sum<End>(sum[v]));
}

// The same for columns that fill no vector.
template <int Columns, SumEnd End>
inline void accumulate_narrow(std::uint64_t bits, const float* input, const AliasingFloat* weights,
                              int stride, const AliasingFloat* start, float* sums) {
  float sum[Columns];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; c++) sum[c] = start[c];
  while (bits != 0) {
    const int k = __builtin_ctzll(bits);
    bits &= bits - 1;
    const AliasingFloat* row = weights + k * stride;
#pragma GCC unroll 8
    for (int c = 0; c < Columns; c++) sum[c] = math::fma(input[k], row[c], sum[c]);
  }
#pragma GCC unroll 8
  for (int c = 0; c < Columns; c++) sums[c] = end_of_single_sum<End>(sum[c]);
}

// All columns, from the widest blocks to the narrowest.
template <SumEnd End>
inline void accumulate_row(std::uint64_t bits, const float* input, const AliasingFloat* weights,
                           int out, const AliasingFloat* start, float* sums) {
  int column = 0;
  const auto take = [&](auto accumulate, int columns) {
    for (; column + columns <= out; column += columns) {
      accumulate(bits, input, weights + column, out, start + column, sums + column);
    }
  };
  take(accumulate_columns<4, End>, 4 * kLanes);
  take(accumulate_columns<1, End>, kLanes);
  take(accumulate_narrow<8, End>, 8);
  take(accumulate_narrow<4, End>, 4);
  take(accumulate_narrow<2, End>, 2);
  take(accumulate_narrow<1, End>, 1);
}

}  // namespace kernels

inline HostSimd dense_forward_at_run_time(HostSimd device, Activation activation, int in, int out,
                                          const AliasingFloat* weights, const AliasingFloat* bias,
                                          const float* input, float* output) {
  using kernels::SumEnd;
  const AliasingFloat* start = bias;
  for (int first = 0; first < in; first += kernels::kInputsAtOnce) {
    const int left = in - first;
    const bool is_last = left <= kernels::kInputsAtOnce;
    const float* own_input = input + first;
    const AliasingFloat* own_weights = weights + first * out;
    const std::uint64_t bits =
        kernels::nonzero_inputs(own_input, is_last ? left : kernels::kInputsAtOnce);
    if (!is_last) {
      kernels::accumulate_row<SumEnd::more_terms>(bits, own_input, own_weights, out, start, output);
    } else if (activation == Activation::relu) {
      kernels::accumulate_row<SumEnd::relu_output>(bits, own_input, own_weights, out, start,
                                                   output);
    } else {
      kernels::accumulate_row<SumEnd::output>(bits, own_input, own_weights, out, start, output);
    }
    start = output;
  }
  if (activation != Activation::relu) {
    activation_at_run_time(device, activation, out, output);
  }
  return device;
}

}  // namespace rlt

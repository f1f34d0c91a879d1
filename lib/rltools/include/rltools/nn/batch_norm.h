// Batch normalization (Ioffe and Szegedy 2015, arXiv 1502.03167), and weights of unit length. Each
// column c of a batch is brought to mean 0 and variance 1 over its rows r:
//
//   normalized(r, c) = (x(r, c) - mean(c)) / sqrt(variance(c) + epsilon)
//   output(r, c)     = A(scale(c) normalized(r, c) + bias(c))
//
// with the biased variance. Mean and variance depend on x, so that with g, the gradient of what
// goes into A, and its means over the rows
//
//   dL/dx(r, c) = scale(c) / sqrt(variance(c) + epsilon)
//                 (g(r, c) - mean of g - normalized(r, c) mean of (g normalized))
//
// Sums are in the order of the rows; those of a mean are of differences from the first row, so that
// a mean that is large beside its column's deviation costs no digits. Columns are independent of
// each other: they are worked through in blocks, which stay in a core's cache, and threads share
// them.
#pragma once

#include <type_traits>

#include "rltools/core/math.h"
#include "rltools/core/tasks.h"
#include "rltools/nn/activation.h"

namespace rlt {

// As XQC has it (Palenicek et al. 2025, arXiv 2509.25174).
constexpr double kBatchNormEpsilon = 1e-3;

namespace detail {

// Call function(integral_constant of a number of columns, first column) for the columns of a Range.
template <class Columns, class Function>
void for_column_blocks(Function&& function) {
  constexpr int kBlock = 64;
  constexpr int kWhole = Columns::kCount / kBlock * kBlock;
  for (int first = 0; first < kWhole; first += kBlock) {
    function(std::integral_constant<int, kBlock>{}, Columns::kFirst + first);
  }
  if constexpr (kWhole < Columns::kCount) {
    function(std::integral_constant<int, Columns::kCount - kWhole>{}, Columns::kFirst + kWhole);
  }
}

}  // namespace detail

// Normalize the columns of `values` (Rows, Width) that the Range names, in place, and set those of
// output (Rows, Width), mean, variance and inverse_std (Width).
template <Activation A, int Rows, int Width, class Columns, class T>
Generic batch_norm_forward(Generic device, const T* scale, const T* bias, T* values, T* output,
                           T* mean, T* variance, T* inverse_std) {
  detail::for_column_blocks<Columns>([&](auto columns, int first) {
    constexpr int kCount = decltype(columns)::value;
    T start[kCount], sum[kCount] = {}, squares[kCount] = {}, factor[kCount];
    for (int i = 0; i < kCount; i++) start[i] = values[first + i];
    for (int row = 0; row < Rows; row++) {
      const T* x = values + row * Width + first;
      for (int i = 0; i < kCount; i++) sum[i] += x[i] - start[i];
    }
    for (int i = 0; i < kCount; i++) sum[i] = start[i] + sum[i] / static_cast<T>(Rows);
    for (int row = 0; row < Rows; row++) {
      const T* x = values + row * Width + first;
      for (int i = 0; i < kCount; i++) {
        const T difference = x[i] - sum[i];
        squares[i] = math::fma(difference, difference, squares[i]);
      }
    }
    for (int i = 0; i < kCount; i++) {
      const T spread = squares[i] / static_cast<T>(Rows);
      factor[i] = T(1) / math::sqrt(spread + static_cast<T>(kBatchNormEpsilon));
      mean[first + i] = sum[i];
      variance[first + i] = spread;
      inverse_std[first + i] = factor[i];
    }
    for (int row = 0; row < Rows; row++) {
      T* x = values + row * Width + first;
      T* y = output + row * Width + first;
      for (int i = 0; i < kCount; i++) {
        const T normalized = (x[i] - sum[i]) * factor[i];
        x[i] = normalized;
        y[i] = activation_value<A>(math::fma(scale[first + i], normalized, bias[first + i]));
      }
    }
  });
  return device;
}

// Turn the columns of `gradient` (Rows, Width) that the Range names, in place, from what goes into
// the activation to what was normalized; add to the gradients of scale and bias (Width).
template <int Rows, int Width, class Columns, class T>
Generic batch_norm_backward(Generic device, const T* scale, const T* normalized,
                            const T* inverse_std, T* gradient, T* scale_gradient,
                            T* bias_gradient) {
  detail::for_column_blocks<Columns>([&](auto columns, int first) {
    constexpr int kCount = decltype(columns)::value;
    T sum[kCount] = {}, products[kCount] = {}, factor[kCount];
    for (int row = 0; row < Rows; row++) {
      const T* g = gradient + row * Width + first;
      const T* n = normalized + row * Width + first;
      for (int i = 0; i < kCount; i++) {
        sum[i] += g[i];
        products[i] = math::fma(g[i], n[i], products[i]);
      }
    }
    for (int i = 0; i < kCount; i++) {
      scale_gradient[first + i] += products[i];
      bias_gradient[first + i] += sum[i];
      sum[i] /= static_cast<T>(Rows);
      products[i] /= static_cast<T>(Rows);
      factor[i] = scale[first + i] * inverse_std[first + i];
    }
    for (int row = 0; row < Rows; row++) {
      T* g = gradient + row * Width + first;
      const T* n = normalized + row * Width + first;
      for (int i = 0; i < kCount; i++) {
        g[i] = math::fma(-n[i], products[i], g[i] - sum[i]) * factor[i];
      }
    }
  });
  return device;
}

// Scale the columns of weights (In, Out) that the Range names to unit length.
template <int In, int Out, class Columns, class T>
void normalize_weights_of(T* weights) {
  detail::for_column_blocks<Columns>([&](auto columns, int first) {
    constexpr int kCount = decltype(columns)::value;
    constexpr T kLeast = static_cast<T>(1e-16);  // of squares: weights that are all 0 stay so
    T squares[kCount] = {};
    for (int in = 0; in < In; in++) {
      const T* w = weights + in * Out + first;
      for (int i = 0; i < kCount; i++) squares[i] = math::fma(w[i], w[i], squares[i]);
    }
    for (int i = 0; i < kCount; i++) {
      squares[i] = T(1) / math::sqrt(math::maximum(squares[i], kLeast));
    }
    for (int in = 0; in < In; in++) {
      T* w = weights + in * Out + first;
      for (int i = 0; i < kCount; i++) w[i] *= squares[i];
    }
  });
}

// Scale the weights (In, Out) of each output to unit length (Salimans and Kingma 2016, arXiv
// 1602.07868, without a gain): where a normalization follows, only their direction counts, and a
// fixed length keeps the learning rate effective.
template <int In, int Out, class T>
Generic normalize_weights(Generic device, T* weights) {
  normalize_weights_of<In, Out, Range<0, Out>>(weights);
  return device;
}

}  // namespace rlt

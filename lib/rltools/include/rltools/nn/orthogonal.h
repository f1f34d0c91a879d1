// Orthogonal first weights (Saxe et al. 2014, arXiv 1312.6120): as PPO's usual implementations
// begin (Andrychowicz et al. 2021, arXiv 2006.05990).
#pragma once

#include "rltools/nn/mlp.h"

namespace rlt {

namespace detail {

// `count` vectors of `length` elements, which are normal numbers, become orthonormal: by Gram and
// Schmidt's method, twice, since once leaves the last of a square matrix inexact. Element j of
// vector i is values[i * vector_stride + j * element_stride]. Sums are in double, in order.
template <class T>
void make_orthonormal(T* values, int count, int length, int vector_stride, int element_stride) {
  const auto element = [&](int i, int j) -> T& {
    return values[i * vector_stride + j * element_stride];
  };
  const auto product = [&](int i, int k) {
    double sum = 0;
    for (int j = 0; j < length; j++) {
      sum += static_cast<double>(element(i, j)) * static_cast<double>(element(k, j));
    }
    return sum;
  };
  for (int i = 0; i < count; i++) {
    for (int pass = 0; pass < 2; pass++) {
      for (int k = 0; k < i; k++) {
        const T share = static_cast<T>(product(i, k));
        for (int j = 0; j < length; j++) element(i, j) -= share * element(k, j);
      }
      const T factor = static_cast<T>(1.0 / math::sqrt(product(i, i)));
      for (int j = 0; j < length; j++) element(i, j) *= factor;
    }
  }
}

}  // namespace detail

// Draw a matrix (in, out) with orthonormal rows or columns, whichever are fewer.
template <class T>
void draw_orthogonal(T* weights, int in, int out, RandomStream stream) {
  for (int i = 0; i < in * out; i++) {
    weights[i] = standard_normal<T>(stream, static_cast<std::uint32_t>(i));
  }
  if (in <= out) {
    detail::make_orthonormal(weights, in, out, out, 1);
  } else {
    detail::make_orthonormal(weights, out, in, 1, out);
  }
}

// Each layer's weights are `gain` times a matrix with orthonormal rows or columns, whichever are
// fewer; those of the last layer `last_gain` times. Biases are zero. `network_index` as for
// initialize_kaiming().
template <class Device, class T, class Shape, Activation Hidden, Activation Output>
void initialize_orthogonal(Device device, Mlp<T, Shape, Hidden, Output>& network,
                           std::uint32_t seed, std::uint32_t network_index, double gain,
                           double last_gain) {
  using Network = Mlp<T, Shape, Hidden, Output>;
  set_zero(device, network);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const RandomStream stream{seed, Purpose::initialize, network_index,
                              static_cast<std::uint32_t>(layer)};
    T* weights = network.weights(layer);
    draw_orthogonal(weights, Network::input_dim(layer), Network::output_dim(layer), stream);
    const bool is_last = layer == Network::kLayerCount - 1;
    const T scale = static_cast<T>(is_last ? last_gain : gain);
    for (T* weight = weights; weight != network.bias(layer); weight++) *weight *= scale;
  }
}

}  // namespace rlt

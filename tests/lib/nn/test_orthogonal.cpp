// Orthogonal first weights: orthonormal rows or columns times the gain, of each layer.
#include "rltools/nn/orthogonal.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"

using namespace rlt;

namespace {

using Network = Mlp<float, Dimensions<11, 64, 64, 3>, Activation::relu, Activation::identity>;

// The largest difference of the products of a layer's rows (or columns) from gain^2 times one.
double largest_error(const Network& network, int layer, double gain) {
  const int in = Network::input_dim(layer), out = Network::output_dim(layer);
  const bool rows = in <= out;
  const int count = rows ? in : out, length = rows ? out : in;
  const auto element = [&](int i, int j) {
    return static_cast<double>(network.weights(layer)[rows ? i * out + j : j * out + i]);
  };
  double largest = 0;
  for (int i = 0; i < count; i++) {
    for (int k = 0; k <= i; k++) {
      double sum = i == k ? -gain * gain : 0;
      for (int j = 0; j < length; j++) sum += element(i, j) * element(k, j);
      largest = std::fmax(largest, std::fabs(sum));
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("each layer is orthogonal, with its gain, and has no bias") {
  Network network;
  initialize_orthogonal(Generic{}, network, 7, 1, 1.5, 0.01);
  CHECK(largest_error(network, 0, 1.5) < 1e-5);
  CHECK(largest_error(network, 1, 1.5) < 1e-5);
  CHECK(largest_error(network, 2, 0.01) < 1e-9);
  CHECK(largest_error(network, 1, 1.4) > 0.1);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    for (int i = 0; i < Network::output_dim(layer); i++) CHECK(network.bias(layer)[i] == 0);
  }
}

TEST_CASE("each seed and each network has weights of its own") {
  Network first, second;
  initialize_orthogonal(Generic{}, first, 7, 1, 1, 1);
  const auto differs = [&](std::uint32_t seed, std::uint32_t index) {
    initialize_orthogonal(Generic{}, second, seed, index, 1, 1);
    return first.values[0] != second.values[0];
  };
  CHECK_FALSE(differs(7, 1));
  CHECK(differs(8, 1));
  CHECK(differs(7, 0));
}

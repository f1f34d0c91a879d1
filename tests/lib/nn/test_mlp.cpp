// Test: address
// Multi-layer perceptron: values and every gradient against PyTorch, parts and tiles of gradients
// bit by bit, and initial parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "golden_file.h"
#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"

using namespace rlt;

namespace {

template <int... Widths>
using Swish = Mlp<float, Dimensions<Widths...>, Activation::silu, Activation::tanh>;
static_assert(
    std::is_same_v<WithHiddenWidths<Swish<3, 64, 64, 2>, 8, 16, 4>, Swish<3, 8, 16, 4, 2>>);
static_assert(std::is_same_v<WithHiddenWidths<Swish<3, 64, 2>, 64>, Swish<3, 64, 2>>);

// A network with input and target, and the mean squared error between its output and the target.
template <class Network_, int Batch>
struct Problem {
  using Network = Network_;
  using T = typename Network::Scalar;
  static constexpr int kOutput = Network::kOutputDim;

  Network network;
  Matrix<T, Batch, Network::kInputDim> input;
  Matrix<T, Batch, kOutput> target, output, output_gradient;
  MlpBuffer<Network, Batch> buffer;
  Network gradient;
  Matrix<T, Batch, Network::kInputDim> input_gradient;
  GradientBuffer<T, Batch, Network::widest_hidden()> scratch;

  void draw(std::uint32_t seed) {
    initialize_kaiming(Generic{}, network, seed, 0);
    fill_uniform(Generic{}, {seed, Purpose::shuffle, 1}, input.data(), Batch * Network::kInputDim,
                 T(-2), T(2));
    fill_uniform(Generic{}, {seed, Purpose::shuffle, 2}, target.data(), Batch * kOutput, T(-1),
                 T(1));
  }
  T loss() {
    forward(Generic{}, network, input, output, buffer);
    return mean_squared_error<Batch * kOutput>(Generic{}, output.data(), target.data(),
                                               T(Batch * kOutput), output_gradient.data());
  }
  void differentiate() {
    loss();
    set_zero(Generic{}, gradient);
    backward(Generic{}, network, input, output, buffer, output_gradient.data(), gradient,
             input_gradient.data(), scratch);
  }
};

// `values` of matrices or networks, without the padding after them.
template <class Matrix>
bool same_bits(const Matrix& a, const Matrix& b) {
  return std::memcmp(a.values, b.values, sizeof a.values) == 0;
}

// One hidden activation with the output activation that generate.py pairs with it.
template <class T, Activation Hidden, Activation Output>
void compare_with_pytorch(const golden::File& file, const std::string& name) {
  CAPTURE(name);
  using Network = Mlp<T, Dimensions<3, 5, 4, 2>, Hidden, Output>;
  Problem<Network, 7> problem;
  const auto assign = [&](auto& matrix, const golden::Array& values) {
    REQUIRE(values.size() * sizeof(T) == sizeof matrix.values);
    std::copy(values.begin(), values.end(), matrix.values);
  };
  assign(problem.network, file["parameters"]);
  assign(problem.input, file["input"]);
  assign(problem.output_gradient, file["output_gradient"]);
  set_zero(Generic{}, problem.gradient);
  forward(Generic{}, problem.network, problem.input, problem.output, problem.buffer);
  backward(Generic{}, problem.network, problem.input, problem.output, problem.buffer,
           problem.output_gradient.data(), problem.gradient, problem.input_gradient.data(),
           problem.scratch);
  // A dozen roundings of 1.1e-16 or 6e-8, relative to the largest element.
  const double bound = sizeof(T) == 8 ? 2e-15 : 1e-6;
  const auto difference = [&](const auto& matrix, const char* array) {
    const golden::Array& expected = file[name + "/" + array];
    REQUIRE(expected.size() * sizeof(T) == sizeof matrix.values);
    return numeric::relative_difference(matrix.values, expected.data(), expected.size());
  };
  CHECK(difference(problem.output, "output") <= bound);
  CHECK(difference(problem.gradient, "parameters_gradient") <= bound);
  CHECK(difference(problem.input_gradient, "input_gradient") <= bound);
}

// Gradients of a batch worked through in tiles, in float.
template <class Network, int Batch, int TileRows>
Network tiled_gradient(Problem<Network, Batch>& problem) {
  using T = typename Network::Scalar;
  Network gradient;
  set_zero(Generic{}, gradient);
  auto buffer = std::make_unique<MlpBuffer<Network, TileRows>>();
  auto scratch = std::make_unique<GradientBuffer<T, TileRows, 64>>();
  Matrix<T, TileRows, Network::kOutputDim> output, output_gradient;
  for (int first = 0; first < Batch; first += TileRows) {
    const auto input = rows<TileRows>(problem.input, first);
    forward(Generic{}, problem.network, input, output, *buffer);
    mean_squared_error<TileRows * Network::kOutputDim>(
        Generic{}, output.data(), problem.target.row(first), T(Batch), output_gradient.data());
    backward(Generic{}, problem.network, input, output, *buffer, output_gradient.data(), gradient,
             nullptr, *scratch);
  }
  return gradient;
}

}  // namespace

TEST_CASE("outputs and gradients are PyTorch's") {
  const golden::File file("networks.bin");
  compare_with_pytorch<double, Activation::identity, Activation::relu>(file, "identity");
  compare_with_pytorch<double, Activation::relu, Activation::gelu>(file, "relu");
  compare_with_pytorch<double, Activation::gelu, Activation::tanh>(file, "gelu");
  compare_with_pytorch<double, Activation::tanh, Activation::sigmoid>(file, "tanh");
  compare_with_pytorch<double, Activation::sigmoid, Activation::softplus>(file, "sigmoid");
  compare_with_pytorch<double, Activation::softplus, Activation::elu>(file, "softplus");
  compare_with_pytorch<double, Activation::elu, Activation::silu>(file, "elu");
  compare_with_pytorch<double, Activation::silu, Activation::hardtanh>(file, "silu");
  compare_with_pytorch<double, Activation::hardtanh, Activation::identity>(file, "hardtanh");
  compare_with_pytorch<float, Activation::gelu, Activation::tanh>(file, "gelu");
}

TEST_CASE(
    "backward_input gives backward's bits, of all inputs or the last, and no other gradient") {
  using Network = Mlp<double, Dimensions<3, 5, 4, 2>, Activation::gelu, Activation::tanh>;
  Problem<Network, 3> problem;
  problem.draw(3);
  problem.differentiate();
  const auto before = problem.input_gradient;
  const Network gradient = problem.gradient;
  problem.loss();
  backward_input(Generic{}, problem.network, problem.input, problem.output, problem.buffer,
                 problem.output_gradient.data(), problem.input_gradient.data(), problem.scratch);
  CHECK(same_bits(before, problem.input_gradient));
  problem.loss();
  Matrix<double, 3, 1> of_last;
  backward_input<2>(Generic{}, problem.network, problem.input, problem.output, problem.buffer,
                    problem.output_gradient.data(), of_last.data(), problem.scratch);
  for (int sample = 0; sample < 3; sample++) CHECK(before(sample, 2) == of_last(sample, 0));
  CHECK(same_bits(gradient, problem.gradient));
}

TEST_CASE("the tile size changes no bit of a gradient") {
  using Network = Mlp<float, Dimensions<4, 64, 33, 2>, Activation::gelu, Activation::tanh>;
  auto problem = std::make_unique<Problem<Network, 60>>();
  problem->draw(1);
  const Network whole = tiled_gradient<Network, 60, 60>(*problem);
  const Network in_twenties = tiled_gradient<Network, 60, 20>(*problem);
  const Network one_by_one = tiled_gradient<Network, 60, 1>(*problem);
  CHECK(same_bits(whole, in_twenties));
  CHECK(same_bits(whole, one_by_one));
}

TEST_CASE_TEMPLATE("an output is never minus zero", T, double, float) {
  const T weights[1] = {-1}, bias[1] = {-T(0)}, input[1] = {0};
  REQUIRE(std::signbit(math::fma(input[0], weights[0], bias[0])));
  T output[1];
  dense_forward<Activation::identity, 1, 1, 1>(Generic{}, weights, bias, input, output);
  CHECK(output[0] == T(0));
  CHECK_FALSE(std::signbit(output[0]));
}

TEST_CASE("initial parameters are uniform within the inverse square root of the layer's inputs") {
  using Network = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
  Network network, again, other_seed, other_network;
  initialize_kaiming(Generic{}, network, 5, 0);
  initialize_kaiming(Generic{}, again, 5, 0);
  initialize_kaiming(Generic{}, other_seed, 6, 0);
  initialize_kaiming(Generic{}, other_network, 5, 1);
  CHECK(same_bits(network, again));
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    CAPTURE(layer);
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    double sum = 0, sum_of_squares = 0;
    int equal_to_other_seed = 0, equal_to_other_network = 0;
    const int count = (in + 1) * out;
    for (int i = 0; i < count; i++) {
      const double value = static_cast<double>(network.weights(layer)[i]);  // bias follows weights
      CHECK(std::abs(value) <= bound);
      sum += value / bound;
      sum_of_squares += value * value / (bound * bound);
      equal_to_other_seed += network.weights(layer)[i] == other_seed.weights(layer)[i];
      equal_to_other_network += network.weights(layer)[i] == other_network.weights(layer)[i];
    }
    // Five standard deviations of the mean of x (sqrt(1/3)) and of x^2 (sqrt(4/45)), x uniform in
    // [-1, 1].
    CHECK(std::abs(sum / count) <= 5 * std::sqrt(1.0 / 3 / count));
    CHECK(std::abs(sum_of_squares / count - 1.0 / 3) <= 5 * std::sqrt(4.0 / 45 / count));
    CHECK(equal_to_other_seed == 0);
    CHECK(equal_to_other_network == 0);
  }
}

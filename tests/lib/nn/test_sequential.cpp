// Test: address
// Networks with recurrent layers: values and every gradient against PyTorch's GRU; steps, windows
// and tiles of them bit by bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "golden_file.h"
#include "numeric_differentiation.h"
#include "rltools/core/finite.h"
#include "rltools/devices/host.h"
#include "rltools/nn/window_passes.h"

using namespace rlt;

namespace {

constexpr Activation kIdentity = Activation::identity, kTanh = Activation::tanh;

// Windows of a network, and what their output is weighted with in the loss that is differentiated.
template <class Network_, int Windows, int Steps>
struct Problem {
  using Network = Network_;
  using T = typename Network::Scalar;
  static constexpr int kRows = Windows * Steps;
  static constexpr int kIn = Network::kInputDim, kOut = Network::kOutputDim;

  Network network, gradient;
  Matrix<T, kRows, kIn> input, input_gradient;
  Matrix<T, kRows, kOut> output, weight;
  Matrix<T, Windows, Network::kStateDim> initial, state, state_gradient;
  std::uint8_t begins[kRows] = {};
  WindowBuffer<Network, Windows, Steps> buffer;
  WindowGradientBuffer<T, Windows, Steps, Network::widest_hidden(), Network::widest_recurrent()>
      scratch;

  void draw(std::uint32_t seed) {
    initialize_kaiming(Generic{}, network, seed, 0);
    const auto fill = [&](auto& matrix, std::uint32_t number) {
      constexpr int kCount = sizeof matrix.values / sizeof(T);
      fill_uniform(Generic{}, {seed, Purpose::shuffle, number}, matrix.data(), kCount, T(-2), T(2));
    };
    fill(input, 1);
    fill(weight, 2);
    fill(initial, 3);
    for (int row = 0; row < kRows; row++) begins[row] = row % 5 == 3;
  }
  template <class Device>
  void run(Device device) {
    state = initial;
    forward_windows(device, network, input, begins, state, output, buffer);
  }
  template <class Device>
  void differentiate(Device device) {
    run(device);
    set_zero(Generic{}, gradient);
    auto output_gradient = weight;
    backward_windows(device, network, input, begins, output, buffer, output_gradient.data(),
                     gradient, input_gradient.data(), state_gradient.data(), scratch);
  }
};

template <class Matrix>
bool same_bits(const Matrix& a, const Matrix& b) {
  return std::memcmp(a.values, b.values, sizeof a.values) == 0;
}

template <class Matrix>
void assign(Matrix& matrix, const golden::Array& values) {
  REQUIRE(values.size() * sizeof(matrix.values[0]) == sizeof matrix.values);
  for (std::size_t i = 0; i < values.size(); i++) {
    matrix.values[i] = static_cast<std::decay_t<decltype(matrix.values[0])>>(values[i]);
  }
}

// A network of generate_recurrent.py.
template <class Network>
void compare_with_pytorch(const golden::File& file, const std::string& name) {
  CAPTURE(name);
  using T = typename Network::Scalar;
  Problem<Network, 3, 7> problem;
  assign(problem.network, file[name + "/parameters"]);
  assign(problem.input, file[name + "/input"]);
  assign(problem.initial, file[name + "/state"]);
  assign(problem.weight, file[name + "/output_gradient"]);
  for (int row = 0; row < problem.kRows; row++) {
    problem.begins[row] = file["begins"][static_cast<std::size_t>(row)] > 0;
  }
  problem.differentiate(Generic{});
  // Some dozens of roundings of 1.1e-16 or 6e-8, relative to the largest element.
  const double bound = sizeof(T) == 8 ? 4e-15 : 2e-6;
  const auto difference = [&](const auto& matrix, const char* array) {
    const golden::Array& expected = file[name + "/" + array];
    REQUIRE(expected.size() * sizeof(T) == sizeof matrix.values);
    return numeric::relative_difference(matrix.values, expected.data(), expected.size());
  };
  CHECK(difference(problem.output, "output") <= bound);
  CHECK(difference(problem.gradient, "parameters_gradient") <= bound);
  CHECK(difference(problem.input_gradient, "input_gradient") <= bound);
  CHECK(difference(problem.state_gradient, "state_gradient") <= bound);
}

template <class T>
using Small = Sequential<T, 4, Gru<5>>;
template <class T>
using Between = Sequential<T, 3, Dense<6, Activation::silu>, Gru<5>, Dense<2, kTanh>>;
template <class T>
using Two = Sequential<T, 3, Gru<4>, Gru<3>, Dense<2, kIdentity>>;
template <class T>
using Large = Sequential<T, 22, Dense<16, Activation::relu>, Gru<16>, Dense<4, kIdentity>>;

// The states and outputs of a problem's rows, taken step by step with all windows side by side.
template <class Device, class Network, int Windows, int Steps>
void check_steps(Device device) {
  auto problem = std::make_unique<Problem<Network, Windows, Steps>>();
  problem->draw(3);
  problem->run(device);
  auto buffer = std::make_unique<WindowBuffer<Network, Windows, 1>>();
  auto state = problem->initial;
  Matrix<float, Windows, Network::kInputDim> input;
  Matrix<float, Windows, Network::kOutputDim> output;
  for (int step = 0; step < Steps; step++) {
    for (int window = 0; window < Windows; window++) {
      const int row = window * Steps + step;
      std::memcpy(input.row(window), problem->input.row(row), sizeof(float) * Network::kInputDim);
      if (step == 0 || problem->begins[row] == 0) continue;
      for (int i = 0; i < Network::kStateDim; i++) state(window, i) = 0;
    }
    forward_step(device, problem->network, input, state, output, *buffer);
    for (int window = 0; window < Windows; window++) {
      REQUIRE(std::memcmp(output.row(window), problem->output.row(window * Steps + step),
                          sizeof(float) * Network::kOutputDim) == 0);
    }
  }
  CHECK(same_bits(state, problem->state));
}

// Gradients of all windows, `Tile` at a time.
template <int Tile, class Network, int Windows, int Steps>
Network tiled_gradient(Problem<Network, Windows, Steps>& problem) {
  auto tile = std::make_unique<Problem<Network, Tile, Steps>>();
  tile->network = problem.network;
  Network gradient;
  set_zero(Generic{}, gradient);
  for (int first = 0; first < Windows; first += Tile) {
    const auto copy = [&](auto& to, const auto& from, int rows) {
      std::memcpy(to.values, from.row(rows), sizeof to.values);
    };
    copy(tile->input, problem.input, first * Steps);
    copy(tile->weight, problem.weight, first * Steps);
    copy(tile->initial, problem.initial, first);
    std::memcpy(tile->begins, problem.begins + first * Steps, sizeof tile->begins);
    tile->run(Generic{});
    backward_windows(Generic{}, tile->network, tile->input, tile->begins, tile->output,
                     tile->buffer, tile->weight.data(), gradient, nullptr, nullptr, tile->scratch);
  }
  return gradient;
}

}  // namespace

TEST_CASE("a cell is PyTorch's, with inputs of any size") {
  const golden::File file("recurrent.bin");
  Problem<Sequential<double, 2, Gru<3>>, 3, 1> problem;
  assign(problem.network, file["cell/parameters"]);
  assign(problem.input, file["cell/input"]);
  assign(problem.initial, file["cell/state"]);
  problem.run(Generic{});
  const golden::Array& expected = file["cell/output"];
  CHECK(numeric::relative_difference(problem.output.values, expected.data(), expected.size()) <=
        1e-15);
  CHECK(same_bits(problem.output, problem.state));
}

TEST_CASE("sequences and their gradients are PyTorch's") {
  const golden::File file("recurrent.bin");
  compare_with_pytorch<Small<double>>(file, "gru");
  compare_with_pytorch<Between<double>>(file, "between");
  compare_with_pytorch<Two<double>>(file, "two");
  compare_with_pytorch<Between<float>>(file, "between");
}

TEST_CASE("a window has the bits of its steps") {
  check_steps<Generic, Between<float>, 3, 7>(Generic{});
  check_steps<Host, Large<float>, 32, 4>(Host{});
}

TEST_CASE("the number of windows in a tile changes no bit of a gradient") {
  auto problem = std::make_unique<Problem<Between<float>, 6, 7>>();
  problem->draw(1);
  const auto whole = tiled_gradient<6>(*problem);
  CHECK(same_bits(whole, tiled_gradient<3>(*problem)));
}

TEST_CASE("an episode that begins in a window knows nothing of the one before") {
  auto problem = std::make_unique<Problem<Between<float>, 3, 7>>();
  problem->draw(5);
  for (auto& begins : problem->begins) begins = 0;
  problem->begins[7 + 3] = 1;
  problem->run(Generic{});
  const auto before = *problem;
  for (int row = 7; row < 7 + 3; row++) problem->input(row, 0) += 1;
  problem->initial(1, 2) += 1;
  problem->run(Generic{});
  for (int row = 0; row < problem->kRows; row++) {
    CAPTURE(row);
    const bool is_same = std::memcmp(problem->output.row(row), before.output.row(row), 8) == 0;
    CHECK(is_same == (row < 7 || row >= 7 + 3));
  }
  // Nor does its loss reach the earlier one: of a window whose later steps alone have a gradient,
  // neither the state before it nor the earlier inputs have one.
  for (int row = 0; row < 7 + 3; row++) {
    for (int i = 0; i < 2; i++) problem->weight(row, i) = 0;
  }
  problem->differentiate(Generic{});
  for (int i = 0; i < 5; i++) CHECK(problem->state_gradient(1, i) == 0);
  for (int row = 7; row < 7 + 3; row++) CHECK(problem->input_gradient(row, 0) == 0);
  CHECK(problem->input_gradient(7 + 3, 0) != 0);
}

TEST_CASE("the gradient of a window that grows from step to step is bounded") {
  // States stay at zero and are not kept: each step back multiplies their gradients by 3.
  using Network = Sequential<float, 1, Gru<2>>;
  constexpr int kSteps = 128, kShort = 4;
  Network network{};
  for (int i = 0; i < 2; i++) {
    network.bias(0)[2 + i] = -100;                     // keep = 0
    network.bias(0)[i] = 100;                          // reset = 1
    network.hidden_weights(0)[i * 6 + 2 * 2 + i] = 3;  // of the candidate
  }
  const auto differentiate = [&](auto& buffer, auto& scratch, auto rows, Network& gradient,
                                 float(&state_gradient)[2]) {
    constexpr int kRows = decltype(rows)::value;
    Matrix<float, kRows, 1> input{};
    Matrix<float, kRows, 2> output;
    Matrix<float, 1, 2> state{};
    forward_windows(Generic{}, network, input, nullptr, state, output, buffer);
    float output_gradient[kRows * 2] = {};
    output_gradient[kRows * 2 - 2] = 1, output_gradient[kRows * 2 - 1] = 0.5f;
    backward_windows(Generic{}, network, input, nullptr, output, buffer, output_gradient, gradient,
                     nullptr, state_gradient, scratch);
  };
  float state_gradient[2];
  WindowBuffer<Network, 1, kShort> short_buffer;
  WindowGradientBuffer<float, 1, kShort, 2, 2> short_scratch;
  Network gradient{};
  differentiate(short_buffer, short_scratch, std::integral_constant<int, kShort>{}, gradient,
                state_gradient);
  CHECK(state_gradient[0] == 81);
  CHECK(state_gradient[1] == 40.5f);
  WindowBuffer<Network, 1, kSteps> buffer;
  WindowGradientBuffer<float, 1, kSteps, 2, 2> scratch;
  gradient = {};
  differentiate(buffer, scratch, std::integral_constant<int, kSteps>{}, gradient, state_gradient);
  CHECK(state_gradient[0] == doctest::Approx(100));  // 3^128 is no float
  CHECK(state_gradient[1] == doctest::Approx(50));
  CHECK(bound_norm(Generic{}, 1.0f, gradient) < 128 * 3 * 100);
  for (const float value : gradient.values) CHECK(is_finite(value));
}

TEST_CASE("parameters begin within the inverse square root of PyTorch's fan") {
  using Network = Sequential<float, 3, Dense<9, kTanh>, Gru<16>, Dense<2, kIdentity>>;
  Network network, other;
  initialize_kaiming(Generic{}, network, 5, 0);
  initialize_kaiming(Generic{}, other, 5, 1);
  const double bounds[] = {std::sqrt(1.0 / 3), std::sqrt(1.0 / 16), std::sqrt(1.0 / 16)};
  for (int layer = 0; layer < 3; layer++) {
    CAPTURE(layer);
    double largest = 0;
    for (int i = 0; i < Network::parameter_count(layer); i++) {
      const int at = Network::weights_offset(layer) + i;
      largest = std::max(largest, std::abs(static_cast<double>(network.values[at])));
      CHECK(network.values[at] != other.values[at]);
    }
    CHECK(largest <= bounds[layer]);
    CHECK(largest > 0.9 * bounds[layer]);
  }
}

TEST_CASE("a recurrent layer's passes stay within their arrays") {  // the address sanitizer sees it
  constexpr int kSequences = 2, kSteps = 3, kIn = 2, kHidden = 3, kGates = 3 * kHidden;
  constexpr int kRows = kSequences * kSteps;
  const auto zeros = [](int count) { return std::vector<float>(static_cast<std::size_t>(count)); };
  const auto weights = zeros(kIn * kGates), bias = zeros(kGates), input = zeros(kRows * kIn);
  const auto hidden = zeros(kHidden * kGates);  // and transposed
  const std::vector<std::uint8_t> begins(kRows);
  auto gates = zeros(kRows * kGates), products = zeros(kRows * kHidden), previous = products;
  auto state = zeros(kSequences * kHidden), direct = state, through = state;
  auto step = zeros(kSequences * kGates), gradient = gates, output = products;
  const GruSequences<float> kept{gates.data(), products.data(), previous.data()};
  gru_forward<kSequences, kSteps, kIn, kHidden>(
      Generic{}, weights.data(), bias.data(), hidden.data(), bias.data(), input.data(),
      begins.data(), state.data(), step.data(), kept, output.data());
  gru_backward_steps<kSequences, kSteps, kHidden>(
      Generic{}, hidden.data(), begins.data(), static_cast<const float*>(output.data()), kept,
      {gradient.data(), step.data(), direct.data(), through.data()});
  CHECK(direct == zeros(kSequences * kHidden));
}

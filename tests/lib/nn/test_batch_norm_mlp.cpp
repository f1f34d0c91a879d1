// Test: -Og address
// A perceptron with batch normalization: its numbers against formulas written out here, every
// gradient against differences, running statistics folded into a plain network, weights of unit
// length, and the bits of the host's kernels. Threads: test_training_on_threads.cpp. Whole updates
// against PyTorch's: test_pytorch.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "numeric_differentiation.h"
#include "rltools/devices/host.h"
#include "rltools/nn/batch_norm_mlp.h"

using namespace rlt;

namespace {

using Values = std::vector<double>;

// Weights, scales and biases that are all of another size. The biases of `Away` keep what goes into
// each ReLU away from its kink, where differences tell nothing; the sign of half of them is
// negative.
template <bool Away, class T, class Shape>
void draw(BatchNormMlp<T, Shape>& network, std::uint32_t seed) {
  using Network = BatchNormMlp<T, Shape>;
  fill_uniform(Generic{}, {seed, Purpose::initialize, 0}, network.values, Network::kParameterCount,
               T(-1), T(1));
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    for (int i = 0; i < Network::input_dim(layer); i++) {
      T& scale = network.norm_scale(layer)[i];
      T& bias = network.norm_bias(layer)[i];
      scale = T(1) + scale / 2;
      if (layer > 0 && Away) {
        scale /= 4;
        bias = (i % 2 == 0 ? T(2) : T(-2)) + bias / 4;
      }
    }
  }
}

// As the header says it, for the outputs of the samples from `first` on.
template <class Shape>
Values outputs_of(const BatchNormMlp<double, Shape>& network, Values x, int batch, int first,
                  int rows, double& nearest_kink) {
  using Network = BatchNormMlp<double, Shape>;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    for (int i = 0; i < in; i++) {
      long double mean = 0, variance = 0;
      for (int row = 0; row < batch; row++) mean += x[row * in + i];
      mean /= batch;
      for (int row = 0; row < batch; row++) {
        variance += (x[row * in + i] - mean) * (x[row * in + i] - mean);
      }
      variance /= batch;
      for (int row = 0; row < batch; row++) {
        const long double normalized = (x[row * in + i] - mean) / std::sqrt(variance + 1e-3L);
        const auto y = static_cast<double>(network.norm_scale(layer)[i] * normalized +
                                           network.norm_bias(layer)[i]);
        if (layer > 0) nearest_kink = std::min(nearest_kink, std::abs(y));
        x[row * in + i] = layer > 0 && y < 0 ? 0 : y;
      }
    }
    const bool is_last = layer == Network::kLayerCount - 1;
    Values next;
    for (int row = is_last ? first : 0; row < (is_last ? first + rows : batch); row++) {
      for (int o = 0; o < out; o++) {
        long double sum = is_last ? network.output_bias()[o] : 0;
        for (int i = 0; i < in; i++) sum += x[row * in + i] * network.weights(layer)[i * out + o];
        next.push_back(static_cast<double>(sum));
      }
    }
    x = next;
  }
  return x;
}

// A batch of which `Rows` samples from FirstRow on have outputs, and a loss of these.
template <class T, class Shape, int Batch, int FirstRow, int Rows>
struct Problem {
  using Network = BatchNormMlp<T, Shape>;
  Network network, gradient;
  Matrix<T, Batch, Network::kInputDim> input;
  Matrix<T, Rows, Network::kOutputDim> target, output, output_gradient;
  BatchNormBuffer<Network, Batch> buffer;
  GradientBuffer<T, Batch, Network::widest_input()> scratch;

  template <bool Away>
  void begin(std::uint32_t seed) {
    draw<Away>(network, seed);
    const auto fill = [&](auto& matrix, std::uint32_t index) {
      fill_standard_normal(Generic{}, {seed, Purpose::shuffle, index}, matrix.data(),
                           matrix.kRows * matrix.kColumns);
    };
    fill(input, 1);
    fill(target, 2);
  }
  template <class Device>
  T loss(Device device) {
    forward_training<FirstRow>(device, network, input, output, buffer);
    T sum = 0;
    for (int i = 0; i < Rows * Network::kOutputDim; i++) {
      output_gradient.data()[i] = output.data()[i] - target.data()[i];
      sum += output_gradient.data()[i] * output_gradient.data()[i] / 2;
    }
    return sum;
  }
  template <class Device>
  void differentiate(Device device) {
    // What stood there before counts for nothing.
    for (auto& values : scratch.values) std::fill(std::begin(values), std::end(values), T(7e9));
    loss(device);
    set_zero(Generic{}, gradient);
    backward_training<FirstRow>(device, network, buffer, output_gradient, gradient, scratch);
  }
};

// Outputs are those of the formula, and the gradients of each `stride`th parameter those of
// differences.
template <bool Away, class Shape, int Batch, int FirstRow, int Rows>
void check_passes(std::uint32_t seed, int stride) {
  const auto problem = std::make_unique<Problem<double, Shape, Batch, FirstRow, Rows>>();
  using Network = BatchNormMlp<double, Shape>;
  problem->template begin<Away>(seed);
  problem->differentiate(Generic{});
  double nearest_kink = HUGE_VAL;
  const auto& input = problem->input;
  const Values expected =
      outputs_of(problem->network, Values(std::begin(input.values), std::end(input.values)), Batch,
                 FirstRow, Rows, nearest_kink);
  REQUIRE(nearest_kink > 0.005);  // farther than the differences reach
  CHECK(numeric::relative_difference(problem->output.data(), expected.data(), expected.size()) <=
        1e-14);
  Values differences, gradient;
  for (int i = 0; i < Network::kParameterCount; i += stride) {
    differences.push_back(
        numeric::derivative(problem->network.values[i], [&] { return problem->loss(Generic{}); }));
    gradient.push_back(problem->gradient.values[i]);
  }
  CHECK(numeric::relative_difference(gradient, differences) <= numeric::kTolerance);
  // The first normalization's bias is taken away by the next one.
  if (Network::kLayerCount > 1) {
    for (int i = 0; i < Network::kInputDim; i++) {
      CHECK(std::abs(problem->gradient.norm_bias(0)[i]) < 1e-12);
    }
  }
}

// What the network gives with statistics, in double: (x - mean) / sqrt(variance + epsilon).
template <class T, class Shape>
Values plainly(const BatchNormMlp<T, Shape>& network,
               const BatchNormStatistics<BatchNormMlp<T, Shape>>& statistics, const Values& input) {
  using Network = BatchNormMlp<T, Shape>;
  Values x = input;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    const int first = Network::norm_offset(layer);
    for (int i = 0; i < in; i++) {
      const auto of = [i](const T* values) { return static_cast<double>(values[i]); };
      const double normalized =
          (x[i] - of(statistics.mean + first)) / std::sqrt(of(statistics.variance + first) + 1e-3);
      x[i] = of(network.norm_scale(layer)) * normalized + of(network.norm_bias(layer));
      if (layer > 0) x[i] = std::max(x[i], 0.0);
    }
    Values next(out);
    for (int o = 0; o < out; o++) {
      for (int i = 0; i < in; i++) {
        next[o] += x[i] * static_cast<double>(network.weights(layer)[i * out + o]);
      }
      if (layer == Network::kLayerCount - 1) {
        next[o] += static_cast<double>(network.output_bias()[o]);
      }
    }
    x = next;
  }
  return x;
}

// The largest difference between the folded network's outputs and those, for inputs that vary by
// `deviation` about `mean`.
template <class T, class Shape>
double difference_of_folded(T mean, T deviation) {
  using Network = BatchNormMlp<T, Shape>;
  constexpr int kBatch = 9;
  const auto network = std::make_unique<Network>();
  const auto folded = std::make_unique<typename Network::Folded>();
  const auto statistics = std::make_unique<BatchNormStatistics<Network>>();
  draw<false>(*network, 5);
  const auto fill = [](T* values, std::uint32_t index, int count, T low, T high) {
    fill_uniform(Generic{}, {5, Purpose::shuffle, index}, values, count, low, high);
  };
  fill(statistics->mean, 1, Network::kNormCount, T(-0.5), T(0.5));
  fill(statistics->variance, 2, Network::kNormCount, T(0), T(2));
  Matrix<T, kBatch, Network::kInputDim> input;
  fill(input.data(), 3, kBatch * Network::kInputDim, T(-1), T(1));
  for (int i = 0; i < kBatch * Network::kInputDim; i++) {
    input.data()[i] = mean + deviation * input.data()[i];
  }
  for (int i = 0; i < Network::kInputDim; i++) {
    statistics->mean[i] = mean + deviation * statistics->mean[i];
    statistics->variance[i] *= deviation * deviation;
  }
  if (Network::kLayerCount > 1)
    statistics->variance[Network::kInputDim] = 0;  // of a unit that stays off
  Values expected;
  for (int row = 0; row < kBatch; row++) {
    const T* own = input.row(row);
    for (const double y : plainly(*network, *statistics, Values(own, own + Network::kInputDim))) {
      expected.push_back(y);
    }
  }
  fold(*network, *statistics, *folded);
  InputNorm<Network> norm;
  set_input_norm(*statistics, norm);
  normalize_inputs<kBatch>(norm, input.data());
  Matrix<T, kBatch, Network::kOutputDim> output;
  const auto buffer = std::make_unique<MlpBuffer<typename Network::Folded, kBatch>>();
  forward(Generic{}, *folded, input, output, *buffer);
  return numeric::relative_difference(output.data(), expected.data(), expected.size());
}

using Small = Dimensions<3, 5, 4, 2>;
using Odd = Dimensions<7, 71, 131, 3>;  // columns in one block, and beyond one and two

}  // namespace

TEST_CASE("outputs are the formula's, and gradients those of differences") {
  for (const std::uint32_t seed : {1u, 4u}) check_passes<true, Small, 6, 0, 6>(seed, 1);
  check_passes<true, Odd, 12, 0, 12>(3, 37);
  check_passes<true, Dimensions<3, 2>, 6, 0, 6>(3, 1);  // no hidden layer
  check_passes<true, Dimensions<2, 129, 1>, 5, 0, 5>(3, 3);
}

TEST_CASE("units that are on for some samples, and off for others") {
  check_passes<false, Small, 6, 0, 6>(2, 1);
  check_passes<false, Small, 8, 4, 4>(2, 1);
}

TEST_CASE("a part of the batch counts in means and variances alone") {
  check_passes<true, Small, 8, 0, 4>(5, 1);
  check_passes<true, Small, 8, 4, 4>(5, 1);
  check_passes<true, Small, 7, 2, 3>(5, 1);
  check_passes<true, Odd, 12, 0, 6>(6, 41);
  check_passes<true, Odd, 12, 6, 6>(6, 41);
}

TEST_CASE("gradients are added to what is there") {
  Problem<double, Small, 6, 0, 6> problem;
  problem.begin<true>(1);
  problem.differentiate(Generic{});
  const auto once = problem.gradient;
  backward_training(Generic{}, problem.network, problem.buffer, problem.output_gradient,
                    problem.gradient, problem.scratch);
  for (int i = 0; i < once.kParameterCount; i++) {
    CHECK(problem.gradient.values[i] == doctest::Approx(2 * once.values[i]).epsilon(1e-14));
  }
}

TEST_CASE("the folded network gives what the statistics say, whatever the inputs' mean") {
  CHECK(difference_of_folded<double, Small>(0, 1) <= 1e-14);
  CHECK(difference_of_folded<double, Odd>(0, 1) <= 1e-13);
  CHECK(difference_of_folded<double, Odd>(1e6, 1) <= 1e-13);
  CHECK(difference_of_folded<double, Dimensions<3, 2>>(1e6, 1) <= 1e-13);
  CHECK(difference_of_folded<float, Odd>(0, 1) <= 1e-5);
  CHECK(difference_of_folded<float, Odd>(1e6f, 1) <= 1e-5);
  CHECK(difference_of_folded<float, Odd>(-1e6f, 1000) <= 1e-5);
  CHECK(difference_of_folded<float, Odd>(0, 1e-4f) <= 1e-5);
}

TEST_CASE_TEMPLATE("weights are brought to unit length, and zeros stay", T, float, double) {
  using Network = BatchNormMlp<T, Odd>;
  const auto network = std::make_unique<Network>(), before = std::make_unique<Network>();
  draw<false>(*network, 8);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    for (int o = 0; o < out; o++) {
      const T factor = o == 2 ? T(0) : o == 1 ? T(1e-3) : T(1 + o);
      for (int i = 0; i < in; i++) network->weights(layer)[i * out + o] *= factor;
    }
  }
  *before = *network;
  normalize_weights(Generic{}, *network);
  const double epsilon = sizeof(T) == 8 ? 0x1p-52 : 0x1p-23;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    for (int o = 0; o < out; o++) {
      CAPTURE(o);
      double now = 0, then = 0, product = 0;
      for (int i = 0; i < in; i++) {
        const auto a = static_cast<double>(network->weights(layer)[i * out + o]);
        const auto b = static_cast<double>(before->weights(layer)[i * out + o]);
        now += a * a, then += b * b, product += a * b;
        if (o == 2) CHECK(a == 0);
      }
      if (o == 2) continue;
      CHECK(std::abs(std::sqrt(now) - 1) < 8 * epsilon);
      CHECK(product == doctest::Approx(std::sqrt(then)).epsilon(8 * epsilon));  // same direction
    }
    for (int i = 0; i < 2 * in; i++) {  // scale and bias
      CHECK(network->norm_scale(layer)[i] == before->norm_scale(layer)[i]);
    }
  }
  for (int o = 0; o < Network::kOutputDim; o++) {
    CHECK(network->output_bias()[o] == before->output_bias()[o]);
  }
}

TEST_CASE("a network begins with orthogonal weights of unit length, and identities") {
  using Network = BatchNormMlp<double, Dimensions<7, 5, 6, 3>>;
  Network network;
  BatchNormStatistics<Network> statistics;
  initialize_orthogonal(Generic{}, network, statistics, 3, 1);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const int in = Network::input_dim(layer), out = Network::output_dim(layer);
    const double* weights = network.weights(layer);
    for (int a = 0; a < out; a++) {
      for (int b = 0; b < out; b++) {
        double product = 0;
        for (int i = 0; i < in; i++) product += weights[i * out + a] * weights[i * out + b];
        if (a == b) CHECK(product == doctest::Approx(1).epsilon(1e-14));
        if (a != b && out <= in) CHECK(std::abs(product) < 1e-14);
      }
    }
    for (int i = 0; i < in; i++) {
      CHECK(network.norm_scale(layer)[i] == 1);
      CHECK(network.norm_bias(layer)[i] == 0);
    }
  }
  for (int i = 0; i < Network::kNormCount; i++) {
    CHECK(statistics.mean[i] == 0);
    CHECK(statistics.variance[i] == 1);
  }
  for (int o = 0; o < 3; o++) CHECK(network.output_bias()[o] == 0);
}

TEST_CASE("statistics move by a share, of mean and variance over the rows") {
  using Network = BatchNormMlp<double, Small>;
  Problem<double, Small, 6, 2, 4> problem;
  problem.begin<false>(9);
  problem.loss(Generic{});
  BatchNormStatistics<Network> statistics;
  for (double& value : statistics.mean) value = 3;
  for (double& value : statistics.variance) value = 8;
  move_statistics(0.25, problem.buffer.batch, statistics);
  for (int i = 0; i < Network::kInputDim; i++) {
    double mean = 0, variance = 0;
    for (int row = 0; row < 6; row++) mean += problem.input(row, i) / 6;
    for (int row = 0; row < 6; row++) {
      variance += (problem.input(row, i) - mean) * (problem.input(row, i) - mean) / 6;
    }
    CHECK(statistics.mean[i] == doctest::Approx(0.75 * 3 + 0.25 * mean).epsilon(1e-14));
    CHECK(statistics.variance[i] == doctest::Approx(0.75 * 8 + 0.25 * variance).epsilon(1e-14));
  }
  // The first share is all of it: what was there before counts for nothing.
  move_statistics(1.0, problem.buffer.batch, statistics);
  for (int i = 0; i < Network::kNormCount; i++) {
    CHECK(statistics.mean[i] == doctest::Approx(problem.buffer.batch.mean[i]).epsilon(1e-13));
    CHECK(statistics.variance[i] ==
          doctest::Approx(problem.buffer.batch.variance[i]).epsilon(1e-13));
  }
}

TEST_CASE("the host's kernels give the reference's bits") {
  using First = Problem<float, Odd, 37, 0, 19>;
  using Second = Problem<float, Odd, 38, 19, 19>;
  const auto check = [](auto reference, auto host) {
    for (auto* problem : {reference.get(), host.get()}) problem->template begin<false>(11);
    reference->differentiate(Generic{});
    host->differentiate(Host{});
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(&a, &b, sizeof a) == 0;
    };
    CHECK(same(reference->output.values, host->output.values));
    CHECK(same(reference->buffer.batch.mean, host->buffer.batch.mean));
    CHECK(same(reference->buffer.batch.variance, host->buffer.batch.variance));
    for (int i = 0; i < reference->gradient.kParameterCount; i++) {  // the sign of a zero is free
      REQUIRE(reference->gradient.values[i] == host->gradient.values[i]);
    }
    normalize_weights(Generic{}, reference->network);
    normalize_weights(Host{}, host->network);
    CHECK(same(reference->network.values, host->network.values));
  };
  check(std::make_unique<First>(), std::make_unique<First>());
  check(std::make_unique<Second>(), std::make_unique<Second>());
}

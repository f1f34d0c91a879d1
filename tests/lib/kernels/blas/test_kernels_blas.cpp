// Test: as-firmware openblas kernel_agreement all
// The kernels that device HostBlas selects: BLAS for large layers, whose results are the
// reference's to rounding, and HostSimd's for all others, with the reference's bits.
#include <cmath>
#include <memory>

#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "pendulum_td3.h"
#include "rltools/devices/host_blas.h"
#include "training_run.h"

using namespace rlt;
using kernel_agreement::dense_kernels;
using kernel_agreement::DenseKernels;
using kernel_agreement::kSizes;
using kernel_agreement::random_values;

// Small shapes keep the kernels and so the bits of the host (dispatch_assertions.h has 20, 3, 64).
RLT_ASSERT_DISPATCH(HostBlas, HostSimd, HostSimd, Generic, Generic, Generic);

namespace {

// The tag of the kernel that a device selects for each product of a shape.
template <class Device, int Batch, int In, int Out>
using SelectedForward = decltype(dense_forward<Activation::relu, Batch, In, Out>(
    Device{}, std::declval<const float*>(), std::declval<const float*>(),
    std::declval<const float*>(), std::declval<float*>()));
template <class Device, int Batch, int In, int Out>
using SelectedWeights = decltype(dense_backward_weights<Batch, In, Out>(
    Device{}, std::declval<const float*>(), std::declval<const float*>(), std::declval<float*>(),
    std::declval<float*>()));
template <class Device, int Batch, int In, int Out>
using SelectedInput = decltype(dense_backward_input<Activation::relu, Batch, In, Out>(
    Device{}, std::declval<const float*>(), std::declval<const float*>(),
    std::declval<const float*>(), std::declval<const float*>(), std::declval<float*>()));

template <class Expected, int Batch, int In, int Out>
constexpr bool selects() {
  return std::is_same_v<SelectedForward<HostBlas, Batch, In, Out>, Expected> &&
         std::is_same_v<SelectedWeights<HostBlas, Batch, In, Out>, Expected> &&
         std::is_same_v<SelectedInput<HostBlas, Batch, In, Out>, Expected>;
}

// A lost BLAS is a failed build, and so is one where it loses.
static_assert(selects<Blas, 32, 256, 256>(), "BLAS does not take the smallest large layer");
static_assert(selects<Blas, 100, 400, 300>() && selects<Blas, 256, 1024, 1024>());
static_assert(selects<HostSimd, 1, 1024, 1024>(), "a single sample must keep its bits");
static_assert(selects<HostSimd, 31, 256, 256>() && selects<HostSimd, 100, 64, 64>());
static_assert(selects<HostSimd, 256, 255, 1024>() && selects<HostSimd, 256, 1024, 6>());

// gamma_n = n u / (1 - n u), u = 2^-24: whatever the order, and with or without fma, a computed
// inner product of n terms is within gamma_n sum |a_i| |b_i| of the exact one (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd edition, section 3.1, equation 3.5). The expected one is
// computed in double: its own error is 2^-29 of that, less than what gamma has to spare.
double gamma(int n) {
  const double nu = n * 0x1p-24;
  return nu / (1 - nu);
}

// The largest ratio of a difference to its bound; above 1, or NaN, the kernel is wrong.
struct Agreement {
  double largest = 0;

  void add(float actual, double expected, double bound) {
    const double ratio = std::fabs(static_cast<double>(actual) - expected) / bound;
    if (!(ratio <= largest)) largest = ratio;
  }
};

// An inner product, and the sum of its terms' magnitudes.
struct Sum {
  double value, magnitude;
  explicit Sum(float start) : value(start), magnitude(std::fabs(double(start))) {}
  void add(float a, float b) {
    const double term = static_cast<double>(a) * double(b);
    value += term;
    magnitude += std::fabs(term);
  }
};

template <class ActOn>
void for_each_index(int rows, int columns, ActOn&& act_on) {
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) act_on(row, column);
  }
}

double value_of(Activation activation, double x) {
  if (activation == Activation::relu) return x > 0 ? x : 0;
  return activation == Activation::tanh ? std::tanh(x) : x;
}

// From the activation's output.
double derivative_of(Activation activation, double y) {
  if (activation == Activation::relu) return y > 0 ? 1 : 0;
  return activation == Activation::tanh ? 1 - y * y : 1;
}

// BLAS's products, also in shapes that the device leaves to other kernels.
template <Activation A, int Batch, int In, int Out>
DenseKernels blas_kernels() {
  return {A,
          Batch,
          In,
          Out,
          kernels::blas::forward<A, Batch, In, Out>,
          kernels::blas::backward_weights<Batch, In, Out>,
          [](const float* weights, const float* gradient, const float* pre_activation,
             const float* input, float* input_gradient) {
            kernels::blas::backward_input<A, Batch, In, Out>(Blas{}, weights, gradient,
                                                             pre_activation, input, input_gradient);
          }};
}

// The bias is a term of the sum, so that it has one more than inputs. An activation has a slope of
// 1 at most, so that it increases no difference; tanh's own rounding is 2 ulps at most, of a value
// of 1 at most.
void check_forward(const DenseKernels& blas) {
  const int batch = blas.batch, in = blas.in, out = blas.out;
  const auto weights = random_values(in * out, 1), bias = random_values(out, 2);
  const auto input = random_values(batch * in, 3);
  std::vector<float> actual(static_cast<std::size_t>(batch * out), NAN);
  blas.forward(weights.data(), bias.data(), input.data(), actual.data());
  const double activation_error = blas.activation == Activation::tanh ? 2 * 0x1p-24 : 0.0;
  Agreement agreement;
  for_each_index(batch, out, [&](int sample, int column) {
    Sum sum(bias[column]);
    for (int k = 0; k < in; k++) sum.add(input[sample * in + k], weights[k * out + column]);
    agreement.add(actual[sample * out + column], value_of(blas.activation, sum.value),
                  gamma(in + 1) * sum.magnitude + activation_error);
  });
  CHECK(agreement.largest <= 1.0);
}

// The bias gradient has the reference's bits: it adds up in the samples' order.
void check_backward_weights(const DenseKernels& blas) {
  const int batch = blas.batch, in = blas.in, out = blas.out;
  const auto input = random_values(batch * in, 3), gradient = random_values(batch * out, 4);
  const auto start = random_values(in * out, 5);
  auto actual = start;
  auto expected_bias = random_values(out, 6), actual_bias = expected_bias;
  for_each_index(batch, out, [&](int sample, int column) {
    expected_bias[column] += gradient[sample * out + column];
  });
  blas.backward_weights(input.data(), gradient.data(), actual.data(), actual_bias.data());
  Agreement agreement;
  for_each_index(in, out, [&](int row, int column) {
    Sum sum(start[row * out + column]);
    for (int k = 0; k < batch; k++) sum.add(input[k * in + row], gradient[k * out + column]);
    agreement.add(actual[row * out + column], sum.value, gamma(batch + 1) * sum.magnitude);
  });
  CHECK(agreement.largest <= 1.0);
  CHECK(kernel_agreement::same_bits(actual_bias, expected_bias));
}

// Through the derivative, of 1 at most: two more roundings, its own and the product's.
void check_backward_input(const DenseKernels& blas) {
  const int batch = blas.batch, in = blas.in, out = blas.out;
  const auto weights = random_values(in * out, 1), gradient = random_values(batch * out, 4);
  const auto input = random_values(batch * in, 3);
  std::vector<float> actual(static_cast<std::size_t>(batch * in), NAN);
  blas.backward_input(weights.data(), gradient.data(), nullptr, input.data(), actual.data());
  Agreement agreement;
  for_each_index(batch, in, [&](int sample, int row) {
    Sum sum(0.0f);
    for (int k = 0; k < out; k++) sum.add(gradient[sample * out + k], weights[row * out + k]);
    const double derivative =
        derivative_of(blas.activation, static_cast<double>(input[sample * in + row]));
    agreement.add(actual[sample * in + row], sum.value * derivative,
                  gamma(out + 2) * sum.magnitude);
  });
  CHECK(agreement.largest <= 1.0);
}

void check_products(const DenseKernels& blas) {
  CAPTURE(static_cast<int>(blas.activation));
  CAPTURE(blas.batch);
  CAPTURE(blas.in);
  CAPTURE(blas.out);
  check_forward(blas);
  check_backward_weights(blas);
  check_backward_input(blas);
}

template <int Batch, int In, int Out>
void check_products() {
  check_products(blas_kernels<Activation::identity, Batch, In, Out>());
  check_products(blas_kernels<Activation::relu, Batch, In, Out>());
  check_products(blas_kernels<Activation::tanh, Batch, In, Out>());
}

template <std::size_t... Index>
void check_pairs(std::index_sequence<Index...>) {
  (check_products<kSizes[Index / 7], kSizes[Index % 7],
                  kSizes[kernel_agreement::third_of_pair(Index)]>(),
   ...);
}

}  // namespace

namespace rlt {

// Layers that BLAS takes; the optimization and the environment are pendulum-td3's.
struct WideTd3 : PendulumTd3 {
  static constexpr const char* kName = "wide-td3";
  using Actor = Mlp<float, Dimensions<3, 256, 256, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<4, 256, 256, 1>, Activation::relu, Activation::identity>;
  static constexpr int kBatchSize = 32, kTileRows = 32;
};

}  // namespace rlt

TEST_CASE("BLAS agrees with exact products to rounding") {
  check_pairs(std::make_index_sequence<49>());
  check_products<100, 257, 300>();
}

TEST_CASE("where BLAS does not take a shape, the bits are the reference's") {
  using kernel_agreement::check_dense;
  check_dense(dense_kernels<HostBlas, Activation::relu, 100, 64, 64>());
  check_dense(dense_kernels<HostBlas, Activation::tanh, 1, 257, 257>());
  check_dense(dense_kernels<HostBlas, Activation::relu, 100, 257, 3>());
  check_optimizer(kernel_agreement::optimizer_kernels<HostBlas, 13>());
}

TEST_CASE("one thread, whatever the environment says") { REQUIRE(openblas_get_num_threads() == 1); }

TEST_CASE("training with BLAS stays finite and begins as the host does") {
  using training_run::Run;
  const auto run = std::make_unique<Run<WideTd3>>(1), expected = std::make_unique<Run<WideTd3>>(1);
  for (auto* hyperparameters :
       {&run->training.hyperparameters, &expected->training.hyperparameters}) {
    hyperparameters->learning_starts = 100;
  }
  initialize(HostBlas{}, run->training);
  initialize(HostSimd{}, expected->training);
  run->train(HostBlas{}, 100);
  expected->train(HostSimd{}, 100);
  CHECK(run->state_sha256() == expected->state_sha256());  // a policy acts on single samples
  for (int update = 1; update <= 10; update++) {
    CAPTURE(update);
    const auto report = run->step(HostBlas{}), reference = expected->step(HostSimd{});
    REQUIRE(is_known(report.metrics.critic_1_loss));
    // Both round alike in all but the order of sums, and ten steps of Adam make little of 1e-7.
    CHECK(report.metrics.critic_1_loss ==
          doctest::Approx(reference.metrics.critic_1_loss).epsilon(1e-4));
    CHECK(report.metrics.critic_2_loss ==
          doctest::Approx(reference.metrics.critic_2_loss).epsilon(1e-4));
  }
  CHECK(run->state_sha256() != expected->state_sha256());  // BLAS has taken part
  for (int step = 110; step < 300; step++) REQUIRE(run->step(HostBlas{}).finite);
}

TEST_CASE("the same run on the same machine ends in the same bits") {
  using training_run::Run;
  std::string digests[2];
  for (auto& digest : digests) {
    const auto run = std::make_unique<Run<WideTd3>>(2);
    run->training.hyperparameters.learning_starts = 20;
    initialize(HostBlas{}, run->training);
    run->train(HostBlas{}, 40);
    digest = run->state_sha256();
  }
  CHECK(digests[0] == digests[1]);
}

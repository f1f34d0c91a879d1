// The kernels that device HostBlas selects: BLAS for large layers, whose results are the
// reference's to rounding, and HostSimd's for all others, with the reference's bits.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cmath>
#include <memory>

#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "pendulum_td3.h"
#include "rltools/devices/host_blas.h"
#include "training_run.h"

using namespace rlt;
using kernel_agreement::kSizes;
using kernel_agreement::random_values;

// Small shapes keep the kernels and so the bits of the host (dispatch_assertions.h has 20, 3, 64).
RLT_ASSERT_DISPATCH(HostBlas, dense_forward, HostSimd);
RLT_ASSERT_DISPATCH(HostBlas, dense_backward_weights, HostSimd);
RLT_ASSERT_DISPATCH(HostBlas, dense_backward_input, HostSimd);
RLT_ASSERT_DISPATCH(HostBlas, activation_forward, Generic);
RLT_ASSERT_DISPATCH(HostBlas, activation_backward, Generic);
RLT_ASSERT_DISPATCH(HostBlas, adam_update, Generic);
RLT_ASSERT_DISPATCH(HostBlas, polyak_update, Generic);

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
// Stability of Numerical Algorithms, 2nd edition, section 3.1, equation 3.5). Two computed ones,
// BLAS's and the reference's, differ by twice that at most.
double gamma(int n) {
  const double nu = n * 0x1p-24;
  return nu / (1 - nu);
}

// The largest ratio of a difference to its bound; above 1, or NaN, the kernel is wrong.
struct Agreement {
  double largest = 0;

  void add(float actual, float expected, double bound) {
    const double ratio = std::fabs(static_cast<double>(actual) - double(expected)) / bound;
    if (!(ratio <= largest)) largest = ratio;
  }
};

double magnitude(float a, float b) { return std::fabs(static_cast<double>(a) * double(b)); }

template <class ActOn>
void for_each_index(int rows, int columns, ActOn&& act_on) {
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) act_on(row, column);
  }
}

// The forward products through A. The bias is a term of the sum, so that it has In + 1 of them. A
// must have a slope of 1 at most, so that it increases no difference; its own rounding, of 2 ulps
// at most in each of the two, and of a value of 1 at most, is `activation_error`.
template <Activation A, int Batch, int In, int Out>
void check_forward(double activation_error) {
  const auto weights = random_values(In * Out, 1), bias = random_values(Out, 2);
  const auto input = random_values(Batch * In, 3);
  std::vector<float> expected(Batch * Out), actual(Batch * Out, NAN);
  dense_forward<A, Batch, In, Out>(Generic{}, weights.data(), bias.data(), input.data(),
                                   expected.data());
  kernels::blas::forward<A, Batch, In, Out>(weights.data(), bias.data(), input.data(),
                                            actual.data());
  Agreement agreement;
  for_each_index(Batch, Out, [&](int sample, int out) {
    double sum = std::fabs(static_cast<double>(bias[out]));
    for (int in = 0; in < In; in++) {
      sum += magnitude(input[sample * In + in], weights[in * Out + out]);
    }
    agreement.add(actual[sample * Out + out], expected[sample * Out + out],
                  2 * gamma(In + 1) * sum + activation_error);
  });
  CHECK(agreement.largest <= 1.0);
}

template <int Batch, int In, int Out>
void check_backward_weights() {
  const auto input = random_values(Batch * In, 3), gradient = random_values(Batch * Out, 4);
  const auto start = random_values(In * Out, 5);
  auto expected = start, actual = start;
  auto expected_bias = random_values(Out, 6), actual_bias = expected_bias;
  dense_backward_weights<Batch, In, Out>(Generic{}, input.data(), gradient.data(), expected.data(),
                                         expected_bias.data());
  kernels::blas::backward_weights<Batch, In, Out>(input.data(), gradient.data(), actual.data(),
                                                  actual_bias.data());
  Agreement agreement;
  for_each_index(In, Out, [&](int in, int out) {
    double sum = std::fabs(static_cast<double>(start[in * Out + out]));
    for (int sample = 0; sample < Batch; sample++) {
      sum += magnitude(input[sample * In + in], gradient[sample * Out + out]);
    }
    agreement.add(actual[in * Out + out], expected[in * Out + out], 2 * gamma(Batch + 1) * sum);
  });
  CHECK(agreement.largest <= 1.0);
  CHECK(kernel_agreement::same_bits(actual_bias, expected_bias));
}

// Through the derivative of A, which is a further factor, of 1 at most, and so a further rounding.
template <Activation A, int Batch, int In, int Out>
void check_backward_input() {
  const auto weights = random_values(In * Out, 1), gradient = random_values(Batch * Out, 4);
  const auto input = random_values(Batch * In, 3);
  std::vector<float> expected(Batch * In), actual(Batch * In, NAN);
  dense_backward_input<A, Batch, In, Out>(Generic{}, weights.data(), gradient.data(),
                                          static_cast<const float*>(nullptr), input.data(),
                                          expected.data());
  kernels::blas::backward_input<A, Batch, In, Out>(Blas{}, weights.data(), gradient.data(), nullptr,
                                                   input.data(), actual.data());
  Agreement agreement;
  for_each_index(Batch, In, [&](int sample, int in) {
    double sum = 0;
    for (int out = 0; out < Out; out++) {
      sum += magnitude(gradient[sample * Out + out], weights[in * Out + out]);
    }
    agreement.add(actual[sample * In + in], expected[sample * In + in], 2 * gamma(Out + 1) * sum);
  });
  CHECK(agreement.largest <= 1.0);
}

template <int Batch, int In, int Out>
void check_products() {
  CAPTURE(Batch);
  CAPTURE(In);
  CAPTURE(Out);
  check_forward<Activation::identity, Batch, In, Out>(0.0);
  check_forward<Activation::relu, Batch, In, Out>(0.0);
  check_forward<Activation::tanh, Batch, In, Out>(2 * 2 * 0x1p-24);
  check_backward_weights<Batch, In, Out>();
  check_backward_input<Activation::identity, Batch, In, Out>();
  check_backward_input<Activation::relu, Batch, In, Out>();
  check_backward_input<Activation::tanh, Batch, In, Out>();
}

// The combinations of kernel_agreement.h: every pair of two of the three sizes.
template <int Batch, std::size_t... In>
void check_batch(std::index_sequence<In...>) {
  (check_products<kSizes[Batch], kSizes[In], kSizes[(In * 2 + Batch) % 7]>(), ...);
}
template <std::size_t... Batch>
void check_all(std::index_sequence<Batch...>) {
  (check_batch<static_cast<int>(Batch)>(std::make_index_sequence<7>()), ...);
}

}  // namespace

namespace rlt {

// Layers that BLAS takes; the optimisation and the environment are pendulum-td3's.
struct WideTd3 : PendulumTd3 {
  static constexpr const char* kName = "wide-td3";
  using Actor = Mlp<float, Dimensions<3, 256, 256, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<4, 256, 256, 1>, Activation::relu, Activation::identity>;
  static constexpr int kBatchSize = 32, kTileRows = 32;
};

}  // namespace rlt

TEST_CASE("BLAS agrees with the reference to rounding") {
  check_all(std::make_index_sequence<7>());
  check_products<100, 257, 300>();
}

TEST_CASE("the bound notices a single wrong term") {
  Agreement agreement;
  const double sum = 257 * 0.25;  // mean of |a| |b|, both uniform in +-1
  agreement.add(1.001f, 1.0f, 2 * gamma(258) * sum);
  CHECK(agreement.largest < 1.0);  // 0.001 may be rounding of 257 terms ...
  agreement.add(1.25f, 1.0f, 2 * gamma(258) * sum);
  CHECK(agreement.largest > 100.0);  // ... a term that is missing is not
  agreement.add(NAN, 1.0f, 1.0);
  CHECK_FALSE(agreement.largest <= 1.0);
}

TEST_CASE("where BLAS does not take a shape, the bits are the reference's") {
  kernel_agreement::check_dense<HostBlas, Activation::relu, 100, 64, 64>();
  kernel_agreement::check_dense<HostBlas, Activation::tanh, 1, 257, 257>();
  kernel_agreement::check_dense<HostBlas, Activation::relu, 100, 257, 3>();
  kernel_agreement::check_optimizer<HostBlas, 257>();
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
    const StepReport report = run->step(HostBlas{}), reference = expected->step(HostSimd{});
    REQUIRE(report.updated);
    // Both round alike in all but the order of sums, and ten steps of Adam make little of 1e-7.
    CHECK(report.critic_1_loss == doctest::Approx(reference.critic_1_loss).epsilon(1e-4));
    CHECK(report.critic_2_loss == doctest::Approx(reference.critic_2_loss).epsilon(1e-4));
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

// A value as a distribution over bins: what its projection keeps, its losses' gradients against
// differences; and the divisor of rewards that brings returns between the bins, against a
// computation from all rewards.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/categorical_value.h"
#include "rltools/rl/return_scale.h"

using namespace rlt;

namespace {

using Bins = ValueBins<101>;
constexpr int kBins = Bins::kCount;
using Values = std::vector<double>;

// Probabilities, of which some are zero.
template <class T>
std::vector<T> random_distribution(std::uint32_t stream) {
  const Values logits = numeric::random_values(kBins, stream, -1.0, 4.0);
  Values p(kBins);
  double sum = 0;
  for (int i = 0; i < kBins; i++) sum += p[i] = logits[i] < 0 ? 0 : std::exp(logits[i]);
  std::vector<T> result;
  for (const double value : p) result.push_back(static_cast<T>(value / sum));
  return result;
}

template <class T>
double mass(const std::vector<T>& p) {
  double sum = 0;
  for (const T value : p) sum += static_cast<double>(value);
  return sum;
}
template <class T>
double mean(const std::vector<T>& p) {
  double sum = 0;
  for (int i = 0; i < kBins; i++) sum += static_cast<double>(p[i]) * (-5 + i / 10.0);
  return sum;
}

template <class T>
std::vector<T> projected(T offset, T factor, const std::vector<T>& p) {
  std::vector<T> result(kBins, T(7));  // what stood there before counts for nothing
  project<Bins>(offset, factor, p.data(), result.data());
  return result;
}

// All of the probability in one bin.
Values certain(int bin) {
  Values p(kBins);
  p[bin] = 1;
  return p;
}

// Of `rows` rows of logits.
struct Softmax {
  Values shifted, probability, log_denominator, value;
  template <int Rows>
  void set(const Values& logits) {
    shifted = logits;
    probability.resize(logits.size());
    log_denominator.resize(Rows);
    value.resize(Rows);
    softmax_rows<Rows, kBins>(Generic{}, shifted.data(), probability.data(),
                              log_denominator.data());
    mean_values<Rows, Bins>(Generic{}, probability.data(), value.data());
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a projection keeps the mass, and the mean where nothing is clipped", T, float,
                   double) {
  const double epsilon = sizeof(T) == 8 ? 1e-14 : 1e-5;
  for (std::uint32_t stream = 0; stream < 8; stream++) {
    const auto p = random_distribution<T>(stream);
    for (const auto& move : {std::pair{0.0, 1.0},
                             {0.013, 0.99},
                             {-0.51, 0.87},
                             {4.2, 0.1},
                             {-4.99, 0.0},
                             {1.7, -0.6}}) {
      const double offset = move.first, factor = move.second;
      CAPTURE(offset);
      const auto m = projected<T>(static_cast<T>(offset), static_cast<T>(factor), p);
      CHECK(mass(m) == doctest::Approx(mass(p)).epsilon(epsilon));
      CHECK(std::abs(mean(m) - (offset * mass(p) + factor * mean(p))) < 5 * epsilon);
      CHECK(*std::min_element(m.begin(), m.end()) >= 0);
    }
    // What is beyond the bins is in the last ones.
    for (const double offset : {3.0, -2.7, 60.0, -1e30}) {
      CAPTURE(offset);
      const auto m = projected<T>(static_cast<T>(offset), T(0.99), p);
      CHECK(mass(m) == doctest::Approx(mass(p)).epsilon(epsilon));
      double expected = 0;
      for (int i = 0; i < kBins; i++) {
        const double moved = offset + 0.99 * (-5 + i / 10.0);
        expected += static_cast<double>(p[i]) * std::min(std::max(moved, -5.0), 5.0);
      }
      CHECK(std::abs(mean(m) - expected) < 5 * epsilon);
    }
    CHECK(projected(T(60), T(1), p)[kBins - 1] == doctest::Approx(1).epsilon(epsilon));
    CHECK(projected(T(-60), T(1), p)[0] == doctest::Approx(1).epsilon(epsilon));
    CHECK(projected(static_cast<T>(math::kInfinity), T(1), p)[kBins - 1] ==
          doctest::Approx(1).epsilon(epsilon));
  }
}

TEST_CASE_TEMPLATE("so does one of any number of bins", B, ValueBins<2>, ValueBins<30>,
                   ValueBins<51>, ValueBins<52>) {
  float p[B::kCount], m[B::kCount];
  for (int i = 0; i < B::kCount; i++) p[i] = 1.0f / B::kCount;
  for (const float offset : {0.0f, 0.011f, -2.7f, 4.0f, 7.0f, 20.0f}) {
    CAPTURE(offset);
    project<B>(offset, 0.9f, p, m);
    double sum = 0, mean = 0, expected = 0;
    for (int i = 0; i < B::kCount; i++) {
      const double value = -5 + 10.0 * i / (B::kCount - 1);
      CHECK(m[i] >= 0);
      sum += m[i];
      mean += m[i] * value;
      expected += std::min(std::max(offset + 0.9 * value, -5.0), 5.0) / B::kCount;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    CHECK(std::abs(mean - expected) < 1e-5);
  }
}

TEST_CASE("a value that hits a bin stays in it") {
  for (int bin = 0; bin < kBins; bin++) {
    CAPTURE(bin);
    CHECK(projected(0.0, 1.0, certain(bin))[bin] == doctest::Approx(1).epsilon(1e-12));
  }
  // Exactly: -5, 0 and 5 have no rounding.
  CHECK(projected(0.0, 1.0, certain(0)) == certain(0));
  CHECK(projected(0.0, 1.0, certain(50)) == certain(50));
  CHECK(projected(0.0, 1.0, certain(100)) == certain(100));
  CHECK(projected(-5.0, 0.0, certain(3)) == certain(0));
  CHECK(projected(5.0, 0.0, certain(3)) == certain(100));
  CHECK(projected(-5.0, 2.0, certain(100)) == certain(100));
}

TEST_CASE_TEMPLATE("what is not a number gives no index, and shows in the result", T, float,
                   double) {
  const auto p = random_distribution<T>(1);
  const T nan = static_cast<T>(math::kQuietNan);
  CHECK(std::isnan(mass(projected(nan, T(1), p))));
  CHECK(std::isnan(mass(projected(T(0), nan, p))));
  auto spoiled = p;
  spoiled[7] = nan;
  CHECK(std::isnan(mass(projected(T(0), T(1), spoiled))));
}

TEST_CASE("cross-entropy and its gradient") {
  constexpr int kRows = 3;
  Values logits = numeric::random_values(kRows * kBins, 2, -3.0, 3.0), target;
  for (std::uint32_t row = 0; row < kRows; row++) {
    for (const double value : random_distribution<double>(row)) target.push_back(value);
    for (int i = 0; i < kBins; i++) logits[row * kBins + i] += 300.0 * row;  // no overflow
  }
  constexpr double kShare = 0.2;
  Values gradient(logits.size());
  Softmax softmax;
  const auto loss = [&] {
    softmax.set<kRows>(logits);
    return cross_entropy<kRows, kBins>(target.data(), softmax.shifted.data(),
                                       softmax.probability.data(), softmax.log_denominator.data(),
                                       kShare, gradient.data());
  };
  double expected = 0;
  for (int row = 0; row < kRows; row++) {
    long double sum = 0;
    const double* own = &logits[row * kBins];
    for (int i = 0; i < kBins; i++) sum += std::exp(static_cast<long double>(own[i] - own[0]));
    for (int i = 0; i < kBins; i++) {
      expected -= target[row * kBins + i] * static_cast<double>(own[i] - own[0] - std::log(sum));
    }
  }
  CHECK(loss() == doctest::Approx(expected).epsilon(1e-13));
  const Values analytic = gradient;
  Values differences;
  for (double& logit : logits) differences.push_back(kShare * numeric::derivative(logit, loss));
  CHECK(numeric::relative_difference(analytic, differences) <= numeric::kTolerance);
  // In place.
  loss();
  cross_entropy<kRows, kBins>(target.data(), softmax.shifted.data(), softmax.probability.data(),
                              softmax.log_denominator.data(), kShare, softmax.probability.data());
  CHECK(softmax.probability == analytic);
}

TEST_CASE("a value is the mean of its distribution, and its gradient is that of differences") {
  constexpr int kRows = 2;
  Values logits = numeric::random_values(kRows * kBins, 3, -3.0, 3.0);
  const Values value_gradient{0.7, -1.3};
  Softmax softmax;
  softmax.set<kRows>(logits);
  for (int row = 0; row < kRows; row++) {
    const auto* own = &softmax.probability[row * kBins];
    const Values p(own, own + kBins);
    CHECK(mass(p) == doctest::Approx(1).epsilon(1e-14));
    CHECK(softmax.value[row] == doctest::Approx(mean(p)).epsilon(1e-13));
  }
  Values gradient(logits.size()), differences;
  mean_values_backward<kRows, Bins>(Generic{}, softmax.probability.data(), softmax.value.data(),
                                    value_gradient.data(), gradient.data());
  for (double& logit : logits) {
    differences.push_back(numeric::derivative(logit, [&] {
      Softmax there;
      there.set<kRows>(logits);
      return there.value[0] * value_gradient[0] + there.value[1] * value_gradient[1];
    }));
  }
  CHECK(numeric::relative_difference(gradient, differences) <= numeric::kTolerance);
}

TEST_CASE("rewards are divided by the returns' deviation, or by what brings the largest to a bin") {
  constexpr int kEnvironments = 2;
  constexpr double kGamma = 0.97;
  ReturnScale<kEnvironments> scale;
  initialize(scale);
  CHECK(reward_factor(scale, 5) == doctest::Approx(1e4));  // before there is any
  Values returns, rewards[kEnvironments];
  const Values drawn = numeric::random_values(4000, 4, -1.0, 3.0);
  for (int step = 0; step < 2000; step++) {
    const int index = step % kEnvironments;
    // A single reward at first: the largest return counts; then many.
    double reward = drawn[2 * step];
    if (step < 600) reward = step == 100 ? 40 : 0;
    rewards[index].push_back(reward);
    double value = 0;
    for (const double r : rewards[index]) value = kGamma * value + r;
    returns.push_back(value);
    const bool ended = drawn[2 * step + 1] > 2.8 || step % 70 == 69;
    const bool is_lost = step % 131 == 130;
    update_return(scale, index, kGamma, reward, ended);
    if (ended || is_lost) rewards[index].clear();
    if (is_lost) end_return(scale, index);

    long double mean = 0, variance = 0, largest = 0;
    for (const double r : returns) mean += r;
    mean /= static_cast<long double>(returns.size());
    for (const double r : returns) {
      variance += (r - mean) * (r - mean);
      largest = std::max(largest, std::abs(static_cast<long double>(r)));
    }
    variance /= static_cast<long double>(returns.size());
    const long double divisor = std::max(std::sqrt(variance + 1e-8L), largest / 5);
    CHECK(reward_factor(scale, 5) ==
          doctest::Approx(static_cast<double>(1 / divisor)).epsilon(1e-12));
    if (step == 599) CHECK(largest / 5 > std::sqrt(variance));
    if (step == 1999) CHECK(largest / 5 < std::sqrt(variance));
  }
  CHECK(scale.count == 2000);
  CHECK(is_consistent(scale));
}

TEST_CASE("a scale that is none is not consistent") {
  ReturnScale<1> scale;
  for (double ReturnScale<1>::* field :
       {&ReturnScale<1>::count, &ReturnScale<1>::sum_of_squares, &ReturnScale<1>::largest}) {
    initialize(scale);
    CHECK(is_consistent(scale));
    scale.*field = -1;
    CHECK_FALSE(is_consistent(scale));
  }
}

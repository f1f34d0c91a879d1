// Metrics: the list of an algorithm, and their means over the steps that computed them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "rltools/rl/metrics.h"

using namespace rlt;

namespace {

#define THREE_METRICS(X)      \
  X(value_loss, "Of values.") \
  X(kl, "A divergence.")      \
  X(entropy, "What is left.")

RLT_DEFINE_METRICS(Three, THREE_METRICS)

}  // namespace

TEST_CASE("a list of metrics is a struct, its names and its descriptions") {
  static_assert(Three::kCount == 3);
  CHECK(Three::info(0).name == std::string("value_loss"));
  CHECK(Three::info(1).name == std::string("kl"));
  CHECK(Three::info(2).description == std::string("What is left."));
  Three metrics;
  for (int i = 0; i < 3; i++) CHECK_FALSE(is_known(metrics.get(i)));
  metrics.value_loss = 1.0f;
  metrics.kl = 2.0f;
  metrics.entropy = 3.0f;
  for (int i = 0; i < 3; i++) CHECK(metrics.get(i) == static_cast<float>(i + 1));
  CHECK_FALSE(is_known(metrics.get(3)));
}

TEST_CASE("a mean is over the steps that computed the metric") {
  MetricMeans<Three> means;
  for (int i = 0; i < 3; i++) CHECK(std::isnan(means.get(i)));
  for (int step = 1; step <= 4; step++) {
    Three metrics;
    metrics.value_loss = static_cast<float>(step);
    if (step % 2 == 0) metrics.kl = static_cast<float>(10 * step);
    means.add(metrics);
  }
  CHECK(means.get(0) == 2.5f);
  CHECK(means.get(1) == 30.0f);
  CHECK(std::isnan(means.get(2)));
  means.clear();
  for (int i = 0; i < 3; i++) CHECK(std::isnan(means.get(i)));
  Three metrics;
  metrics.kl = 7.0f;
  means.add(metrics);
  CHECK(std::isnan(means.get(0)));
  CHECK(means.get(1) == 7.0f);
}

TEST_CASE("a metric that is infinite is known, and so is its mean") {
  MetricMeans<Three> means;
  Three metrics;
  metrics.kl = std::numeric_limits<float>::infinity();
  means.add(metrics);
  metrics.kl = 1.0f;
  means.add(metrics);
  CHECK(std::isinf(means.get(1)));
}

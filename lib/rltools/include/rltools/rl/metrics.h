// Metrics: what an algorithm reports of its learning, listed once with names and descriptions. The
// struct of a step's report, the protocol's progress message, the log's columns and the charts all
// come from that list.
//   #define RLT_MY_METRICS(X) X(value_loss, "Mean squared error of the value network.")
//   RLT_DEFINE_METRICS(MyMetrics, RLT_MY_METRICS)
#pragma once

#include <cstdint>

#include "rltools/core/math.h"

namespace rlt {

struct MetricInfo {
  const char* name;
  const char* description;
};

// Maximum number that a progress message carries (lib/protocol/rltools.xml).
constexpr int kMaxMetrics = 16;

// Return whether a step computed the metric.
inline bool is_known(float metric) { return metric == metric; }

#define RLT_METRIC_FIELD(Name, Description) float Name = ::rlt::math::kQuietNan;
#define RLT_METRIC_INFO(Name, Description) {#Name, Description},
#define RLT_METRIC_GET(Name, Description) \
  if (index-- == 0) return Name;

// `struct Struct` with a float for each metric, NaN where a step did not compute it, and access by
// index in the list's order.
#define RLT_DEFINE_METRICS(Struct, List)                                                           \
  struct Struct {                                                                                  \
    List(RLT_METRIC_FIELD) static constexpr ::rlt::MetricInfo kInfo[] = { List(RLT_METRIC_INFO) }; \
    static constexpr int kCount = static_cast<int>(sizeof(kInfo) / sizeof(kInfo[0]));              \
    static_assert(kCount <= ::rlt::kMaxMetrics, "a progress message has 16 metrics");              \
    static const ::rlt::MetricInfo& info(int index) { return kInfo[index]; }                       \
    float get(int index) const { List(RLT_METRIC_GET) return ::rlt::math::kQuietNan; }             \
  };

// Means of the metrics, each over the steps that computed it.
template <class Metrics>
class MetricMeans {
 public:
  void add(const Metrics& metrics) {
    for (int i = 0; i < Metrics::kCount; i++) {
      const float value = metrics.get(i);
      if (!is_known(value)) continue;
      sum_[i] += value;
      count_[i]++;
    }
  }

  void clear() { *this = {}; }

  // Return a metric; NaN where no step computed it.
  float get(int index) const {
    return count_[index] == 0 ? math::kQuietNan : sum_[index] / static_cast<float>(count_[index]);
  }

 private:
  float sum_[Metrics::kCount] = {};
  std::uint32_t count_[Metrics::kCount] = {};
};

}  // namespace rlt

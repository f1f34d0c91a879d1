// Prints every hyperparameter as Markdown, from the lists of the algorithms and environments, or
// with the argument `metrics` every metric (write.py compiles and runs it, and names the
// algorithms).
#include <cstdio>

#include "rltools/rl/environments/any_quadrotor.h"
#include "rltools/rl/environments/windy_quadrotor.h"

namespace {

template <class List>
void print(const char* title, int from = 0) {
  std::printf("\n## %s\n\n| name | default | range | unit | meaning |\n|---|---|---|---|---|\n",
              title);
  for (int i = from; i < List::kCount; i++) {
    const rlt::ParameterInfo& info = List::info(i);
    const bool is_bounded = info.maximum < 4294967295.0;
    std::printf("| `%s` | %.7g | ", info.name, info.default_value);
    if (is_bounded)
      std::printf("%.7g to %.7g", info.minimum, info.maximum);
    else
      std::printf("from %g on", info.minimum);
    std::printf(" | %s | %s |\n", info.unit, info.description);
  }
}

template <class Metrics>
void print_metrics(const char* title) {
  std::printf("\n## %s\n\n| name | meaning |\n|---|---|\n", title);
  for (int i = 0; i < Metrics::kCount; i++) {
    std::printf("| `%s` | %s |\n", Metrics::info(i).name, Metrics::info(i).description);
  }
}

}  // namespace

int main(int argument_count, char**) {
  if (argument_count > 1) {
#define PRINT_METRICS(Algorithm) print_metrics<rlt::Algorithm::Metrics>(rlt::Algorithm::kName);
    RLT_ALGORITHMS(PRINT_METRICS)
    return 0;
  }
#define PRINT(Algorithm) print<rlt::Algorithm::TaskHyperparameters>(rlt::Algorithm::kName);
  RLT_ALGORITHMS(PRINT)
  print<rlt::quadrotor::Settings>("Settings of the quadrotor");
  print<rlt::quadrotor::WindySettings>("Settings of the quadrotor in a steady wind",
                                       rlt::quadrotor::Settings::kCount);
  print<rlt::quadrotor::AnySettings>("Settings of any quadrotor", rlt::quadrotor::Settings::kCount);
}

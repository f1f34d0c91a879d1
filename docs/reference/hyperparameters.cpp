// Prints every hyperparameter and metric as Markdown, from the lists of the algorithms and
// environments: a table each, under the name by which documents take it (`{{ metrics_td3 }}`).
// conf.py compiles and runs it, and names the algorithms.
#include <cstdio>

#include "rltools/rl/environments/foundation/any_quadrotor.h"
#include "rltools/rl/environments/windy_quadrotor.h"

namespace {

template <class List>
void print(const char* name, int from = 0) {
  std::printf("\n## %s\n| name | default | range | unit | meaning |\n|---|---|---|---|---|\n",
              name);
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
void print_metrics(const char* name) {
  std::printf("\n## %s\n| name | meaning |\n|---|---|\n", name);
  for (int i = 0; i < Metrics::kCount; i++) {
    std::printf("| `%s` | %s |\n", Metrics::info(i).name, Metrics::info(i).description);
  }
}

}  // namespace

int main() {
#define PRINT(Algorithm)                                                     \
  print<rlt::Algorithm::TaskHyperparameters>("hyperparameters_" #Algorithm); \
  print_metrics<rlt::Algorithm::Metrics>("metrics_" #Algorithm);
  RLT_ALGORITHMS(PRINT)
  print<rlt::quadrotor::Settings>("settings_quadrotor");
  print<rlt::quadrotor::WindySettings>("settings_windy", rlt::quadrotor::Settings::kCount);
  print<rlt::quadrotor::AnySettings>("settings_any", rlt::quadrotor::Settings::kCount);
}

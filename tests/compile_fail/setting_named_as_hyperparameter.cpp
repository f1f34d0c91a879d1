// A setting of an environment has the name of one of the algorithm's hyperparameters.
// says: a setting of the environment has the name of one of the algorithm's hyperparameters
#include "rltools/rl/hyperparameters.h"

#if defined(RLT_CORRECTED)
#define RLT_MY_SETTINGS(X) X(float, discount, 0.5, 0, 1, "", "Of the environment.")
#else
#define RLT_MY_SETTINGS(X) X(float, gamma, 0.5, 0, 1, "", "Of the environment.")
#endif
#define RLT_MY_HYPERPARAMETERS(X) \
  RLT_RUN_HYPERPARAMETERS(X) X(float, gamma, 0.99, 0, 1, "", "Discount of rewards.")

RLT_DEFINE_HYPERPARAMETERS(MyHyperparameters, RLT_MY_HYPERPARAMETERS)
RLT_DEFINE_HYPERPARAMETERS(MySettings, RLT_MY_SETTINGS)

int main() {
  using Joined = rlt::JoinedHyperparameters<MyHyperparameters, MySettings>;
  return Joined::kCount == 7 ? 0 : 1;
}

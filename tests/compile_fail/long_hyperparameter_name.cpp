// A hyperparameter's name has 17 characters, and MAVLink takes 16.
// says: the hyperparameter target_learn_rate has a name of more than 16 characters
#include "rltools/rl/hyperparameters.h"

#if defined(RLT_CORRECTED)
#define RLT_MY_HYPERPARAMETERS(X) \
  RLT_RUN_HYPERPARAMETERS(X) X(float, target_lrn_rate, 1e-3, 0, 1, "", "Step size of the target.")
#else
#define RLT_MY_HYPERPARAMETERS(X) \
  RLT_RUN_HYPERPARAMETERS(X) X(float, target_learn_rate, 1e-3, 0, 1, "", "Step size of the target.")
#endif

RLT_DEFINE_HYPERPARAMETERS(MyHyperparameters, RLT_MY_HYPERPARAMETERS)

int main() { return MyHyperparameters::kCount == 6 ? 0 : 1; }

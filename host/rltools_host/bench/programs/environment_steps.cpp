// environment_steps: see environment_steps.h; Pendulum, which the compiler is soon done with.
#include "environment_steps.h"

#include "rltools/rl/environments/pendulum.h"

int main() {
  using namespace rlt;
  return environment_steps::take_orders([](const environment_steps::Order& order) {
    return environment_steps::answer<Pendulum<float>, 1, 64, 1024>(order, 200);
  });
}

// quadrotor_environment_steps: see environment_steps.h; quadrotors.
#include "environment_steps.h"

#include "quadrotor_drones.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"

int main() {
  using namespace rlt;
  using Drones = environment_steps::Drones<1024>;
  return environment_steps::take_orders([](const environment_steps::Order& order) {
    if (std::strcmp(order.task, Drones::kName) == 0 && order.count == 1024) {
      static Drones drones;
      return environment_steps::take(order, drones);
    }
    return environment_steps::answer<Quadrotor<float>, 1, 64, 1024>(
               order, Quadrotor<float>::kEpisodeSteps) ||
           environment_steps::answer<WithActionHistory<Quadrotor<float>, 3>, 1024>(
               order, Quadrotor<float>::kEpisodeSteps, "Quadrotor-history");
  });
}

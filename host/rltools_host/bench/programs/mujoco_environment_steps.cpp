// mujoco_environment_steps: see environment_steps.h; MuJoCo's tasks.
// Requires: mujoco
#include "environment_steps.h"

#include "rltools/rl/environments/mujoco/ant.h"
#include "rltools/rl/environments/mujoco/half_cheetah.h"
#include "rltools/rl/environments/mujoco/hopper.h"
#include "rltools/rl/environments/mujoco/humanoid.h"
#include "rltools/rl/environments/mujoco/walker2d.h"

namespace {

template <class... Tasks>
bool answer_one(const rlt::environment_steps::Order& order) {
  return (rlt::environment_steps::answer<Tasks, 1, 64>(order, 1000) || ...);
}

}  // namespace

int main() {
  return rlt::environment_steps::take_orders(
      answer_one<rlt::Ant<float>, rlt::HalfCheetah<float>, rlt::Hopper<float>, rlt::Walker2d<float>,
                 rlt::Humanoid<float>>);
}

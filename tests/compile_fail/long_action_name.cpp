// The history of an action whose name leaves no room for its age in a policy image.
// says: an action's name is too long
#include "rltools/rl/environments/pendulum.h"
#include "rltools/rl/environments/with_action_history.h"

struct LongPendulum : rlt::Pendulum<float> {
#if defined(RLT_CORRECTED)
  static constexpr rlt::Channel kActions[] = {{"torque_of_the_motor", "Nm", -2.0f, 2.0f}};
#else
  static constexpr rlt::Channel kActions[] = {{"torque_of_the_motor_", "Nm", -2.0f, 2.0f}};
#endif
};

int main() { return rlt::WithActionHistory<LongPendulum, 9>::kObservationDim - 12; }

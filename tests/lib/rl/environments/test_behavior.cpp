// What each environment does in the episodes that the fingerprint tries, as a hash of every bit: an
// edit that changes it must be one on purpose, as runs from before do not go on. The quadrotor's:
// test_quadrotor_fingerprint.cpp, test_windy_quadrotor.cpp. Those of folders are beside them.
#include <doctest/doctest.h>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/acrobot.h"
#include "rltools/rl/environments/cart_pole.h"
#include "rltools/rl/environments/masked_pendulum.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/environments/with_sums.h"
#include "rltools/rl/fingerprint.h"

using namespace rlt;
using detail::behavior_hash;

TEST_CASE("what an environment does is known") {
  CHECK(behavior_hash<Pendulum<float>>() == 1275277468u);
  CHECK(behavior_hash<MaskedPendulum<float>>() == 1275277468u);
  CHECK(behavior_hash<CartPole<float>>() == 1147949491u);
  CHECK(behavior_hash<Acrobot<float>>() == 2575061804u);
  CHECK(behavior_hash<WithActionHistory<WithSums<Quadrotor<float>, 3>, 2>>() == 1922585732u);
}

// A mirrored experiment whose header does not include what learns so.
// says: the experiment is kMirrored, and does not include rltools/rl/symmetry/symmetry.h
#pragma once

#include "quadrotor_ppo.h"

#if defined(RLT_CORRECTED)
#include "rltools/rl/symmetry/symmetry.h"
#endif

namespace rlt {

struct MirrorsNotIncluded : QuadrotorPpo {
  static constexpr bool kMirrored = true;
};

}  // namespace rlt

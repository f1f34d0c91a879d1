// Privileged observations: what critics see and a policy does not (asymmetric actor-critic, Pinto
// et al. 2017, arXiv 1710.06542). An environment's observe() writes them behind the policy's
// observation, and learning keeps both as one row: critics take the whole of it, the policy its
// first part.
#pragma once

#include "rltools/core/tensor.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/environment.h"

namespace rlt {

// Memory for the policy's part of Rows observations: none where that is all of them. A base of the
// scratch memory, for it to take no space there.
template <class Environment, int Rows,
          bool Copied = (detail::Stated<Environment>::kPrivilegedDim > 0)>
struct PolicyRows {};
template <class Environment, int Rows>
struct PolicyRows<Environment, Rows, true> {
  alignas(64) typename Environment::Scalar policy_rows[Rows * Environment::kObservationDim];
};

// Return the policy's part of observations (rows, CriticObservationDim): (rows, ObservationDim),
// which in `memory` are the last ones asked for.
template <class Device, class Environment, int Rows, class Observations>
const Observations& policy_part(Device, const Observations& observations,
                                PolicyRows<Environment, Rows, false>&) {
  return observations;
}
template <class Device, class Environment, int Rows, class Observations>
MatrixView<const typename Environment::Scalar, Observations::kRows, Environment::kObservationDim>
policy_part(Device device, const Observations& observations,
            PolicyRows<Environment, Rows, true>& memory) {
  static_assert(Observations::kRows <= Rows, "more rows than there is memory for");
  copy_columns<Observations::kRows, Observations::kColumns, 0, Environment::kObservationDim>(
      device, observations.data(), memory.policy_rows);
  return {memory.policy_rows};
}

}  // namespace rlt

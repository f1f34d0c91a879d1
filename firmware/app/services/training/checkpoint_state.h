// A checkpoint of the present training state, and whether the state that was written is that of a
// checkpoint's header.
#pragma once

#include "app/services/training/checkpoint.h"
#include "app/services/training/state_bytes.h"

namespace rlt {

// Check the state after the payload has been written over it.
template <class E>
CheckpointReason check_state(Training<E>& training, const CheckpointHeader& header) {
  std::uint8_t sha256[Sha256::kDigestBytes];
  hash_state(training, sha256);
  if (__builtin_memcmp(sha256, header.sha256, sizeof(sha256)) != 0) {
    return CheckpointReason::wrong_sha256;
  }
  if (steps_done(training) != header.step) return CheckpointReason::wrong_step;
  if (!state_is_consistent(training)) return CheckpointReason::inconsistent;
  if (!state_is_finite(training)) return CheckpointReason::not_finite;
  return CheckpointReason::accepted;
}

}  // namespace rlt

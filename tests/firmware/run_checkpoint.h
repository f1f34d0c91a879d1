// The checkpoint of a run's state as it is.
#pragma once

#include "app/services/training/checkpoint.h"
#include "app/services/training/state_bytes.h"
#include "training_run.h"

namespace run_checkpoint {

template <class E>
std::vector<std::uint8_t> checkpoint_of(training_run::Run<E>& run) {
  std::uint8_t sha256[rlt::Sha256::kDigestBytes];
  hash_state(run.training, sha256);
  const std::vector<std::uint8_t> state = run.state();
  const rlt::CheckpointHeader header = rlt::make_checkpoint_header(
      fingerprint(run.training), static_cast<std::uint32_t>(state.size()), steps_done(run.training),
      sha256);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  std::vector<std::uint8_t> checkpoint(bytes, bytes + sizeof(header));
  checkpoint.insert(checkpoint.end(), state.begin(), state.end());
  return checkpoint;
}

}  // namespace run_checkpoint

// Fuzz target: a checkpoint of an on-policy run of four environments (checkpoint_target.h), within
// a rollout, among an iteration's minibatches, and at the end of the run.
#include "checkpoint_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  fuzz::check_checkpoint<rlt::RandomPointPpo>({28, 128, 192}, bytes, count);
  return 0;
}

// Fuzz target: a checkpoint of an off-policy run (checkpoint_target.h), before the replay buffer is
// full, when it has become full, and at the end of the run.
#include "checkpoint_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  fuzz::check_checkpoint<rlt::TinyTd3>({12, 60, 90}, bytes, count);
  return 0;
}

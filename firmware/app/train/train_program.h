// The train application as a program: its memory, and the loop that a board's main() runs. Included
// by that one file; the build defines which experiment, which device and which board
// (docs/design.md, "Names").
#pragma once

#include "app/train/train_application.h"
#include "app/train/trained_experiment.h"

#define RLT_QUOTE_TOKENS(x) #x
#define RLT_QUOTE(x) RLT_QUOTE_TOKENS(x)

namespace rlt::train_program {

RLT_FAST Learner<Experiment> learner;
RLT_FAST Scratch<Experiment> scratch;
RLT_BULK Replay<Experiment> replay;
RLT_BULK std::uint8_t policy_image[kPolicyImageBytes<Experiment>];

// Returns only where the link can be gone for good.
inline void run() {
  board::initialize();
  Training<Experiment> training{{}, learner, replay, scratch};
  TrainApplication<Experiment, RLT_DEVICE> application{
      RLT_DEVICE{}, {RLT_BOARD_NAME, RLT_QUOTE(RLT_DEVICE)}, training, policy_image};
  while (!board::should_exit()) application.turn();
}

}  // namespace rlt::train_program

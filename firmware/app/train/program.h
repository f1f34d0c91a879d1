// The train program: the application's memory, and the loop that a board's main() runs. Included by
// that one file; the build defines which experiment, which device and which board (docs/design.md,
// "Names").
#pragma once

#include "app/link/board_node.h"
#include "app/train/application.h"
#include "app/train/trained_experiment.h"

namespace rlt::program {

RLT_FAST Learner<Experiment> learner;
RLT_FAST Scratch<Experiment> scratch;
RLT_BULK Replay<Experiment> replay;
RLT_BULK std::uint8_t policy_image[kPolicyImageBytes<Experiment>];

// Returns only where the link can close.
inline void run() {
  board::initialize();
  Training<Experiment> training{{}, learner, replay, scratch};
  TrainApplication<Experiment, RLT_DEVICE> application{RLT_DEVICE{},
                                                       find_arithmetic_fault(),
                                                       link::kBoardTransport,
                                                       link::kBoardAddress,
                                                       {RLT_BOARD_NAME, RLT_QUOTE(RLT_DEVICE)},
                                                       training,
                                                       policy_image};
  while (!board::should_exit()) application.poll();
}

}  // namespace rlt::program

// The train program: the application's memory, and the loop that a board's main() runs. Included by
// that one file; the build defines which experiment, which device and which board (docs/design.md,
// "Names").
#pragma once

#include "app/link/board_node.h"
#include "app/train/application.h"
#include "app/train/trained_experiment.h"

namespace rlt::program {

RLT_FAST Learner<Experiment> learner;
RLT_BULK Replay<Experiment> replay;

// The scratch memory is fast, where it is small enough for a stock Teensy's.
constexpr bool kScratchIsFast = sizeof(Scratch<Experiment>) <= 192 * 1024;
struct NoMemory {
  char none[0];  // an empty struct would take a byte
};
RLT_FAST std::conditional_t<kScratchIsFast, Scratch<Experiment>, NoMemory> fast_scratch;
RLT_BULK std::conditional_t<kScratchIsFast, NoMemory, Scratch<Experiment>> bulk_scratch;
inline Scratch<Experiment>& one_of(Scratch<Experiment>& scratch, NoMemory&) { return scratch; }
inline Scratch<Experiment>& one_of(NoMemory&, Scratch<Experiment>& scratch) { return scratch; }

// The best policy is kept beside the last where memory is plenty, and where the board states how
// much lies behind RLT_BULK and that suffices. Boards that count instructions state nothing: the
// instructions of a run are then only those of training and evaluations.
#if defined(RLT_WHOLE_BATCH)
constexpr bool kKeepsBest = true;
#elif defined(RLT_BULK_BYTES)
constexpr bool kKeepsBest =
    sizeof(bulk_scratch) + sizeof(Replay<Experiment>) + sizeof(PolicyImages<Experiment, true>) <=
    RLT_BULK_BYTES;
#else
constexpr bool kKeepsBest = false;
#endif
RLT_BULK PolicyImages<Experiment, kKeepsBest> policy_images;

// Return only where the link can close.
inline void run() {
  board::initialize();
  Training<Experiment> training{{}, learner, replay, one_of(fast_scratch, bulk_scratch)};
  TrainApplication<Experiment, RLT_DEVICE, kKeepsBest> application{
      RLT_DEVICE{},
      find_arithmetic_fault(),
      link::kBoardTransport,
      link::kBoardAddress,
      {RLT_BOARD_NAME, RLT_QUOTE(RLT_DEVICE)},
      training,
      policy_images};
  while (!board::should_exit()) application.poll();
}

}  // namespace rlt::program

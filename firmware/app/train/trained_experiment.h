// The experiment that is trained, and the device: the build defines both (docs/design.md, "Names").
// Included by the two translation units of a train program.
#pragma once

#include RLT_DEVICE_HEADER
#include RLT_EXPERIMENT_HEADER

#include <type_traits>

#include "rltools/core/tasks.h"

namespace rlt {

namespace program {

// Return the rows of a tile: where memory is plenty all of the batch, or tiles whose activations
// stay in a core's cache.
#if defined(RLT_WHOLE_BATCH)
constexpr int tile_rows(int batch_size) {
  int rows = batch_size;
  while (rows > 512 && rows % 2 == 0) rows /= 2;
  return rows;
}
using Tiled = WithTileRows<RLT_EXPERIMENT, tile_rows(RLT_EXPERIMENT::kBatchSize)>;
#else
using Tiled = RLT_EXPERIMENT;
#endif
using Experiment = std::conditional_t<(WorkersOf<RLT_DEVICE>::kMaxParts > 1),
                                      WithSecondCriticScratch<Tiled>, Tiled>;

}  // namespace program

// Learning is compiled beside the application, in train_step.cpp: at once, in half the time.
extern template StepReport<program::Experiment> train_step(RLT_DEVICE,
                                                           Training<program::Experiment>&);

}  // namespace rlt

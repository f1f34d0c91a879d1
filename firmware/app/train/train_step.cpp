// One step of learning, for the experiment and the device of this build.
#include "app/train/trained_experiment.h"

namespace rlt {
template StepReport<program::Experiment> train_step(RLT_DEVICE, Training<program::Experiment>&);
}  // namespace rlt

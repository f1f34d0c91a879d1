// The reference's kernels of the shapes that the tests of kernels compare.
#pragma once

#include "kernel_agreement.h"

namespace kernel_agreement {

// Null where there are none of this shape.
const DenseKernels* reference_of(const DenseKernels& device);
const ActivationKernels* reference_of(const ActivationKernels& device);
const OptimizerKernels* reference_of(const OptimizerKernels& device);
const RecurrentKernels* reference_of(const RecurrentKernels& device);

}  // namespace kernel_agreement

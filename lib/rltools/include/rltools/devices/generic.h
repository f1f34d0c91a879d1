// The reference device: every operation is the plain C++ implementation.
#pragma once

#include "rltools/nn/dense.h"
#include "rltools/nn/dense_at_run_time.h"
#include "rltools/nn/optimizer.h"

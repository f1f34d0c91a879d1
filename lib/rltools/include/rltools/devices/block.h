// A block of a GPU's threads, or a loop in its place on a host: what can be shared out is shared
// out among threads, and the rest of the program runs as it stands.
#pragma once

#include "rltools/kernels/block/arrays.h"
#include "rltools/kernels/block/batch_norm.h"
#include "rltools/kernels/block/dense.h"
#include "rltools/kernels/block/gru.h"
#include "rltools/kernels/block/optimizer.h"
#include "rltools/kernels/block/rollout.h"
#include "rltools/kernels/block/rows.h"
#include "rltools/kernels/block/symmetry.h"

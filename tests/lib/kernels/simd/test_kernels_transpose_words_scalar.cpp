// Test: as-firmware all
// kernels/simd/transpose_words.h on a machine without vectors.
#define RLT_VECTOR_BITS 0
#include "transpose_words_agreement.h"

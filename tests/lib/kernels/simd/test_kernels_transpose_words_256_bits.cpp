// Test: as-firmware all
// kernels/simd/transpose_words.h with vectors of at most 256 bits.
#define RLT_VECTOR_BITS 256
#include "transpose_words_agreement.h"

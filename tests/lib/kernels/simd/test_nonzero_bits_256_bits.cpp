// Test: as-firmware all
// kernels/simd/nonzero_bits.h with vectors of at most 256 bits.
#define RLT_VECTOR_BITS 256
#include "nonzero_bits_agreement.h"

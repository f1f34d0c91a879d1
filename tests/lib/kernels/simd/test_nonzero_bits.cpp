// Test: as-firmware
// kernels/simd/nonzero_bits.h with this machine's vectors.
#include "nonzero_bits_agreement.h"

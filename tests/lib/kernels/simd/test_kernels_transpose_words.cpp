// Test: as-firmware
// kernels/simd/transpose_words.h with this machine's vectors.
#include "transpose_words_agreement.h"

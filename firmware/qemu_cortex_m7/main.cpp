// The train application on the emulated Cortex-M7.
#include "app/train/train_program.h"

int main() { rlt::train_program::run(); }

// A program of firmware/build.json on the emulated Cortex-M7.
#include RLT_PROGRAM_HEADER

int main() { rlt::program::run(); }

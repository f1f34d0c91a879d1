// A program of firmware/build.json on an emulated Cortex-M.
#include RLT_PROGRAM_HEADER

int main() { rlt::program::run(); }

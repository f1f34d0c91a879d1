// A program of firmware/build.json on an emulated RISC-V.
#include RLT_PROGRAM_HEADER

int main() { rlt::program::run(); }

// A program of firmware/build.json on the emulated STM32F405.
#include RLT_PROGRAM_HEADER

int main() { rlt::program::run(); }

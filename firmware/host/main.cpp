// A program of firmware/build.json on a process on this machine.
#include RLT_PROGRAM_HEADER

int main() { rlt::program::run(); }

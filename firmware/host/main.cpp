// A program of firmware/build.json on a process on this machine.
#include RLT_PROGRAM_HEADER

#include "host/thread_count.h"

int main() {
  if (!rlt::take_thread_count(rlt::RLT_DEVICE{}, RLT_QUOTE(RLT_DEVICE))) return 2;
  rlt::program::run();
}

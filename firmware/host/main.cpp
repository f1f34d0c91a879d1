// The train application as a process on this machine.
#include "app/train/train_program.h"

int main() {
  rlt::train_program::run();
  return 0;
}

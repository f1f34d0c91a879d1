// The train application on a Teensy 4.1. The core's own main() calls setup() once and then loop()
// for ever.
#include "app/train/train_program.h"

extern "C" void setup();
extern "C" void loop();

void setup() { rlt::train_program::run(); }

void loop() {}

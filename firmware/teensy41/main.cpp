// A program of firmware/build.json on a Teensy 4.1. The core's own main() calls setup() once and
// then loop() for ever.
#include RLT_PROGRAM_HEADER

extern "C" void setup();
extern "C" void loop();

void setup() { rlt::program::run(); }

void loop() {}

// A program of firmware/build.json on an ESP32. The core's task calls setup() once and then loop()
// for ever.
#include RLT_PROGRAM_HEADER

void setup();
void loop();

void setup() { rlt::program::run(); }

void loop() {}

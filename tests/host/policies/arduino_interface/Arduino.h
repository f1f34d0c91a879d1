// What a sketch uses of Arduino, behind the macros of its cores; tests play it.
#pragma once

#include <stdint.h>

#include "arduino_macros.h"

struct TestSerial {
  void begin(unsigned long baud);
  void println(float value);
  void println(const char* text);
};
extern TestSerial Serial;
unsigned long micros();

void setup();
void loop();

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
int analogRead(unsigned char pin);
constexpr unsigned char A0 = 14, A1 = 15, A2 = 16, A3 = 17, A4 = 18, A5 = 19;

void setup();
void loop();

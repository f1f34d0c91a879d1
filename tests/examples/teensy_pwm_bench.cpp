// The Teensy of examples/teensy_pwm: its clock, its potentiometer and its pins. Writes a row for
// each turn of the example's period: reading, time, enable, reverse, duty. From the turn on that
// the second argument says the potentiometer's wire is broken, up to the third's.
#include <Arduino.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

void setup();
void loop();

static uint32_t now_us = 0xffff0000u;  // wraps soon
static double angle_rad = 3.0, velocity_rad_s = 0.0;
static bool is_broken = false;
static int reading = 0, pins[40] = {}, modes[40] = {}, written = 0;
static unsigned read_bits = 10, write_bits = 8;
static float frequency = 0;

void pinMode(uint8_t pin, uint8_t mode) { modes[pin] = mode; }
void digitalWrite(uint8_t pin, uint8_t value) { pins[pin] = value; }
void analogReadResolution(unsigned bits) { read_bits = bits; }
uint32_t analogWriteResolution(uint32_t bits) { return write_bits = bits; }
void analogWriteFrequency(uint8_t, float hertz) { frequency = hertz; }
void analogWrite(uint8_t pin, int value) {
  pins[pin] = value;
  written++;
}
uint32_t micros() { return now_us; }
int analogRead(uint8_t) {
  const double pi = std::acos(-1.0);
  const double turn = std::remainder(angle_rad, 2 * pi) / (2 * pi) + 0.5;  // 0 to 1
  reading = is_broken ? 4095 : static_cast<int>(205 + turn * 3685.999);
  return reading;
}

int main(int, char** arguments) {
  const int turns = std::atoi(arguments[1]), broken_from = std::atoi(arguments[2]);
  const int broken_to = std::atoi(arguments[3]);
  setup();
  std::printf("%u %u %g %d %d %d\n", read_bits, write_bits, static_cast<double>(frequency),
              modes[3], modes[4], pins[4] + pins[2]);
  for (int turn = 0; turn < turns; turn++) {
    is_broken = turn >= broken_from && turn < broken_to;
    const int before = written;
    for (int i = 0; i < 100; i++) {  // 100 loops a period
      loop();
      now_us += 500;
    }
    std::printf("%d %u %d %d %d %d\n", reading, static_cast<unsigned>(now_us - 50000), pins[4],
                pins[3], pins[2], written - before);
    const double torque_nm = pins[4] * 2.0 * pins[2] / 4095 * (pins[3] ? -1 : 1);
    velocity_rad_s += (15.0 * std::sin(angle_rad) + 3.0 * torque_nm) * 0.05;
    velocity_rad_s = std::fmax(-8.0, std::fmin(8.0, velocity_rad_s));
    angle_rad += velocity_rad_s * 0.05;
  }
}

// The part of a robot's firmware that the example needs.
#pragma once

#include <stdint.h>

uint32_t robot_clock_us();                // wraps
uint32_t robot_sensors(float values[3]);  // cos(angle), sin(angle), velocity in rad/s; when taken
void robot_motor(float torque_nm);
void robot_report(const char* text);

void robot_begin();  // once
void robot_loop();   // 20 times a second, or more often

// PJRC's Teensy core (github.com/PaulStoffregen/cores), as a system header: our warnings are not
// for it.
#pragma once
#pragma GCC system_header

// Its headers call vdprintf(), which strict C++17 hides. Include this file before any other.
#define _GNU_SOURCE
#include <Arduino.h>
#include <usb_serial.h>

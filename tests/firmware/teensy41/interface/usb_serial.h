// PJRC's, as far as firmware/teensy41 uses it.
#pragma once

#include <stdint.h>

extern "C" {
int usb_serial_available();
int usb_serial_read(void* buffer, uint32_t size);
int usb_serial_write(const void* buffer, uint32_t size);
}

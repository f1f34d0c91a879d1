// FreeRTOS's, as far as firmware/esp32 uses it.
#pragma once

#include <stdint.h>

typedef unsigned UBaseType_t;
typedef uint32_t TickType_t;

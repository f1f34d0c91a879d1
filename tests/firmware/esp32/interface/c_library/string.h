// What MAVLink's headers call of a C library: Debian has none for Xtensa.
#pragma once

#include <stddef.h>

extern "C" {
void* memcpy(void* destination, const void* source, size_t count);
void* memset(void* destination, int value, size_t count);
int memcmp(const void* a, const void* b, size_t count);
size_t strlen(const char* text);
char* strncpy(char* destination, const char* source, size_t count);
}

// Standard input and output as bytes. Windows has them as lines of text, where a byte 26 ends the
// input.
#pragma once

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>

#include <cstdio>
#endif

namespace rlt {

inline void use_binary_streams() {
#if defined(_WIN32)
  ::_setmode(::_fileno(stdin), _O_BINARY);
  ::_setmode(::_fileno(stdout), _O_BINARY);
#endif
}

}  // namespace rlt

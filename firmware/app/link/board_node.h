// The node that a board is: its transport, and the address that boards/<board>.json gives it
// (docs/protocol.md, "Frames"). Included by the translation units that know the board only.
#pragma once

#include "app/link/mavlink_protocol.h"
#include "app/link/transport.h"
#include "board_api.h"

// A name of the build as text, such as the device's.
#define RLT_QUOTE_TOKENS(x) #x
#define RLT_QUOTE(x) RLT_QUOTE_TOKENS(x)

namespace rlt::link {

inline constexpr Transport kBoardTransport{board::read, board::write};
inline constexpr Address kBoardAddress{RLT_SYSTEM, RLT_COMPONENT};

}  // namespace rlt::link

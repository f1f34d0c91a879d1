// The node that a board is: its transport, and the address that boards/<board>.json gives it
// (docs/protocol.md, "Frames"). Included by the translation units that know the board only.
#pragma once

#include "app/link/mavlink_protocol.h"
#include "app/link/transport.h"
#include "board_api.h"

namespace rlt::link {

inline constexpr Transport kBoardTransport{board::read, board::write};
inline constexpr Address kBoardAddress{RLT_SYSTEM, RLT_COMPONENT};

}  // namespace rlt::link

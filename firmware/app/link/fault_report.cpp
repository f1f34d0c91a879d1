// Tells the host about a fault of the processor.
#include "app/link/board_node.h"
#include "app/link/message_sender.h"

namespace rlt {

void report_fault(const char* text) {
  link::MessageSender sender(link::kBoardTransport, link::kBoardAddress);
  sender.say_text(MAV_SEVERITY_EMERGENCY, text);
}

}  // namespace rlt

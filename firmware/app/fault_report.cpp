// Tells the host about a fault of the processor.
#include "app/message_sender.h"

namespace rlt {

void report_fault(const char* text) {
  link::MessageSender sender;
  sender.say_text(MAV_SEVERITY_EMERGENCY, text);
}

}  // namespace rlt

// A node without services: it says who it is, that it lives and how much of its stack it has used.
#include "app/link/node.h"
#include "app/link/board_node.h"

#define RLT_QUOTE_TOKENS(x) #x
#define RLT_QUOTE(x) RLT_QUOTE_TOKENS(x)

int main() {
  using namespace rlt;
  board::initialize();
  link::MessageSender sender(link::kBoardTransport, link::kBoardAddress);
  link::HeartbeatClock heartbeat;
  link::Node<> node(link::kBoardTransport, link::kBoardAddress,
                    {RLT_BOARD_NAME, RLT_QUOTE(RLT_DEVICE)}, sender, heartbeat);
  for (;;) {
    if (!node.poll()) board::idle();
  }
}

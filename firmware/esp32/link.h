// The serial port that is a board's link: the UART behind a USB bridge (uart_link.cpp), or the
// processor's own USB (usb_link.cpp). Either file also defines board::read() and board::write().
#pragma once

namespace rlt::board {

void begin_link();

}  // namespace rlt::board

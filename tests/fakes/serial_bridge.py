"""A page's serial port that leads to a board here: the page is served with it, and its script puts
a `navigator.serial` in the place of the browser's."""

from __future__ import annotations

import queue
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from rltools_host.boards.transport import Link
from rltools_host.errors import LinkLostError
from rltools_host.web.site import Handler

POLL_S = 0.05
# As Chromium's: one opening at a time, streams that lock, errors by name.
SCRIPT = """
class FakePort {
  readable = null;
  writable = null;
  getInfo() {
    return { usbVendorId: 0x16c0, usbProductId: 0x0483 };
  }
  async setSignals(signals) {
    this.signals = signals;
  }
  async open({ baudRate }) {
    if (this.readable) throw new DOMException("The port is already open.", "InvalidStateError");
    if (!(await fetch("port/open", { method: "POST", body: String(baudRate) })).ok) {
      throw new DOMException("Failed to open serial port.", "NetworkError");
    }
    this.readable = (await fetch("port/read")).body.pipeThrough(new TransformStream({
      flush(controller) {
        controller.error(new DOMException("The device has been lost.", "NetworkError"));
      },
    }));
    this.writable = new WritableStream({
      async write(chunk) {
        const { ok } = await fetch("port/write", { method: "POST", body: chunk });
        if (!ok) throw new DOMException("The device has been lost.", "NetworkError");
      },
    });
  }
  async close() {
    if (this.readable?.locked || this.writable?.locked) throw new TypeError("a stream is locked");
    this.readable = this.writable = null;
    await fetch("port/close", { method: "POST" });
  }
}
const serial = new EventTarget();
serial.requestPort = async () => {
  return new FakePort();
};
Object.defineProperty(navigator, "serial", { value: serial });
"""


class SerialBridge:
    """The port's other end. A board stays on while no page has the port open."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.baud = 0
        self.written = 0  # bytes, to the board
        self._lock = threading.Lock()
        self._reader: queue.Queue[bytes] | None = None  # b"" ends it
        self._pump = threading.Thread()

    def plug(self, link: Link) -> None:
        self.unplug()
        self.link, self.written = link, 0
        self._pump = threading.Thread(target=self._read, args=(link,), daemon=True)
        self._pump.start()

    def unplug(self) -> None:
        """Ends the board, which has its power from this port."""
        link, self.link = self.link, None
        if self._pump.is_alive() and self._pump is not threading.current_thread():
            self._pump.join()
        if link is not None:
            link.close()
        self.release()

    def release(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.put(b"")

    def open(self, baud: int) -> bool:
        with self._lock:
            if self._reader is not None or self.link is None:
                return False
            self.baud, self._reader = baud, queue.Queue()
            return True

    def chunks(self) -> queue.Queue[bytes]:
        assert self._reader is not None
        return self._reader

    def write(self, data: bytes) -> bool:
        link = self.link
        if link is None:
            return False
        self.written += len(data)
        link.write(data)
        return True

    def _read(self, link: Link) -> None:
        while self.link is link:
            try:
                chunk = link.read(POLL_S)
            except LinkLostError:
                self.release()
                return
            with self._lock:
                if chunk and self._reader is not None:
                    self._reader.put(chunk)


class PortHandler(Handler):
    """Serves the page, and the port beside it."""

    def __init__(self, bridge: SerialBridge, *arguments: object, **options: object) -> None:
        self.bridge = bridge
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def do_GET(self) -> None:  # noqa: N802 - as the base calls it
        if self.path != "/port/read":
            super().do_GET()
            return
        chunks = self.bridge.chunks()
        self.send_response(200)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.flush()
        try:
            while chunk := chunks.get():
                self.wfile.write(chunk)
        except OSError:  # the page is gone
            self.bridge.release()

    def do_POST(self) -> None:  # noqa: N802 - as the base calls it
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_good = True
        if self.path == "/port/open":
            is_good = self.bridge.open(int(body))
        elif self.path == "/port/write":
            is_good = self.bridge.write(body)
        elif self.path == "/port/close":
            self.bridge.release()
        self.send_response(200 if is_good else 409)
        self.send_header("Content-Length", "0")
        self.end_headers()


def bridged_server(folder: Path, bridge: SerialBridge) -> ThreadingHTTPServer:
    handler = partial(PortHandler, bridge, directory=str(folder))
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)

// The entry to a board at a serial port: names the browsers that have serial ports, and loads the rest
// (board_panel.js) when somebody wants to connect, since most visitors of the page have no board.
const button = document.getElementById("board-connect");
const status = document.getElementById("board-status");

/** Prepares the button; returns a function to call when the page shows another experiment. `page`
 * is what BoardPanel asks of the page. */
export function prepareBoard(page) {
  let panel = null;
  button.hidden = document.getElementById("board-kind-row").hidden = !navigator.serial;
  if (navigator.serial) status.textContent = "Not connected.";
  else if (!window.isSecureContext)
    status.textContent = "WebSerial needs this page by HTTPS, or from this machine.";
  else
    status.textContent =
      "This browser has no WebSerial. Chrome and Edge have it on computers, and Firefox since 151.";
  button.addEventListener("click", async () => {
    panel ??= new (await import("./board_panel.js")).BoardPanel(page);
    panel.connect();
  });
  return () => panel?.experimentChanged();
}

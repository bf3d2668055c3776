// Events of the server for a page that updates itself. The stream is open while the page is visible: a browser opens six
// connections to a host, which the streams of hidden tabs would occupy.
"use strict";
window.odradekStream = (address, name, take) => {
  let stream = null;
  const close = () => { if (stream) stream.close(); stream = null; };
  const open = () => {
    if (stream || document.hidden) return;
    stream = new EventSource(address());
    stream.addEventListener(name, (message) => take(JSON.parse(message.data)));
  };
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  open();
  return { reopen: () => { close(); open(); } };
};

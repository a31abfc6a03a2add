// Server-sent events from a response's body (HTML Living Standard, section 9.2.6), and bodies of limited length.

/** The maximum characters to keep of a line, and of an event's data. */
const KEPT_MOST = 100_000;

/** Calls `receive` with the text of a body as it arrives, until it ends or `receive` returns false. */
export async function readText(response, receive) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (receive(value) === false) {
      await reader.cancel();
      return;
    }
  }
}

/** Calls `receive` with each event: its type, and its data or the beginning of it. */
export function readEvents(response, receive) {
  let buffer = "";
  let event = { type: "message", data: [], size: 0 };
  return readText(response, (text) => {
    buffer += text;
    const lines = buffer.split(/\r\n|\n|\r(?!$)/);
    buffer = lines.pop().slice(0, KEPT_MOST);
    for (const line of lines) {
      if (line === "") {
        if (event.data.length > 0) receive({ type: event.type, data: event.data.join("\n") });
        event = { type: "message", data: [], size: 0 };
      } else {
        const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (name === "event") event.type = value;
        if (name === "data" && event.size < KEPT_MOST) {
          event.data.push(value.slice(0, KEPT_MOST));
          event.size += value.length + 1;
        }
      }
    }
    return true;
  });
}

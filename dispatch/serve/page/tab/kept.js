// Logs that outlive a reload of the tab: their lines in the browser's own store, by session. Nothing is sent anywhere.

const NAME = "cartridge-kernel-tab";
const MOST = 4;

let opened = null;

function open() {
  opened ??= new Promise((done, fail) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("lines", { keyPath: ["session", "n"] });
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
  return opened;
}

async function inStore(mode, act) {
  const database = await open();
  return new Promise((done, fail) => {
    const transaction = database.transaction("lines", mode);
    const request = act(transaction.objectStore("lines"));
    transaction.oncomplete = () => done(request?.result);
    transaction.onerror = transaction.onabort = () => fail(transaction.error);
  });
}

const all = (session) => IDBKeyRange.bound([session], [session, []]);

/** Keep lines of a session's log behind those that are kept already. */
export function keepLines(session, n, text) {
  return inStore("readwrite", (store) => store.put({ session, n, text }));
}

/** Return the sessions that are kept, the newest first: `{session, text}`; of more than a few the oldest are let go. */
export async function keptLogs() {
  const lines = await inStore("readonly", (store) => store.getAll());
  const found = new Map();
  for (const { session, text } of lines) found.set(session, (found.get(session) ?? "") + text);
  const sessions = [...found].sort(([one], [other]) => (one < other ? 1 : -1)).map(([session, text]) => ({ session, text }));
  await Promise.all(sessions.slice(MOST).map(({ session }) => dropLog(session)));
  return sessions.slice(0, MOST);
}

/** Let a session go. */
export function dropLog(session) {
  return inStore("readwrite", (store) => store.delete(all(session)));
}

/** Offer a log as a file. */
export function saveFile(data, name) {
  const place = URL.createObjectURL(new Blob([data], { type: "application/jsonl" }));
  const link = Object.assign(document.createElement("a"), { href: place, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}

// The run of each experiment that this browser keeps, in IndexedDB: a reload or another address loses
// none. An origin may have other pages, also of this kind in other folders.
const DATABASE = "rlt-web", STORE = "runs";
let opened = null;

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function store(mode) {
  if (!opened) {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opened = done(opening);
  }
  return (await opened).transaction(STORE, mode).objectStore(STORE);
}

const keyOf = (name) => new URL(name, location.href).href;

/** A run is {file, step, values, evaluations}: its /checkpoint.rltc and what that does not state. */
export const keep = async (name, run) => done((await store("readwrite")).put(run, keyOf(name)));
export const drop = async (name) => done((await store("readwrite")).delete(keyOf(name)));
export const kept = async (name) => done((await store("readonly")).get(keyOf(name)));

// Keeps what was opened of the page, so that it works without a network. `rlt web` writes FILES and
// VERSION, a digest of their content: of a new version, the page's own files and what was opened of
// the old one are fetched before it replaces the old. Modules come when they are opened.
const FILES = [];
const VERSION = "";
// An origin may have other pages with caches of their own, also of this kind in other folders.
const OURS = `rlt-web ${self.registration.scope} `;
const CACHE = OURS + VERSION;
const OWN = new Set(FILES.map((file) => new URL(file, self.registration.scope).href));
const isOfPage = (file) => file === "./" || !(file.includes("/") || file.startsWith("flight") && !file.endsWith(".js"));
const plain = (address) => address.replace(/[?#].*/, "");

const ourCaches = async () => (await caches.keys()).filter((name) => name.startsWith(OURS));

self.addEventListener("install", (event) => {
  const fetchAll = async () => {
    const before = new Set();
    for (const name of await ourCaches()) {
      for (const { url } of await (await caches.open(name)).keys()) before.add(plain(url));
    }
    const wanted = FILES.filter((file) => isOfPage(file) || before.has(new URL(file, self.registration.scope).href));
    const cache = await caches.open(CACHE);
    await cache.addAll(wanted.map((file) => new Request(file, { cache: "reload" })));
    await self.skipWaiting();
  };
  event.waitUntil(fetchAll());
});

self.addEventListener("activate", (event) => {
  const dropOld = async () => {
    await Promise.all((await ourCaches()).filter((name) => name !== CACHE).map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(dropOld());
});

// The page names what it has opened: its first visit is before this worker.
self.addEventListener("message", (event) => {
  const keep = async () => {
    const cache = await caches.open(CACHE);
    for (const address of event.data.map(plain)) {
      if (OWN.has(address) && !(await cache.match(address))) await cache.add(address);
    }
  };
  event.waitUntil(keep().catch(() => {}));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const answer = async () => {
    const cache = await caches.open(CACHE);
    return (await cache.match(event.request, { ignoreSearch: true })) ?? fetch(event.request);
  };
  event.respondWith(answer());
});

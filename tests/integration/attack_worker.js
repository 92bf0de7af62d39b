// The service worker of attack.html: fetches what it is told to, with the viewer's cookies if they come along.
self.addEventListener('message', async (m) => {
  const said = [];
  for (const url of m.data) {
    for (const mode of ['cors', 'no-cors']) {
      try {
        const r = await fetch(url, { credentials: 'include', mode });
        said.push(r.type === 'opaque' ? 'opaque' : 'read: ' + (await r.text()));
      } catch (e) {
        said.push('refused: ' + e.name);
      }
    }
  }
  m.ports[0].postMessage(said.join(' '));
});

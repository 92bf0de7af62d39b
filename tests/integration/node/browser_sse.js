// A real browser's EventSource.  usage: browser_sse.js URL EVENTS-PATH [LOGIN-CODE]
// Prints one JSON line per event ({id, data}), per "open" and per "error"; ends with its stdin.
const { chromium } = require('playwright-core');
const fs = require('fs');

const found = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));
const [url, path, code] = process.argv.slice(2);

async function main() {
  const browser = await chromium.launch({ executablePath: found, args: ['--no-sandbox', '--disable-gpu', '--no-proxy-server'] });
  process.stdin.resume();
  process.stdin.on('end', () => browser.close().then(() => process.exit(0)));
  const page = await browser.newPage();
  await page.exposeFunction('tell', (line) => process.stdout.write(line + '\n'));
  await page.goto(url + '/healthz');
  await page.evaluate(async ([path, code]) => {
    if (code) {
      const r = await fetch('/holt/v1/login', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code }) });
      window.tell(JSON.stringify({ login: r.status, readable: document.cookie }));
    }
    const source = new EventSource(path);
    const say = (e) => window.tell(JSON.stringify({ id: e.lastEventId, data: JSON.parse(e.data) }));
    source.onmessage = say;
    source.addEventListener('token.created', say);
    source.onopen = () => window.tell(JSON.stringify({ open: true }));
    source.onerror = () => window.tell(JSON.stringify({ error: source.readyState }));
  }, [path, code]);
}

main().catch((e) => { console.error(e); process.exit(1); });

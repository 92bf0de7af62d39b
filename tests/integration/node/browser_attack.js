// A viewer's browser.  usage: browser_attack.js PLAN (JSON)
// {logins: [URL], victim: LINK, pages: [{open: LINK, url, at}], visits: [{url, headers}], rules}: logs in by each link, opens the
// victim's preview, lets each attacker's page run, goes to each address as if typed; prints one JSON object with what each page got
// and what the viewer can still do.  {rebound: ORIGIN, rules}: a page of that origin, whose name now leads to holtd.
const { chromium } = require('playwright-core');
const fs = require('fs');
const os = require('os');
const path = require('path');

const found = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));
const plan = JSON.parse(process.argv[2]);
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-proxy-server', `--host-resolver-rules=${plan.rules}`];

const as = async (page, url) => page.evaluate(async (u) => {
  const r = await fetch(u);
  return { status: r.status, text: await r.text() };
}, url);

async function logIn(context, link) {
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForFunction(() => document.querySelector('.sidebar'));
  return page;
}

// The link is followed from the dashboard, another site: the strict cookie must be there all the same.
async function follow(from, link) {
  const [page] = await Promise.all([from.waitForEvent('popup'), from.evaluate((u) => { window.open(u, '_blank'); }, link)]);
  await page.waitForURL((u) => !u.pathname.startsWith('/.holt/'));
  await page.waitForLoadState();
  return page;
}

async function attack(context, dashboard, p) {
  const page = p.open ? await follow(dashboard, p.open) : await context.newPage();
  await page.goto(`${p.url}#${encodeURIComponent(JSON.stringify(p.at))}`);
  await page.waitForFunction(() => window.outcome, null, { timeout: 240000 });
  const got = await page.evaluate(() => window.outcome);
  await page.close();
  return got;
}

// What an honest page does at its own origin must work there.
const use = (page) => page.evaluate(async () => {
  const posted = await fetch('/md5', { method: 'POST', body: 'x' }).then((r) => r.text());
  const echo = await new Promise((r, no) => {
    const w = new WebSocket('/ws');
    w.onopen = () => w.send('hello');
    w.onmessage = (m) => r(m.data);
    w.onerror = no;
  });
  const event = await new Promise((r, no) => {
    const s = new EventSource('/events');
    s.onmessage = (m) => { s.close(); r(m.data); };
    s.onerror = no;
  });
  const sent = await fetch('/echo').then((r) => r.text());
  return { posted, echo, event, cookies: document.cookie, sent: /^Cookie: (.*)$/mi.exec(sent)[1] };
});

// The bytes of a sandbox below the API's own origin: is it a page, and does its script run?
async function visit(context, { url, headers }) {
  const page = await context.newPage();
  let download = false, response = null;
  page.on('download', () => { download = true; });
  await page.setExtraHTTPHeaders(headers);
  try { response = await page.goto(url); } catch (e) { await page.waitForTimeout(500); }
  const ran = await page.evaluate(() => window.began === true);
  await page.close();
  return { status: response && response.status(), ran, download };
}

// Whatever it shows, the document is of the rebound origin: what a script of the attacker's page would do there.
async function rebound(context) {
  const page = await context.newPage();
  await page.goto(`${plan.rebound}/healthz`);
  return page.evaluate(async () => {
    const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
    const asked = [['/holt/v1/sandboxes'], ['/holt/v1/sandboxes', post], ['/holt/v1/tokens'], ['/healthz']];
    return Promise.all(asked.map(([u, init]) => fetch(u, init).then((r) => r.status)));
  });
}

async function main() {
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'holt-browser-'));
  const context = await chromium.launchPersistentContext(data, { executablePath: found, args: flags });
  try {
    if (plan.rebound) {
      process.stdout.write(JSON.stringify(await rebound(context)));
      return;
    }
    const dashboards = [];
    for (const link of plan.logins) dashboards.push(await logIn(context, link));
    const victim = await follow(dashboards[0], plan.victim);
    const out = { before: await as(victim, '/seen'), used: await use(victim), pages: [] };
    for (const p of plan.pages) out.pages.push(await attack(context, dashboards[0], p));
    out.visits = [];
    for (const v of plan.visits) out.visits.push(await visit(context, v));
    out.self = [];
    for (const d of dashboards) out.self.push((await as(d, '/holt/v1/tokens/self')).status);
    out.victim = await as(victim, '/seen');
    out.cookies = (await context.cookies()).map(({ name, value, domain, sameSite, httpOnly }) => ({ name, value, domain, sameSite, httpOnly }));
    process.stdout.write(JSON.stringify(out));
  } finally {
    await context.close();
    fs.rmSync(data, { recursive: true, force: true });
  }
}

main().catch((e) => { console.error(e); process.exit(1); });

// A viewer's browser.  usage: browser_attack.js PLAN (JSON)
// {logins: [URL], victim: LINK, pages: [{open: LINK or URL, url, at}], rules}: logs in by each link, opens the victim's preview, then
// lets each attacker's page run; prints one JSON object with what each page got and what the viewer can still do.
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
  await page.waitForFunction(() => /Logged in/.test(document.body.textContent));
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

async function main() {
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'holt-browser-'));
  const context = await chromium.launchPersistentContext(data, { executablePath: found, args: flags });
  try {
    const dashboards = [];
    for (const link of plan.logins) dashboards.push(await logIn(context, link));
    const victim = await follow(dashboards[0], plan.victim);
    const out = { before: await as(victim, '/seen'), pages: [] };
    for (const p of plan.pages) out.pages.push(await attack(context, dashboards[0], p));
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

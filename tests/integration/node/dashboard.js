// The dashboard in a browser.  usage: dashboard.js SCENARIO PLAN (JSON); prints one JSON line per step.
// A step that needs the test to act first prints {"wait": WHAT} and goes on after a line on standard input.
const { chromium } = require('playwright-core');
const fs = require('fs');
const readline = require('readline');

const found = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-proxy-server'];
const [scenario, planText] = process.argv.slice(2);
const plan = JSON.parse(planText);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const say = (value) => console.log(JSON.stringify(value));
const wait = async (what) => { say({ wait: what }); return JSON.parse((await lines.next()).value); };

let browser;
const problems = [];

async function open(link, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.on('console', (m) => m.type() === 'error' && !/Failed to load resource|WebSocket connection|net::ERR/.test(m.text()) && problems.push(m.text()));
  page.on('pageerror', (e) => problems.push(e.message));
  await page.goto(link);
  await page.waitForSelector('.sidebar');
  return page;
}

const go = (page, where) => page.evaluate((h) => { location.hash = h; }, `#/${where}`);
const row = (page, name) => page.locator('.instance-list li', { hasText: name });
const screenText = (page) => page.locator('.xterm-rows').first().innerText();

async function seesText(page, text) {
  await page.waitForFunction((t) => [...document.querySelectorAll('.xterm-rows')].some((e) => e.textContent.includes(t)), text);
}

const scenarios = {
  // The seed's walk: Create Instance, choose, Create, row with its badge, Pane, type, see.
  async walk() {
    const page = await open(plan.login);
    const began = Date.now();
    await page.click('text=+ Create Instance');
    await page.fill('dialog input', 'Not Good');
    const rule = await page.locator('dialog [role=alert]').innerText();
    const refused = await page.locator('dialog button.primary').isDisabled();
    await page.fill('dialog input', plan.name);
    await page.selectOption('dialog select >> nth=0', plan.runtime);
    await page.click('dialog button.primary');
    const made = row(page, plan.name);
    await made.waitFor();
    const badge = await made.locator('.badge').innerText();
    await made.locator('a').click();
    await made.locator('button', { hasText: 'Pane' }).click();
    await page.waitForSelector('.xterm-rows');
    await page.waitForFunction(() => /typing/.test(document.querySelector('.pane-state').textContent));
    await page.keyboard.type('echo sum=$((6*7))\n');
    await seesText(page, 'sum=42');
    say({ rule, refused, badge, ms: Date.now() - began, problems });
  },

  // What instances use: one request for all of them; names instead of ids in the log.
  async load() {
    const page = await open(plan.login);
    const asked = [];
    page.on('request', (r) => /\/stats/.test(r.url()) && asked.push(new URL(r.url()).pathname + new URL(r.url()).search));
    await go(page, 'instances');
    const busy = page.locator('.fixed-row', { hasText: plan.busy });
    await page.waitForFunction((name) => {
      const cells = [...document.querySelectorAll('.fixed-row')].find((r) => r.textContent.includes(name))?.querySelectorAll('td.number');
      return cells && parseInt(cells[0].textContent, 10) > 20;
    }, plan.busy);
    const idle = await page.locator('.fixed-row', { hasText: plan.idle }).locator('td.number').nth(1).innerText();
    await go(page, 'now');
    await page.waitForFunction(() => {
      const figures = [...document.querySelectorAll('.line figcaption')];
      return figures.length === 2 && parseInt(figures[0].querySelector('strong').textContent, 10) > 20;
    });
    const named = await page.locator('.events a', { hasText: plan.busy }).first().innerText();
    await go(page, 'board');
    await page.waitForTimeout(50);
    say({ asked, idle, named, problems });
  },

  // A change: seen, sent for approval, approved by another person in another browser, applied.
  async change() {
    const page = await open(plan.login);
    await go(page, `instances/${plan.box}/changes`);
    await page.getByRole('button', { name: 'added /etc/motd', exact: true }).click();
    const diff = await page.locator('.diff').innerText();
    await page.click('text=Side by side');
    const halves = await page.locator('.diff tr').last().locator('.half').allInnerTexts();
    await go(page, 'changes/playbooks');
    await page.click(`text=${plan.playbook}`);
    await page.waitForFunction(() => document.querySelector('pre.json')?.textContent.includes('hosts:'));
    await page.fill('form.policy input >> nth=0', plan.target);
    await page.fill('form.policy input >> nth=1', 'from the page');
    await page.click('text=Check and ask for approval');
    await page.locator('.page-head .state', { hasText: 'waiting' }).waitFor({ timeout: 90000 });
    const check = await page.locator('.log').first().innerText();
    await wait('unchanged');
    const other = await open(plan.other);
    await go(other, 'changes/rollouts');
    await other.locator('td a', { hasText: plan.playbook }).click();
    await other.locator('.approval .primary').click();
    for (const p of [other, page]) await p.locator('.page-head .state', { hasText: 'succeeded' }).waitFor({ timeout: 90000 });
    await page.waitForFunction(() => /PLAY RECAP/.test([...document.querySelectorAll('.log')].at(-1).innerText));
    say({ diff, halves, check, problems });
  },

  // An instance of a loadout: its steps are shown while they are built.
  async loadout() {
    const page = await open(plan.login);
    await page.click('text=+ Create Instance');
    await page.fill('dialog input', plan.name);
    await page.selectOption('dialog select >> nth=1', `loadout:${plan.loadout}`);
    await page.click('dialog button.primary');
    await page.locator('.steps .state-running, .steps .state-done, .steps .state-cached').first().waitFor();
    const steps = await page.locator('.steps li').allInnerTexts();
    await row(page, plan.name).waitFor();
    say({ steps, problems });
  },

  async life() {
    const page = await open(plan.login);
    const box = row(page, plan.name);
    await box.locator('a').click();
    const seen = [];
    for (const [button, state] of plan.steps) {
      const ended = page.waitForResponse((r) => r.request().method() === 'POST' && /\/(stop|start|restart|pause|resume)$/.test(r.url()));
      await box.locator('button', { hasText: new RegExp(`^${button}$`) }).click();
      await ended;
      await box.locator('.state', { hasText: state }).waitFor();
      seen.push(state);
    }
    await box.locator('button', { hasText: /^Delete$/ }).click();
    const warning = await page.locator('dialog p').innerText();
    await page.locator('dialog button.danger').click();
    await box.waitFor({ state: 'detached' });
    say({ seen, warning, problems });
  },

  // Two people on one terminal, and a daemon that is killed under them.
  async pair() {
    const pages = [await open(plan.login), await open(plan.second)];
    for (const page of pages) {
      await go(page, `instances/${plan.box}/terminal`);
      await page.locator('button', { hasText: plan.words }).click();
      await page.waitForSelector('.xterm-rows');
      await seesText(page, 'line 3');
    }
    const observer = await pages[1].locator('.pane-state').innerText();
    await wait('kill');
    for (const page of pages) await seesText(page, plan.last);
    await pages[0].waitForFunction(() => !/lost/.test(document.querySelector('.pane-state').className));
    const texts = await Promise.all(pages.map((p) => p.evaluate(() => document.querySelector('.xterm-rows').innerText)));
    say({ observer, texts, problems });
  },

  // The wall: every session at a glance, one that starts later too; a click opens its pane.
  async wall() {
    const page = await open(plan.login);
    await go(page, 'terminals/wall');
    const tile = (name) => page.locator('.tile', { hasText: name });
    await tile(plan.first).locator('pre', { hasText: plan.words }).waitFor();
    const markup = await tile(plan.first).locator('pre *').count();
    await wait('second');
    await tile(plan.second).locator('pre', { hasText: 'here too' }).waitFor();
    await wait('kill');
    await tile(plan.first).locator('pre', { hasText: 'after the kill' }).waitFor();
    await tile(plan.second).locator('button').click();
    await seesText(page, 'here too');
    say({ markup, panes: await page.locator('.pane').count(), problems });
  },

  // A task from the form to its artifact, and once more.
  async tasks() {
    const page = await open(plan.login);
    await go(page, 'tasks');
    await page.click('text=Submit a task');
    await page.selectOption('dialog select', 'command');
    await page.fill('dialog input >> nth=0', plan.name);
    await page.locator('dialog label', { hasText: 'Command' }).locator('input').fill(plan.command);
    await page.click('dialog button.primary');
    await page.locator('.page-head .state', { hasText: 'running' }).waitFor();
    await page.locator('.log', { hasText: plan.words }).waitFor();
    await wait('running');
    await page.locator('.page-head .state', { hasText: 'completed' }).waitFor();
    await page.locator('.log-end').waitFor();
    const lines = await page.locator('.log p').allInnerTexts();
    const markup = await page.locator('.log p *').count();
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=made.txt')]);
    const made = fs.readFileSync(await download.path(), 'utf8');
    await page.click('text=Submit again');
    await page.locator('.page-head .state', { hasText: 'running' }).waitFor();
    await page.click('text=Cancel the task');
    await page.locator('dialog button.danger').click();
    await page.locator('.page-head .state', { hasText: 'cancelled' }).waitFor();
    await go(page, 'tasks');
    await page.locator('tbody tr').nth(1).waitFor();
    say({ lines, markup, made, rows: await page.locator('tbody .state').allInnerTexts(), problems });
  },

  // A snapshot, a mistake, the way back, and two forks.
  async snapshots() {
    const page = await open(plan.login);
    await go(page, `instances/${plan.box}/snapshots`);
    await page.fill('input[aria-label="Name of the snapshot"]', 'clean');
    await page.click('text=Take a snapshot');
    await page.locator('tbody tr', { hasText: 'clean' }).waitFor();
    await wait('mistake');
    await page.locator('tbody tr', { hasText: 'clean' }).locator('text=Restore').click();
    const warning = await page.locator('dialog p').innerText();
    await page.locator('dialog button.danger').click();
    await page.locator('.notice', { hasText: 'are back' }).waitFor();
    await page.locator('tbody tr', { hasText: 'automatic' }).waitFor();
    await page.locator('tbody tr', { hasText: 'clean' }).locator('text=Fork').click();
    await page.fill('dialog input >> nth=0', plan.name);
    await page.fill('dialog input[type=number]', '2');
    await page.click('dialog button.primary');
    await row(page, `${plan.name}-1`).waitFor();
    await row(page, `${plan.name}-2`).waitFor();
    say({ warning, problems });
  },

  // The recording of a session that has ended: its end, then its beginning again.
  async replay() {
    const page = await open(plan.login);
    await go(page, 'terminals/recordings');
    await page.locator('tbody tr', { hasText: plan.session }).locator('button').click();
    await page.locator('.replay .xterm-rows').waitFor();
    await seesText(page, plan.last);
    await page.locator('.pane-bar button', { hasText: 'Play' }).waitFor();
    const end = await screenText(page);
    await page.locator('.timeline').fill('0');
    await page.waitForFunction((t) => !document.querySelector('.xterm-rows').textContent.includes(t), plan.last);
    say({ end, start: await screenText(page), problems });
  },

  // A terminal whose picture has drifted is painted again as the server has it.
  async resync() {
    const page = await open(plan.login);
    await go(page, `instances/${plan.box}/terminal`);
    await page.locator('main button', { hasText: plan.words }).click();
    await seesText(page, 'bottom line');
    await page.evaluate(() => { for (const e of document.querySelectorAll('.xterm-rows > div')) e.textContent = 'drifted'; });
    const drifted = await screenText(page);
    await page.locator('button', { hasText: 'Resync' }).click();
    await seesText(page, 'bottom line');
    await page.waitForFunction(() => !document.querySelector('.xterm-rows').textContent.includes('drifted'));
    const rows = await page.evaluate(() => [...document.querySelectorAll('.xterm-rows > div')].map((e) => e.textContent));
    say({ drifted, rows, problems });
  },

  async approve() {
    const page = await open(plan.login);
    const badge = await page.locator('.main-nav .count').innerText();
    await go(page, 'approvals');
    await page.locator('.approval').first().waitFor();
    const count = await page.locator('.approval').count();
    await page.waitForTimeout(350); // a key decides only what was looked at
    await page.keyboard.press('j');
    await page.waitForTimeout(350);
    await page.keyboard.press('a');
    await page.waitForFunction((n) => document.querySelectorAll('.approval').length === n - 1, count);
    await page.locator('.approval .comment').first().fill('not now, please');
    await page.locator('.approval button', { hasText: 'Reject' }).first().click();
    await page.waitForFunction((n) => document.querySelectorAll('.approval').length === n - 2, count);
    await go(page, 'approvals/decided');
    const decided = await page.locator('.approval').allInnerTexts();
    say({ badge, count, decided, problems });
  },

  // What an approved question still permits, taken back.
  async grants() {
    const page = await open(plan.login);
    await go(page, 'approvals/grants');
    const row = page.locator('tbody tr');
    await row.waitFor();
    const words = await row.innerText();
    await row.locator('text=Revoke').click();
    await page.locator('.empty').waitFor();
    say({ words, problems });
  },

  async board() {
    const page = await open(plan.login);
    await go(page, `board/${plan.project}`);
    const card = (title) => page.locator('.task', { hasText: title });
    const column = (status) => page.locator(`.column[data-status=${status}]`);
    await card('first').dragTo(column('ready'));
    await column('ready').locator('.task', { hasText: 'first' }).waitFor();
    await card('second').locator('select').selectOption('in_progress');
    await page.locator('.notice-failed').waitFor();
    const refused = await page.locator('.notice-failed').innerText();
    const where = await column('backlog').locator('.task', { hasText: 'second' }).count();
    await page.check('text=Lanes by agent');
    const lanes = await page.locator('.lane h2').allInnerTexts();
    say({ refused, where, lanes, problems });
  },

  async agents() {
    const page = await open(plan.login);
    await go(page, 'agents');
    const line = page.locator('tr', { hasText: plan.agent });
    await line.locator('select').selectOption('advisory');
    await line.locator('button', { hasText: 'Pause' }).click();
    await line.locator('.state-paused').waitFor();
    await line.locator('button', { hasText: 'Resume' }).click();
    await line.locator('button', { hasText: 'Pause' }).waitFor();
    await line.locator('button', { hasText: 'Revoke' }).click();
    await page.locator('dialog button.danger').click();
    await line.locator('.state-revoked').waitFor();
    await go(page, 'agents/messages');
    await page.locator('.graph text', { hasText: plan.agent }).first().waitFor();
    const feed = await page.locator('.feed li').first().innerText();
    say({ feed, problems });
  },

  // An observer sees no button that the server would refuse.
  async observe() {
    const page = await open(plan.login);
    await row(page, plan.name).locator('a').click();
    await page.waitForSelector('main .tabs');
    const buttons = await page.locator('main button, .instance-list button').allInnerTexts();
    const create = await page.locator('text=+ Create Instance').count();
    say({ buttons, create, problems });
  },

  // Text from sandboxes and agents in every place of the page: it stays text.
  async hostile() {
    const page = await open(plan.login);
    for (const where of plan.places) {
      await go(page, where);
      await page.waitForTimeout(400);
    }
    await go(page, `instances/${plan.box}/terminal`);
    await page.locator('main button', { hasText: 'printf' }).click();
    await seesText(page, 'end of tricks');
    const title = await page.title();
    await go(page, `instances/${plan.box}/commands`);
    await page.locator('.commands button.quiet').last().click();
    await page.locator('.output pre').first().waitFor();
    const ran = await page.evaluate(() => [window.pwned, document.querySelectorAll('main img, main iframe, main script').length]);
    say({ ran, title, problems });
  },

  // Every page in both themes: what axe finds.
  async axe() {
    const found = {};
    for (const colorScheme of ['dark', 'light']) {
      const page = await open(plan[colorScheme], { colorScheme, bypassCSP: true });
      for (const where of plan.places) {
        await go(page, where);
        await page.waitForTimeout(500);
        await page.addScriptTag({ path: require.resolve('axe-core/axe.min.js') });
        const result = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }));
        const bad = result.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 160)}`);
        if (bad.length) found[`${colorScheme} ${where}`] = bad;
        if (plan.shots) await page.screenshot({ path: `${plan.shots}/${where.replace(/sb_\w+/, 'instance').replaceAll('/', '-')}-${colorScheme}.png` });
      }
    }
    say({ found, problems });
  },
};

(async () => {
  browser = await chromium.launch({ executablePath: found, args: flags });
  try {
    await scenarios[scenario]();
  } finally {
    await browser.close();
  }
  process.exit(0);
})().catch((e) => {
  console.error(e);
  process.exit(1);
});

// A client of agentic-sandbox's WebSocket by the ws package.  usage: agentic_watch.js URL TOKEN AGENT; it starts a shell
// in the agent, types "echo node-$((40+2))", and ends once it has seen the result.
const WebSocket = require('ws');
const [url, token, agent] = process.argv.slice(2);
const ws = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` } });
let output = '';

const say = (m) => ws.send(JSON.stringify(m));
ws.on('message', (data) => {
  const m = JSON.parse(data);
  if (m.type === 'server_hello') say({ type: 'start_shell', agent_id: agent });
  if (m.type === 'shell_started') say({ type: 'send_input', agent_id: agent, command_id: m.command_id, data: 'echo node-$((40+2))\n' });
  if (m.type === 'output') output += m.data;
  if (output.includes('node-42')) {
    console.log('seen');
    ws.close();
  }
});
ws.on('error', (e) => { console.log(String(e)); process.exit(1); });
setTimeout(() => { console.log(output); process.exit(1); }, 25000).unref();

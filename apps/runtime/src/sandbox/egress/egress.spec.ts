import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { curatedModules } from '../curated-modules.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import { jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import { defaultEgressLimits } from './egress-budget.js';
import { startMockInternet, type MockInternet } from './mock-internet-for-tests.js';

// Everything in one process: only the first of them pays for the libraries
describe('the way out of a component', () => {
  let internet: MockInternet;
  let sandbox: ProcessSandbox;
  beforeAll(async () => {
    internet = await startMockInternet();
    sandbox = await startTestSandbox({
      allowPrivateHosts: internet.allowed,
      lookup: internet.lookup,
      trustedCa: internet.ca,
      modules: curatedModules,
      egress: { ...defaultEgressLimits, headMs: 60_000, connectMs: 60_000 },
      limits: { cpuMs: 60_000, silenceCpuMs: 20_000 },
    });
  });
  afterAll(async () => {
    await sandbox.close();
    internet.close();
  });

  /** The value of the expression inside a component, or the code of the error that it threw. */
  const inComponent = async (imports: string, expression: string): Promise<unknown> => {
    const code = `${imports}
      export default { name: "n", async run({ H, S, ports }) {
        const get = (m, u, o = {}) => new Promise((resolve, reject) => {
          const q = m.request(u, o, (s) => { let b = ""; s.on("data", (d) => (b += d)); s.on("end", () => resolve(b)) });
          q.on("error", reject); q.end(o.body);
        });
        try { this.$emit(await (async () => (${expression}))()) } catch (e) { this.$emit("failed " + (e.code ?? e.cause?.code ?? e.name + ": " + e.message)) }
      } }`;
    const { http, https, http2, greeter, forbidden } = internet;
    const event = JSON.stringify({
      H: `http://api.test:${http}`,
      S: `https://api.test:${https}`,
      ports: { http, https, http2, greeter, forbidden },
    });
    const outcome = await sandbox.run(jobOf(code, { event }));
    if (outcome.error) throw new Error(`${outcome.error.message}\n${outcome.error.stack}`);
    return JSON.parse(outcome.emits[0]!.event);
  };
  const ok = expect.objectContaining({ ok: true });

  it('does not log the credentials of a request that @pipedream/platform prints', async () => {
    const code = `import { axios } from "@pipedream/platform";
      export default { name: "n", run: ({ url }) =>
        axios({}, { url, debug: true, headers: { Authorization: "Bearer token-1" }, auth: { username: "u", password: "token-2" } }) }`;
    const { logs, error } = await sandbox.run(jobOf(code, { event: JSON.stringify({ url: `http://api.test:${internet.http}/pd` }) }));
    expect(error).toBeNull();
    expect(logs[0]?.message).toContain('"Authorization": "••••••••"');
    expect(JSON.stringify(logs)).not.toMatch(/token-[12]/);
  });

  it.each<[string, string, string, unknown]>([
    ['fetch', '', '(await fetch(H + "/f")).json()', ok],
    ['fetch over TLS', '', '(await fetch(S + "/f")).json()', ok],
    ['fetch of 1 MB', '', '(await (await fetch(S, { method: "POST", body: "x".repeat(1e6) })).json()).bytes', 1_000_000],
    ['http.request', 'import http from "http"', 'JSON.parse(await get(http, H + "/r"))', ok],
    ['https.request', 'import https from "https"', 'JSON.parse(await get(https, S + "/r"))', ok],
    [
      'https with a keep-alive agent',
      'import https from "https"',
      'await (async () => { const agent = new https.Agent({ keepAlive: true }); await get(https, S, { agent }); return JSON.parse(await get(https, S, { agent })) })()',
      ok,
    ],
    ['axios', 'import axios from "axios"', '(await axios.get(H + "/a")).data', ok],
    ['axios over TLS', 'import axios from "axios"', '(await axios.post(S + "/a", { a: 1 })).data', ok],
    [
      'axios as a stream',
      'import axios from "axios"',
      'await (async () => { let n = 0; for await (const c of (await axios.get(H, { responseType: "stream" })).data) n += c.length; return n > 20 })()',
      true,
    ],
    ['@pipedream/platform axios', 'import { axios } from "@pipedream/platform"', 'await axios({}, { url: S + "/pd" })', ok],
    ['node-fetch', 'import fetch2 from "node-fetch"', '(await fetch2(H + "/n")).json()', ok],
    ['node-fetch over TLS', 'import fetch2 from "node-fetch"', '(await fetch2(S + "/n")).json()', ok],
    ['rss-parser', 'import Parser from "rss-parser"', '(await new Parser().parseURL(H + "/rss")).items.length', 3],
    [
      'net.connect',
      'import net from "net"',
      'await new Promise((r, j) => { const s = net.connect(ports.http, "api.test", () => s.write("GET / HTTP/1.0\\r\\n\\r\\n")); let b = ""; s.on("data", (d) => (b += d)).on("end", () => r(b.slice(0, 12))).on("error", j) })',
      'HTTP/1.1 200',
    ],
    [
      'new Socket().connect',
      'import net from "net"',
      'await new Promise((r, j) => { const s = new net.Socket(); s.connect({ port: ports.http, host: "127.0.0.1" }); s.write("GET / HTTP/1.0\\r\\n\\r\\n"); let b = ""; s.on("data", (d) => (b += d)).on("end", () => r(b.slice(0, 12))).on("error", j) })',
      'HTTP/1.1 200',
    ],
    [
      'a server that speaks first',
      'import net from "net"',
      'await new Promise((r, j) => { const s = net.connect(ports.greeter, "api.test"); let b = ""; s.on("data", (d) => { b += d; if (b.includes("hello") && !b.includes("got")) s.write("x"); if (b.includes("got x")) { s.destroy(); r(b) } }).on("error", j) })',
      '220 hello\r\ngot x',
    ],
    [
      'tls.connect',
      'import tls from "tls"',
      'await new Promise((r, j) => { const s = tls.connect({ host: "api.test", port: ports.https, servername: "api.test" }, () => { r([s.authorized, s.getProtocol()]); s.end() }).on("error", j) })',
      [true, 'TLSv1.3'],
    ],
    [
      'tls.connect over a socket',
      'import tls from "tls"; import net from "net"',
      'await new Promise((r, j) => { const n = net.connect(ports.https, "api.test", () => { const s = tls.connect({ socket: n, servername: "api.test" }, () => { r(s.authorized); s.end() }).on("error", j) }) })',
      true,
    ],
    [
      'http2',
      'import http2 from "http2"',
      'await new Promise((r, j) => { const c = http2.connect("https://api.test:" + ports.http2).on("error", j); const q = c.request({ ":path": "/" }); let b = ""; q.on("data", (d) => (b += d)).on("end", () => { c.close(); r(b) }) })',
      'over http2',
    ],
    [
      'a WebSocket',
      '',
      'await new Promise((r) => { const w = new WebSocket(H.replace("http", "ws")); w.onerror = () => r("failed"); w.onopen = () => r("open") })',
      'open',
    ],
    [
      '100 requests at a time with axios',
      'import axios from "axios"',
      '(await Promise.all(Array.from({ length: 100 }, () => axios.get(H)))).length',
      100,
    ],
    [
      '100 requests at a time with fetch over TLS',
      '',
      '(await Promise.all(Array.from({ length: 100 }, async () => (await fetch(S)).text()))).length',
      100,
    ],
    [
      'an upload as a stream',
      '',
      '(await (await fetch(S, { method: "POST", duplex: "half", body: new ReadableStream({ n: 0, pull(c) { this.n++ < 80 ? c.enqueue(new Uint8Array(65536)) : c.close() } }) })).json()).bytes',
      80 * 65536,
    ],
    [
      'a download of 40 MB',
      '',
      'await (async () => { let n = 0; for await (const c of (await fetch(H + "/40mb")).body) n += c.length; return n >> 20 })()',
      40,
    ],
    [
      'a stream that is given up',
      'import axios from "axios"',
      'await (async () => { const r = await axios.get(H + "/40mb", { responseType: "stream" }); await new Promise((z) => setTimeout(z, 20)); r.data.destroy(); return (await axios.get(H)).data })()',
      ok,
    ],
    [
      'one kept-alive connection for five requests',
      'import http from "http"',
      'await (async () => { const agent = new http.Agent({ keepAlive: true, maxSockets: 1 }); const sockets = new Set(); for (let i = 0; i < 5; i++) await new Promise((r, j) => http.get(H, { agent }, (s) => { s.resume(); s.on("end", r); sockets.add(s.socket) }).on("error", j)); agent.destroy(); return sockets.size })()',
      1,
    ],
    [
      'socket options',
      'import net from "net"',
      'await new Promise((r, j) => { const s = net.connect(ports.http, "api.test", () => { s.setNoDelay(true).setKeepAlive(true, 1000).unref().ref(); r([s.connecting, s.readyState]); s.destroy() }).on("error", j) })',
      [false, 'open'],
    ],
  ])('works with %s', async (_, imports, expression, expected) => {
    expect(await inComponent(imports, expression)).toEqual(expected);
  });

  it.each<[string, string, string, string]>([
    ['a port of this machine', '', 'await fetch("http://127.0.0.1:" + ports.forbidden)', 'failed EACCES'],
    ['a name that leads to this machine', '', 'await fetch("http://forbidden.test:" + ports.forbidden)', 'failed EACCES'],
    ['cloud metadata', '', 'await fetch("http://169.254.169.254/")', 'failed EACCES'],
    ['a redirect to cloud metadata', '', 'await fetch(H + "/to-metadata")', 'failed EACCES'],
    ['a redirect to this machine, with axios', 'import axios from "axios"', 'await axios.get(H + "/to-loopback")', 'failed EACCES'],
    ['an unknown name', 'import axios from "axios"', 'await axios.get("http://nope.invalid/")', 'failed ENOTFOUND'],
    [
      'a unix socket',
      'import net from "net"',
      'await new Promise((r, j) => net.connect("/exchange/s").on("error", j).on("connect", r))',
      'failed EACCES',
    ],
    [
      'a certificate for another name',
      'import https from "https"',
      'await get(https, "https://127.0.0.1:" + ports.https)',
      'failed ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    ['a timeout of the component’s own', '', 'await (await fetch(H + "/slow", { signal: AbortSignal.timeout(200) })).text()', 'failed 23'],
    ['a timeout of axios', 'import axios from "axios"', 'await axios.get(H + "/never", { timeout: 200 })', 'failed ECONNABORTED'],
  ])('is closed for %s', async (_, imports, expression, expected) => {
    expect(await inComponent(imports, expression)).toBe(expected);
  });

  it('never reached a forbidden server', () => {
    expect(internet.forbiddenConnections()).toBe(0);
  });

  it('reports the address and the reason to the author in the error message', async () => {
    const code =
      'export default { name: "n", async run() { await fetch("http://10.0.0.1/").catch((e) => { console.log(e.message); throw e }) } }';
    const { logs, error } = await sandbox.run(jobOf(code));
    const message = 'fetch failed: connect EACCES 10.0.0.1:80: 10.0.0.1 may not be called: it is not a public address';
    expect(error).toMatchObject({ code: 'EACCES', message, stack: expect.stringContaining(`TypeError: ${message}\n`) });
    expect(logs).toMatchObject([{ message }]);
  });

  it('leaves the message of a passing failure of fetch as it is, because libraries know it by its text', async () => {
    expect(await inComponent('', 'await fetch("http://nope.invalid/").catch(({ message }) => message)')).toBe('fetch failed');
  });
});

describe('the connections of an account', () => {
  let internet: MockInternet;
  let sandbox: ProcessSandbox;
  beforeAll(async () => {
    internet = await startMockInternet();
    sandbox = await startTestSandbox({
      allowPrivateHosts: internet.allowed,
      lookup: internet.lookup,
      egress: { ...defaultEgressLimits, perMinute: 8 },
    });
  }, 30_000);
  afterAll(async () => {
    await sandbox.close();
    internet.close();
  });

  it('are counted over its processes: a crash gives it no new ones', async () => {
    const call =
      'const n = new (require("http").Agent)({ keepAlive: false }); const call = () => new Promise((resolve) => { require("http").get({ host: "api.test", port, agent: n }, (r) => r.resume().on("end", () => resolve("ok"))).on("error", (e) => resolve(e.code)) });';
    const run = (accountId: string, body: string) =>
      sandbox.run(
        jobOf(`module.exports = { name: "n", async run({ port }) { ${call} ${body} } }`, {
          accountId,
          event: JSON.stringify({ port: internet.http }),
        }),
      );
    const eight = 'for (let i = 0; i < 8; i++) this.$emit(await call());';
    const first = await run(
      'u_hostile',
      `${eight} await new Promise((r) => setTimeout(r, 20)); const a = []; for (;;) a.push(Buffer.alloc(1 << 24, 1))`,
    );
    expect(first.emits.map(({ event }) => event)).toEqual(Array.from({ length: 8 }, () => '"ok"'));
    expect(first.status).toBe('memory');
    // The time since may have brought one back, but not seven
    const second = await run('u_hostile', eight);
    expect(second.emits.filter(({ event }) => event === '"EMFILE"').length).toBeGreaterThan(0);
    const other = await run('u_other', eight);
    expect(other.emits.map(({ event }) => event)).toEqual(Array.from({ length: 8 }, () => '"ok"'));
  }, 60_000);

  it('are refused with one message, however many there are', async () => {
    const code = `const net = require("net");
      const outcome = (socket) => new Promise((resolve) => socket.on("connect", () => resolve("ok")).on("error", (error) => resolve(error.message)));
      module.exports = { name: "n", async run({ port }) {
        const sockets = Array.from({ length: 300 }, () => net.connect(port, "api.test"));
        this.$emit([...new Set(await Promise.all(sockets.map(outcome)))].sort());
      } }`;
    const { http: port } = internet;
    const { emits } = await sandbox.run(jobOf(code, { accountId: 'u_floods', event: JSON.stringify({ port }) }));
    expect(JSON.parse(emits[0]!.event)).toEqual([`connect EMFILE api.test:${port}: too many connections`, 'ok']);
  });
});

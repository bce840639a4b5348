/**
 * Hostile components. Each body is the `run` of one, and calls `breach` when it reaches something that it must not. They have the original `connect` and
 * all of `process`, because they test the jail and the parent, not the guest's error messages.
 */
export interface Attack {
  group: string;
  name: string;
  body: string;
  /** Whether rungs without namespaces cannot contain it, as documented */
  needsNamespaces: boolean;
  /** Whether it also breaks the account's next run: components of one account share a process */
  spoilsItself: boolean;
}

/** The event that an attack receives. */
export interface Targets {
  parentPid: number;
  /** A process that does not belong to the attack */
  otherPid: number;
  /** A TCP server on loopback, and the unix sockets beside it */
  port: number;
  unixSocket: string;
  abstractSocket: string;
  /** A store and another server, on an address that the operator allows */
  storePort: number;
  publicStorePort: number;
  /** The mock internet's plain HTTP port */
  httpPort: number;
  hostname: string;
  projectFile: string;
}

const groups: Record<string, Record<string, string>> = {
  files: {
    'reads /etc/passwd': `await read('/etc/passwd')`,
    'reads /etc/shadow': `await read('/etc/shadow')`,
    'reads the project': `await read(event.projectFile)`,
    'climbs out of its folder': `await read('/runner/../etc/passwd'); await read('/runner/node_modules/../../etc/passwd')`,
    'hides the path in a Buffer or URL': `await read(Buffer.from('/etc/passwd')); await read(new URL('file:///etc/passwd')); Buffer.prototype.utf8Write = () => 0; await read(Buffer.from('/etc/passwd'))`,
    'lists the root': `await attempt(() => { const names = fs.readdirSync('/'); if (names.includes('home') || names.includes('root')) breach(names) })`,
    'copies a folder': `await attempt(async () => breach((await fs.promises.readFile('/etc/passwd')).length)); await attempt(() => { fs.cpSync('/etc', '/tmp/etc', { recursive: true }); if (fs.existsSync('/tmp/etc/passwd')) breach('copied') })`,
    'makes symbolic links': `await attempt(() => { fs.symlinkSync('/etc/passwd', '/tmp/l'); breach(fs.readFileSync('/tmp/l').length) }); await attempt(() => { fs.symlinkSync('../../../etc/passwd', '/tmp/m'); breach(fs.readFileSync('/tmp/m').length) })`,
    'makes a hard link': `await attempt(() => { fs.linkSync('/etc/passwd', '/tmp/h'); breach(fs.readFileSync('/tmp/h').length) })`,
    'writes outside of its folder': `for (const path of ['/x', '/etc/x', '/var/tmp/sluice-attack', '/runner/x', '/runner/runner.cjs', '/bin/node', '/exchange/x']) await attempt(() => { fs.writeFileSync(path, 'x'); breach(path) })`,
    'fills its folder': `try { for (let i = 0; ; i++) fs.writeFileSync('/tmp/f' + i, Buffer.alloc(4 << 20)) } catch (e) { this.$emit('denied ' + e.code) }`,
    'fills it with small files': `try { for (let i = 0; i < 2e5; i++) fs.writeFileSync('/tmp/i' + i, '') } catch (e) { this.$emit('denied ' + e.code) }`,
    'opens files without end': `try { for (;;) fs.openSync('/runner/runner.cjs') } catch (e) { this.$emit('denied ' + e.code) }`,
    'writes through SQLite': `const { DatabaseSync } = builtin('node:sqlite'), exchange = egressPath.replace(/\\/[^/]*$/, ''); for (const path of [exchange + '/x.db', '/runner/x.db', '/var/tmp/sluice-attack.db', '/x.db']) { const d = new DatabaseSync(':memory:'); await attempt(() => { d.exec("ATTACH '" + path + "' AS x; CREATE TABLE x.t (a); INSERT INTO x.t VALUES (1)"); breach(path) }); await attempt(() => { d.exec("CREATE TABLE t (a); VACUUM INTO '" + path + "2'"); breach(path) }) }`,
    'reads through SQLite': `const { DatabaseSync } = builtin('node:sqlite'); for (const path of ['/etc/passwd', '/proc/' + process.ppid + '/environ', '/proc/' + event.parentPid + '/environ', event.projectFile]) { const d = new DatabaseSync(':memory:'); await attempt(() => { try { d.exec("ATTACH 'file:" + path + "?mode=ro' AS x; SELECT * FROM x.sqlite_master"); breach(path) } catch (e) { if (/not a database|malformed/.test(e.message)) breach('opened ' + path); throw e } }) }`,
    'loads a library through SQLite': `await attempt(() => { const { DatabaseSync } = builtin('node:sqlite'); const d = new DatabaseSync('/tmp/x.db', { allowExtension: true }); d.loadExtension('/lib/x86_64-linux-gnu/libm.so.6'); breach('loaded') })`,
  },
  'other processes': {
    'reads their environment': `await read('/proc/' + event.parentPid + '/environ'); await read('/proc/1/environ')`,
    'lists them': `await attempt(() => { const pids = fs.readdirSync('/proc').filter(Number); if (pids.length > 1) breach(pids.length) })`,
    'opens its own memory': `await attempt(() => { fs.openSync('/proc/self/mem', 'r+'); breach('open') })`,
    'goes through /proc/self/root': `await read('/proc/self/root/etc/passwd')`,
    'reads the environment': `if (process.env.SECRET) breach(process.env.SECRET); const report = process.report?.getReport?.(); if (report?.environmentVariables?.SECRET) breach('report')`,
    'looks for interfaces': `const names = Object.keys((await attempt(() => os.networkInterfaces())) || {}); if (names.some((name) => name !== 'lo')) breach('interfaces ' + names)`,
    'looks for the host name': `if (os.hostname() === event.hostname) breach('host name')`,
    'signals the parent': `await attempt(() => { process.kill(event.parentPid, 'SIGWINCH') })`,
    'signals its own parent': `await attempt(() => { process.kill(process.ppid, 'SIGWINCH') })`,
    'asks who can be signalled': `await attempt(() => { process.kill(event.parentPid, 0); breach('the parent') }); await attempt(() => { process.kill(event.otherPid, 0); breach('another process') })`,
    'opens the parent’s inspector': `await attempt(() => { process._debugProcess(event.parentPid); breach('debugged') })`,
  },
  'children and code': {
    'starts a shell': `await attempt(() => { const r = children.spawnSync('/bin/sh', ['-c', 'id']); if (r.error) throw r.error; breach(r.stdout) })`,
    'starts node': `await attempt(() => { const r = children.spawnSync(process.execPath, ['-p', '1+1']); if (r.error) throw r.error; if (r.status === 0) breach(r.stdout) })`,
    'forks a cluster': `await attempt(() => { builtin('cluster').fork(); breach('forked') })`,
    'becomes another program': `await attempt(() => { process.execve(process.execPath, ['node', '-e', 'require("fs").writeSync(3, "pwned")'], {}) })`,
    'is a fork bomb': `await attempt(() => { let n = 0; for (let i = 0; i < 200; i++) { const p = children.spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e3)'], { stdio: 'ignore', detached: true }); p.on('error', () => {}); if (p.pid) n++ } if (n > 40) breach(n + ' processes') })`,
    'starts a worker': `await attempt(() => { new (builtin('worker_threads').Worker)('for (;;);', { eval: true }); breach('worker') })`,
    'opens an inspector': `await attempt(() => { builtin('inspector').open(0, '127.0.0.1'); breach('open') }); await attempt(() => { const s = new (builtin('inspector').Session)(); s.connect(); breach('session') })`,
    'takes internal bindings': `await attempt(() => { breach(Object.keys(process.binding('spawn_sync'))) }); await attempt(() => breach(Object.keys(process._linkedBinding('x'))))`,
    'loads native code': `await attempt(() => { process.dlopen({ exports: {} }, '/lib/x86_64-linux-gnu/libm.so.6'); breach('loaded') })`,
    'uses WASI': `await attempt(() => { new (builtin('wasi').WASI)({ version: 'preview1', preopens: { '/': '/' } }); breach('wasi') })`,
    'registers module hooks': `builtin('module').registerHooks({ load() { return { format: 'module', source: 'export default { run() {} }', shortCircuit: true } } })`,
  },
  'its own end': {
    'becomes root': `await attempt(() => { process.setuid(0); fs.readFileSync('/etc/shadow'); breach('root') })`,
    aborts: `process.abort()`,
    exits: `process.exit(0)`,
    'exits for real': `process.reallyExit(0)`,
    'kills itself': `process.kill(process.pid, 'SIGKILL'); for (;;);`,
    'changes the flags of V8': `v8.setFlagsFromString('--max-old-space-size=4000'); breach('changed')`,
    'overflows the native stack': `v8.setFlagsFromString('--stack-size=60000'); (function f() { f() })()`,
    'breaks with a V8 native': `v8.setFlagsFromString('--allow-natives-syntax'); new Function('%SystemBreak()')()`,
    'writes a heap snapshot': `await attempt(() => { v8.writeHeapSnapshot('/var/tmp/sluice-attack-heap'); breach('written') }); for (let i = 0; i < 3; i++) v8.getHeapSnapshot().read()`,
    'writes a report': `await attempt(() => { const file = process.report.writeReport('/var/tmp/sluice-attack-report.json'); if (file) breach(file) })`,
  },
  time: {
    loops: `for (;;);`,
    'loops after an await': `await 1; for (;;);`,
    'loops in microtasks': `const f = () => Promise.resolve().then(f); f(); await never`,
    'loops in nextTick': `const f = () => process.nextTick(f); f(); await never`,
    'keeps busy turn by turn': `const f = () => { setImmediate(f); const t = Date.now(); while (Date.now() - t < 20); }; f(); await never`,
    'never ends': `await never`,
    'loops after its end': `setTimeout(() => { for (;;); }, 50)`,
    'hangs in a regular expression': `/^(a+)+$/.test('a'.repeat(40) + 'b')`,
    'hangs in native code': `Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)`,
    'waits for ever': `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
    'hangs in crypto': `builtin('crypto').pbkdf2Sync('x', 'y', 1e9, 64, 'sha512')`,
    'burns the thread pool': `for (let i = 0; i < 1000; i++) builtin('crypto').pbkdf2('x', 'y', 1e7, 64, 'sha512', () => {}); await never`,
    'makes a million timers': `for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e3); await new Promise((r) => setTimeout(r, 500))`,
    'replies to pings from a loop': `const m = framed({ t: 'pong', n: 1 }); for (;;) try { fs.writeSync(3, m) } catch {}`,
  },
  memory: {
    arrays: `const a = []; for (;;) a.push(new Array(1e6).fill(1))`,
    strings: `let s = 'xxxxxxxxxxxx'; const a = []; for (;;) { s = s.length < 1e8 ? s + s : s; a.push(Buffer.from(s).toString()) }`,
    buffers: `const a = []; for (;;) a.push(Buffer.alloc(1 << 24, 1))`,
    'buffers in turns': `const a = []; for (;;) { a.push(Buffer.alloc(1 << 22, 1)); await new Promise((r) => setTimeout(r, 1)) }`,
    'a map': `const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })`,
    'a set of strings': `const m = new Set(); for (let i = 0; ; i++) m.add('k' + i)`,
    'shared buffers': `const a = []; for (;;) { const s = new SharedArrayBuffer(1 << 26); new Uint8Array(s).fill(1); a.push(s) }`,
    'resizable buffers': `const a = []; for (;;) { const s = new ArrayBuffer(1, { maxByteLength: 1e9 }); a.push(s); s.resize(1e8); new Uint8Array(s).fill(1) }`,
    WebAssembly: `const a = []; for (;;) { const m = new WebAssembly.Memory({ initial: 1000 }); new Uint8Array(m.buffer).fill(1); a.push(m) }`,
    'one large buffer': `Buffer.alloc(1e10, 1)`,
    'a string in pieces': `'x'.padEnd(5e8).split('')`,
    recursion: `(function f() { f() })()`,
    decompression: `const zlib = builtin('zlib'); const z = zlib.gzipSync(Buffer.alloc(1e8)); const a = []; for (;;) a.push(zlib.gunzipSync(z))`,
  },
  output: {
    'emits a million times': `let n = 0; try { for (; n < 1e6; n++) this.$emit({ n }) } catch (e) { throw new Error('stopped at ' + n + ': ' + e.message) }`,
    'emits 100 MB': `this.$emit('x'.repeat(1e8))`,
    'emits a circle': `const o = {}; o.o = o; this.$emit(o)`,
    'emits a BigInt': `this.$emit({ a: 1n })`,
    'emits a getter that throws': `this.$emit({ get a() { throw new Error('g') } })`,
    'emits a proxy': `this.$emit(new Proxy({}, { ownKeys() { throw 1 }, get() { throw 2 } }))`,
    'emits an endless proxy': `this.$emit(new Proxy([], { get: (t, k) => (k === 'length' ? 2 ** 32 : k === 'toJSON' ? undefined : 1) }))`,
    'emits a toJSON bomb': `const o = { toJSON() { return [{ toJSON: o.toJSON }, { toJSON: o.toJSON }] } }; this.$emit(o)`,
    'emits __proto__': `this.$emit(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'), { id: 'a', __proto__: { x: 1 } })`,
    'emits depth': `let s = '['.repeat(2e5) + ']'.repeat(2e5); this.$emit(JSON.parse(s))`,
    'emits odd metadata': `this.$emit({ a: 1 }, { id: {}, name: [], ts: NaN, summary: { toString() { return 'x'.repeat(1e7) } } }); this.$emit(undefined); this.$emit(() => 1)`,
    'logs a million lines': `for (let i = 0; i < 1e6; i++) console.log(i, 'x'.repeat(1000))`,
    'logs 100 MB': `console.log('x'.repeat(1e8))`,
    'logs odd things': `console.log(new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } }), { [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('i') } }, Symbol('x'), 1n)`,
    'responds without end': `for (let i = 0; i < 1e5; i++) this.http.respond({ status: 200, body: 'x'.repeat(1e5) })`,
    'responds 100 MB': `this.http.respond({ status: 200, body: 'x'.repeat(1e8) })`,
    'stores 100 MB': `for (let i = 0; i < 100; i++) this.db.set('k' + i, 'x'.repeat(1e6))`,
    'removes 400 000 keys': `for (let i = 0; i < 4e5; i++) this.db.set('k' + i, undefined)`,
    'stores __proto__': `this.db.set('__proto__', { a: 1 }); this.db.set('constructor', 1); this.$emit(String(this.db.get('toString')))`,
  },
  throws: {
    null: `throw null`,
    'a proxy': `throw new Proxy(new Error('x'), { get() { throw new Error('p') } })`,
    'a stack that loops': `const e = new Error('m'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e`,
    'from prepareStackTrace': `Error.prepareStackTrace = () => { throw new Error('pst') }; null.x`,
    'a thenable that never settles': `return { then() {} }`,
    'a then that throws': `return { get then() { throw new Error('t') } }`,
    'a thenable of itself': `const t = { then(r) { r(t) } }; return t`,
  },
  frames: {
    'a huge length': `fs.writeSync(3, Buffer.from([255, 255, 255, 255])); await never`,
    junk: `fs.writeSync(3, Buffer.from('GET / HTTP/1.1 this is not a frame at all............')); await never`,
    'bad shapes': `for (const m of [null, [], { t: 'done' }, { t: 'ready' }, { t: 'done', id: '__proto__', out: [] }, { t: 'out', id: {}, out: [['emit', 1, 2]] }]) fs.writeSync(3, framed(m)); await never`,
    'a victim’s run': `for (let i = 0; i < 3000; i++) fs.writeSync(3, framed({ t: 'done', id: i.toString(16).padStart(16, '0'), account: 'victim', out: [['emit', '"SPOOF"', {}]], error: { name: 'SPOOF', code: null, message: 'SPOOF', stack: '' } })); await new Promise((r) => setTimeout(r, 300))`,
    'a description': `fs.writeSync(3, framed({ t: 'described', id: 'x', description: { name: 'SPOOF' } })); fs.writeSync(3, framed({ t: 'rejected', id: 'x', message: 'SPOOF', line: 1 })); await new Promise((r) => setTimeout(r, 100))`,
    'deep JSON': `const m = framed('['.repeat(4e6)); let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} await never`,
    'deep JSON that is valid': `const b = Buffer.from('['.repeat(2e6) + ']'.repeat(2e6)), h = Buffer.alloc(4); h.writeUInt32BE(b.length); const m = Buffer.concat([h, b]); let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} await never`,
    'many pieces in one': `const m = framed({ t: 'out', id: 'x', out: Array.from({ length: 4e5 }, () => ['db', 'k', null]) }); let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} await never`,
    'many pieces that nobody reads': `const m = framed({ t: 'stray', more: Array.from({ length: 3e4 }, () => []) }); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'half a frame': `fs.writeSync(3, Buffer.from([0, 0, 1, 0, 65])); await never`,
    'a flood': `const m = framed({ t: 'stray', more: 'x'.repeat(1e6) }); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'a flood of small ones': `const m = Buffer.concat(Array.from({ length: 1000 }, () => framed({ t: 'pong', n: 1 }))); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'closes all descriptors': `for (let i = 0; i < 64; i++) try { fs.closeSync(i) } catch {}`,
    'closes the channel': `new net.Socket({ fd: 3 }).destroy(); await never`,
    'writes to every descriptor': `for (let i = 0; i < 64; i++) if (i !== 3) try { fs.writeSync(i, 'garbage'.repeat(100)) } catch {}`,
  },
  prototypes: {
    'Object.prototype': `Object.prototype.id = 'evil'; Object.prototype.toJSON = () => 'evil'; Object.prototype.again = true`,
    'the guest’s own tools': `JSON.stringify = () => 'evil'; Array.prototype.push = () => {}; Promise.prototype.then = function () {}; Map.prototype.get = () => ({}); Buffer.from = () => 0`,
    'process listeners': `process.removeAllListeners(); process.on('exit', () => { for (;;); }); process.on('uncaughtException', () => {}); setTimeout(() => { throw 1 }, 10); await new Promise((r) => setTimeout(r, 50)); process.setUncaughtExceptionCaptureCallback(() => {})`,
  },
  network: {
    'a port of the parent': `await dial({ host: '127.0.0.1', port: event.port })`,
    'a port of the parent over IPv6': `await dial({ host: '::1', port: event.port })`,
    'the docker socket': `await dial({ path: '/var/run/docker.sock' })`,
    'another unix socket': `await dial({ path: event.unixSocket })`,
    'an abstract socket': `await dial({ path: '\\0' + event.abstractSocket })`,
    UDP: `await new Promise((r) => { try { const s = builtin('dgram').createSocket('udp4'); s.on('error', (e) => { this.$emit('denied ' + e.code); r() }); s.send('x', event.port, '127.0.0.1', (e) => { e ? this.$emit('denied ' + e.code) : breach('sent'); r() }) } catch { r() } })`,
    names: `await attempt(async () => breach(await builtin('dns').promises.resolve4('victim.invalid'))); await attempt(async () => breach(JSON.stringify(await builtin('dns').promises.lookup('localhost.localdomain'))))`,
    'a server': `await new Promise((r) => { const s = net.createServer(); s.on('error', (e) => { this.$emit('denied ' + e.code); r() }); s.listen(0, '0.0.0.0', () => { this.$emit('listens in a network of its own'); s.close(); r() }) })`,
  },
  proxy: {
    'spellings of metadata and loopback': `for (const url of ['http://169.254.169.254/', 'http://[::ffff:169.254.169.254]/', 'http://2852039166/', 'http://0xa9fea9fe/', 'http://127.1:' + event.port, 'http://localhost:' + event.port, 'http://[::1]:' + event.port]) await attempt(async () => breach(url + (await fetch(url)).status))`,
    'a redirect': `await attempt(async () => breach((await fetch('http://api.test:' + event.httpPort + '/to-metadata')).status))`,
    'a store that the operator allows': `const { storePort: port, publicStorePort } = event; for (const host of ['127.0.0.1', 'localhost', '127.0.0.2', '[::ffff:127.0.0.1]', '0.0.0.0', '[::1]', 'store.test']) for (const p of [port, publicStorePort]) await attempt(async () => breach((await fetch('http://' + host + ':' + p)).status)); await new Promise((r) => { const c = net.connect(port, '127.0.0.1', () => { breach('spoke to the store'); r() }); c.on('error', (e) => { this.$emit('denied ' + e.code); r() }) })`,
    'a request of its own': `await new Promise((r) => { const c = new net.Socket(); let b = ''; c.on('data', (d) => { b += d; if (b.startsWith('HTTP/1.1 200')) breach(b) }); c.on('error', r); c.on('close', r); connectDirectly.call(c, egressPath, () => c.write('CONNECT 127.0.0.1:' + event.port + ' HTTP/1.1\\r\\n\\r\\n')); setTimeout(r, 1500) })`,
    '500 connections': `for (let i = 0; i < 500; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath) } await never`,
    junk: `for (let i = 0; i < 100; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write(builtin('crypto').randomBytes(5000))) } await new Promise((r) => setTimeout(r, 500))`,
    'a port that is none': `const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write('CONNECT 127.0.0.1:99999 HTTP/1.1\\r\\n\\r\\n')); await new Promise((r) => setTimeout(r, 200))`,
    'a body without end': `await (await fetch('http://api.test:' + event.httpPort + '/slow')).text()`,
    'a compressed bomb': `this.$emit((await (await fetch('http://api.test:' + event.httpPort + '/gzip-bomb')).text()).length)`,
    'a body of 200 MB': `let n = 0; for await (const c of (await fetch('http://api.test:' + event.httpPort + '/200mb')).body) n += c.length; breach(n)`,
  },
};

const namespacesOnly = new Set(['looks for the host name', 'looks for interfaces', 'another unix socket', 'an abstract socket']);
const selfSpoiling = new Set(['registers module hooks', 'Object.prototype', 'the guest’s own tools']);

export const attacks: Attack[] = Object.entries(groups).flatMap(([group, bodies]) =>
  Object.entries(bodies).map(([name, body]) => ({
    group,
    name,
    body,
    needsNamespaces: namespacesOnly.has(name),
    spoilsItself: selfSpoiling.has(name),
  })),
);

export function attackCode({ body }: Attack): string {
  return `
const builtin = (name) => process.getBuiltinModule(name);
const fs = builtin('fs'), net = builtin('net'), children = builtin('child_process'), v8 = builtin('v8'), os = builtin('os');
const never = new Promise(() => {});
const framed = (value) => {
  const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
};
export default {
  name: 'attack',
  props: { db: '$.service.db', http: { type: '$.interface.http', customResponse: true } },
  async run(event) {
    const breach = (what) => this.$emit('BREACH ' + String(what).slice(0, 80));
    const attempt = async (action) => { try { return await action() } catch (e) { this.$emit('denied ' + String(e?.code ?? e?.message).slice(0, 60)) } };
    const read = (path) => attempt(() => breach(fs.readFileSync(path).length + ' bytes'));
    const dial = (target) => new Promise((resolve) => {
      try {
        const socket = new net.Socket();
        socket.on('error', (e) => { this.$emit('denied ' + e.code); resolve() });
        socket.on('connect', () => { breach('connected'); socket.destroy(); resolve() });
        connectDirectly.call(socket, target);
        setTimeout(resolve, 1500);
      } catch (e) { this.$emit('denied ' + e.code); resolve() }
    });
    ${body}
  },
};`;
}

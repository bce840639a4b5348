import type { Rung } from '../jail/jail.js';

/**
 * Hostile components. Each body is the `run` of one, or the code that is evaluated when one is loaded, and calls `breach` when it reaches something that
 * it must not. They have the original `connect` and all of `process`, because they test the jail and the parent, not the guest's error messages.
 */
export interface Attack {
  group: string;
  name: string;
  body: string;
  /** Whether the body is evaluated at the top level of the module, when the component is inspected */
  whileLoading: boolean;
  /** Whether rungs without namespaces cannot contain it, as documented */
  needsNamespaces: boolean;
  /** Whether it exceeds only the low limits of the arena: with those of an instance, what it does is allowed */
  needsLowLimits: boolean;
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
  /** Of its server that responds `got …` to every chunk */
  greeterPort: number;
  hostname: string;
  projectFile: string;
  /** Of an instance whose parts are known: its servers (`host:port`), processes, and files or folders */
  instance?: { servers: string[]; pids: number[]; files: string[] };
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
    'looks for files that do not exist': `for (let i = 0; i < 1e5; i++) fs.existsSync(process.argv[1] + i + 'x'.repeat(100))`,
    'opens files without end': `try { for (;;) fs.openSync('/runner/runner.cjs') } catch (e) { this.$emit('denied ' + e.code) }`,
    'writes through SQLite': `const { DatabaseSync } = builtin('node:sqlite'), exchange = egressPath.replace(/\\/[^/]*$/, ''); for (const path of [exchange + '/x.db', '/runner/x.db', '/var/tmp/sluice-attack.db', '/x.db']) { const d = new DatabaseSync(':memory:'); await attempt(() => { d.exec("ATTACH '" + path + "' AS x; CREATE TABLE x.t (a); INSERT INTO x.t VALUES (1)"); breach(path) }); await attempt(() => { d.exec("CREATE TABLE t (a); VACUUM INTO '" + path + "2'"); breach(path) }) }`,
    'reads through SQLite': `const { DatabaseSync } = builtin('node:sqlite'); for (const path of ['/etc/passwd', '/proc/' + process.ppid + '/environ', '/proc/' + event.parentPid + '/environ', event.projectFile]) { const d = new DatabaseSync(':memory:'); await attempt(() => { try { d.exec("ATTACH 'file:" + path + "?mode=ro' AS x; SELECT * FROM x.sqlite_master"); breach(path) } catch (e) { if (/not a database|malformed/.test(e.message)) breach('opened ' + path); throw e } }) }`,
    'loads a library through SQLite': `await attempt(() => { const { DatabaseSync } = builtin('node:sqlite'); const d = new DatabaseSync('/tmp/x.db', { allowExtension: true }); d.loadExtension('/lib/x86_64-linux-gnu/libm.so.6'); breach('loaded') })`,
    'reads itself through /proc': `await read('/proc/self/environ'); await read('/proc/thread-self/root/etc/passwd'); await read('/proc/self/cwd/../etc/passwd'); for (let fd = 0; fd < 32; fd++) await read('/proc/self/fd/' + fd + '/../../etc/passwd')`,
    'reads devices': `for (const name of ['mem', 'kmsg', 'kvm', 'sda', 'vda', 'nvme0n1', 'loop0', 'fuse', 'tty', 'net/tun']) await attempt(() => { fs.openSync('/dev/' + name, 'r+'); breach(name) })`,
    'opens a file as a Blob or a stream': `await attempt(async () => breach((await (await fs.openAsBlob('/etc/passwd')).text()).length)); await attempt(() => new Promise((resolve, reject) => fs.createReadStream('/etc/passwd').on('data', (d) => { breach(d.length); resolve() }).on('error', reject)))`,
    'encodes the path': `await read('/tmp/..%2f..%2fetc/passwd'); await attempt(() => breach(fs.readFileSync(new URL('file:///tmp/..%2f..%2fetc/passwd')).length)); await read('/tmp/\\0/../../etc/passwd'); await read('/tmp/./././../etc/passwd'); await read('//etc//passwd'); await attempt(() => breach(fs.readFileSync(new Uint8Array(Buffer.from('/etc/passwd'))).length))`,
    'climbs a link in its folder': `await attempt(() => { fs.symlinkSync('..', '/tmp/up'); breach(fs.readFileSync('/tmp/up/etc/passwd').length) }); await attempt(() => { fs.symlinkSync('/', '/tmp/root'); if (fs.existsSync('/tmp/root/etc/passwd')) breach('link') })`,
    'moves files across its border': `for (const [from, to] of [['/runner/runner.cjs', '/tmp/r'], ['/tmp/x', '/runner/x'], ['/bin/node', '/tmp/node']]) await attempt(() => { fs.writeFileSync('/tmp/x', ''); fs.renameSync(from, to); breach(from + ' to ' + to) })`,
    'changes rights and owners': `for (const path of ['/runner/runner.cjs', '/runner', '/bin/node', '/exchange', egressPath]) for (const change of [() => fs.chmodSync(path, 0o777), () => fs.chownSync(path, 0, 0), () => fs.utimesSync(path, 1, 1), () => fs.truncateSync(path)]) await attempt(() => { change(); if (path !== egressPath) breach(path) })`,
    'replaces its socket': `await attempt(() => { fs.unlinkSync(egressPath); breach('unlinked') }); await attempt(() => { fs.renameSync(egressPath, egressPath + '2'); breach('renamed') })`,
    'makes a file of a terabyte': `await attempt(() => { fs.writeFileSync('/tmp/big', ''); fs.truncateSync('/tmp/big', 2 ** 40); if (fs.statSync('/tmp/big').size > 1 << 30) breach('sparse') })`,
    'makes folders without end': `for (let n = 1; n < 2e5; n++) { fs.mkdirSync('/tmp/d' + n); if (n === 40000) breach(n + ' folders'); if (n % 500 === 0) await new Promise(setImmediate) }`,
    'watches folders': `for (const path of ['/', '/etc', '/proc', '/var/log']) await attempt(() => { fs.watch(path, () => {}); breach('watches ' + path) })`,
    'mounts through a path that is none': `for (const path of ['/proc/1/root', '/proc/self/task/1/root/etc/passwd', '/sys/kernel/security', '/sys/fs/cgroup/cgroup.procs', '/run/secrets/kubernetes.io/serviceaccount/token', '/var/run/secrets/kubernetes.io/serviceaccount/token', '/.dockerenv']) await read(path)`,
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
    'changes their priority': `await attempt(() => { os.setPriority(event.parentPid, 19); if (os.getPriority(event.parentPid) === 19) breach('the parent') }); await attempt(() => { os.setPriority(event.otherPid, 19); breach('another process') }); await attempt(() => { const before = os.getPriority(); os.setPriority(0, -20); if (os.getPriority() < before) breach('its own') })`,
    'reads their files': `for (const pid of [event.parentPid, event.otherPid, process.ppid, 1]) for (const name of ['maps', 'cmdline', 'status', 'mem', 'auxv', 'fd/0', 'root/etc/passwd', 'cwd/package.json']) await read('/proc/' + pid + '/' + name)`,
    'handles signals': `for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGXCPU', 'SIGALRM', 'SIGUSR2']) process.on(signal, () => {}); for (;;);`,
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
    'compiles code': `for (const make of [() => new Function('return process')(), () => eval('process'), () => (async () => {}).constructor('return process')()]) { const found = await make(); await attempt(() => breach(found.binding('fs').open)) }`,
    'imports by URL': `for (const url of ['file:///etc/passwd', 'data:text/javascript,export default process.binding("fs")', 'http://127.0.0.1:' + event.port + '/x.js', 'https://api.test/x.js', 'blob:nodedata:1', 'node:internal/test/binding', 'file:///proc/self/environ']) await attempt(async () => breach(Object.keys(await import(url))))`,
    'uses the bindings behind Node’s modules': `const { internalBinding } = builtin('internal/test/binding') ?? {}; if (!internalBinding) return; const b = (name) => internalBinding(name); await attempt(() => breach(b('fs').open('/etc/passwd', 0, 0o666))); await attempt(() => breach(b('fs').readFileUtf8('/etc/passwd', 0).length)); await attempt(() => { const r = b('spawn_sync').spawn({ file: '/bin/node', args: ['node', '-v'], envPairs: [], stdio: [] }); if (r.pid && !r.error) breach('child') }); await attempt(() => { const w = new (b('worker').Worker)(null, [], undefined, [], true); w.startThread(); breach('worker') }); await attempt(() => { const u = new (b('udp_wrap').UDP)(); if (u.bind('0.0.0.0', 0, 0) === 0) breach('UDP') }); await attempt(() => { const { TCP, TCPConnectWrap } = b('tcp_wrap'); const t = new TCP(0), q = new TCPConnectWrap(); q.oncomplete = (status) => { if (status === 0) breach('TCP') }; t.connect(q, '127.0.0.1', event.port) }); await attempt(() => { b('process_methods')._kill(event.parentPid, 28); b('process_methods').setEmitWarningSync?.(() => {}) }); await attempt(() => b('process_methods').dlopen?.({ exports: {} }, '/lib/x86_64-linux-gnu/libm.so.6')); await attempt(() => { b('credentials').setuid(0); fs.readFileSync('/etc/shadow'); breach('root') }); await attempt(() => { b('inspector').open?.(0, '127.0.0.1', false); if (b('inspector').url?.()) breach('inspector') }); await new Promise((r) => setTimeout(r, 300))`,
    'takes the constructors of handles': `const kinds = process._getActiveHandles().map(({ _handle }) => _handle?.constructor).filter(Boolean); for (const Kind of kinds) await attempt(() => { const handle = new Kind(1); if (handle.bind?.(event.unixSocket + '2') === 0 && handle.listen(1) === 0) breach('listens') })`,
    'drops Node’s permissions': `await attempt(() => { process.permission.has = () => true; process.permission.drop?.('fs.read'); fs.readFileSync('/etc/passwd'); breach('read') }); await attempt(() => { process.execArgv.push('--allow-child-process'); children.execFileSync(process.execPath, ['-v']); breach('child') })`,
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
    'loops in toJSON': `this.$emit({ toJSON() { for (;;); } })`,
    'loops in a getter of an event': `this.$emit({ get a() { for (;;); } })`,
    'loops in the metadata of an emit': `this.$emit(1, { id: { toJSON() { for (;;); } } })`,
    'loops where a value becomes a primitive': `this.$emit(1, { ts: { [Symbol.toPrimitive]() { for (;;); } } })`,
    'loops in a key of the db': `this.db.set({ toString() { for (;;); } }, 1)`,
    'loops in a logged value': `console.log({ [Symbol.for('nodejs.util.inspect.custom')]() { for (;;); } })`,
    'loops in a reply': `this.http.respond({ get status() { for (;;); } })`,
    'loops in a thenable': `return { then() { for (;;); } }`,
    'loops in a thenable that never settles': `const again = { then(resolve) { setImmediate(() => resolve(again)) } }; return again`,
    'loops in the traps of a proxy': `this.$emit(new Proxy({}, { ownKeys() { for (;;); } }))`,
    'loops in a message of an error': `throw { get message() { for (;;); } }`,
    'loops in Symbol.hasInstance': `Object.defineProperty(Error, Symbol.hasInstance, { value() { for (;;); } }); console.log({}); throw new Error('x')`,
    'computes with huge integers': `let n = 3n ** 1000000n; for (;;) n *= n`,
    'sorts in native code': `new Float64Array(2e7).map(Math.random).sort((a, b) => { for (let i = 0; i < 1e3; i++); return a - b })`,
    'replaces without end': `'x'.repeat(1e5).replace(/x/g, () => 'y'.repeat(1e5)).length`,
    'parses and prints JSON without end': `const text = '[' + '[],'.repeat(3e6) + '0]'; for (;;) JSON.stringify(JSON.parse(text))`,
    'compiles WebAssembly without end': `const bytes = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0]); for (;;) await WebAssembly.compile(bytes)`,
    'waits asynchronously on shared memory': `const cells = new Int32Array(new SharedArrayBuffer(1 << 20)); for (let i = 0; i < 2e5; i++) Atomics.waitAsync(cells, i, 0, 1e6); await never`,
    'widens the thread pool': `process.env.UV_THREADPOOL_SIZE = '1024'; for (let i = 0; i < 1024; i++) builtin('crypto').scrypt('x', 'y', 64, { N: 2 ** 14 }, () => {}); await never`,
    'is woken up by every message': `process._getActiveHandles().forEach((handle) => handle.on?.('data', () => { const t = Date.now(); while (Date.now() - t < 300); })); await never`,
    'throws after its end': `setInterval(() => { throw new Error('late') }, 1); setInterval(() => Promise.reject(new Error('late')), 1)`,
    'works after its end': `const f = () => { const t = Date.now(); while (Date.now() - t < 90); setTimeout(f, 10) }; setTimeout(f, 10)`,
    'keeps its finalizers busy': `const r = new FinalizationRegistry(() => { for (let i = 0; i < 1e6; i++) r.register({}, i) }); r.register({}, 0); for (let i = 0; i < 200; i++) Buffer.alloc(1 << 20); await never`,
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
    'many names for one text': `const a = []; let s = 'x'.repeat(1 << 28); for (let i = 0; ; i++) a.push(s + i, (s + i).slice(1))`,
    'timers and promises': `const f = () => new Promise((r) => setTimeout(r, 1e6)); for (;;) for (let i = 0; i < 1e5; i++) f()`,
    'external strings': `const a = []; for (;;) a.push(Buffer.alloc(1 << 24, 'é').toString('latin1'))`,
    'a table of WebAssembly': `const a = []; for (;;) a.push(new WebAssembly.Table({ element: 'anyfunc', initial: 1e7 }))`,
    'clones and channels': `const { port1, port2 } = new MessageChannel(); for (;;) port1.postMessage(new Uint8Array(1 << 20))`,
    'sockets that hold data': `for (let i = 0; i < 900; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write(Buffer.alloc(1 << 18, 65))) } await never`,
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
    'emits a sparse list': `const a = []; a.length = 2 ** 32 - 1; this.$emit(a)`,
    'emits a million keys': `this.$emit(Object.fromEntries(Array.from({ length: 1e6 }, (_, i) => ['k' + i, i])))`,
    'emits the longest text': `this.$emit('\\0'.repeat(2 ** 29 - 64))`,
    'emits ids that cannot be stored': `for (const id of ['\\0', '\\ud800', '', ' ', '__proto__', 'x'.repeat(4096), 1e308, -0, {}, [], true]) try { this.$emit(1, { id, name: String(id).slice(0, 100), summary: id, ts: id, delivery_ts: id }) } catch {}`,
    'emits times that are none': `for (const ts of [Infinity, -Infinity, NaN, 8.64e15, -8.64e15, 2 ** 53, '9'.repeat(400), new Date(NaN), Symbol.iterator]) try { this.$emit(1, { ts, delivery_ts: ts }) } catch {}`,
    'stores odd keys': `for (const key of ['', '__proto__', 'constructor', 'toString', '\\0', '\\ud800', 'x'.repeat(1e6), Symbol.iterator, null, undefined, {}]) try { this.db.set(key, { a: 1 }) } catch {} this.$emit(String(this.db.get('toString')))`,
    'stores one value again and again': `for (let i = 0; i < 2000; i++) this.db.set('k', 'x'.repeat(1e6 - 100))`,
    'responds with thousands of headers': `this.http.respond({ status: 200, headers: Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['x-' + i, 'v'.repeat(100)])) })`,
    'responds with lines in a header': `for (const headers of [{ 'x\\r\\nset-cookie': 'a' }, { x: 'a\\r\\nset-cookie: b' }, { 'content-length': '1e9' }, { 'transfer-encoding': 'chunked' }, { __proto__: { a: 1 } }, { x: Array(1e5).fill('y') }]) try { this.http.respond({ status: 200, headers, body: 'x' }) } catch {}`,
    'responds with odd bodies': `for (const body of [Symbol('x'), 1n, () => 1, new Proxy({}, { get() { throw 1 } }), new DataView(new ArrayBuffer(1 << 24)), { toJSON() { return 'x'.repeat(1e7) } }]) try { this.http.respond({ body }) } catch {}`,
    'writes to its error output without end': `let n = 0; const block = Buffer.alloc(65536, 65); while (n < 64 << 20) try { n += fs.writeSync(2, block) } catch {} breach(n + ' bytes')`,
    'writes to its output without end': `const block = Buffer.alloc(65536, 65); for (let i = 0; i < 2000; i++) try { fs.writeSync(1, block) } catch {}`,
    'writes to its error output in single bytes': `trickle(2, Buffer.alloc(60_000, 65)); breach('they were read')`,
    'warns without end': `for (let i = 0; i < 1e5; i++) { process.emitWarning('x'.repeat(1000)); if (i % 100 === 0) await new Promise(setImmediate) }`,
    'logs deep and wide values': `let deep = {}; for (let i = 0; i < 1e4; i++) deep = { deep }; const wide = Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [i, i])); for (let i = 0; i < 500; i++) console.log(deep, wide)`,
  },
  throws: {
    null: `throw null`,
    'a proxy': `throw new Proxy(new Error('x'), { get() { throw new Error('p') } })`,
    'a stack that loops': `const e = new Error('m'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e`,
    'from prepareStackTrace': `Error.prepareStackTrace = () => { throw new Error('pst') }; null.x`,
    'a thenable that never settles': `return { then() {} }`,
    'a then that throws': `return { get then() { throw new Error('t') } }`,
    'a thenable of itself': `const t = { then(r) { r(t) } }; return t`,
    'an error of many causes': `let e = new Error('x'); for (let i = 0; i < 1e5; i++) e = new Error('x'.repeat(100), { cause: e }); throw new AggregateError(Array(1e5).fill(e), 'y'.repeat(1e6), { cause: e })`,
    'an error with a stack of a megabyte': `throw Object.assign(new Error('x'), { stack: ' at ' + ':1'.repeat(1e6), name: 'n'.repeat(1e6), code: 'c'.repeat(1e6) })`,
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
    'many pieces that nobody reads': `const m = framed({ t: 'pong', n: 1, more: Array.from({ length: 3e4 }, () => []) }); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'for its own run: frames in single bytes': `const id = await runId(), m = framed(JSON.stringify({ t: 'out', id, out: [] }).padEnd(1000)); for (let i = 0; i < 60; i++) trickle(3, m); breach('they were read')`,
    'half a frame': `fs.writeSync(3, Buffer.from([0, 0, 1, 0, 65])); await never`,
    'a flood': `const m = framed({ t: 'pong', n: 1, more: 'x'.repeat(1e6) }); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'a flood of small ones': `const m = Buffer.concat(Array.from({ length: 1000 }, () => framed({ t: 'pong', n: 1 }))); for (;;) { let at = 0; while (at < m.length) try { at += fs.writeSync(3, m, at) } catch {} }`,
    'closes all descriptors': `for (let i = 0; i < 64; i++) try { fs.closeSync(i) } catch {}`,
    'closes the channel': `new net.Socket({ fd: 3 }).destroy(); await never`,
    'writes to every descriptor': `for (let i = 0; i < 64; i++) if (i !== 3) try { fs.writeSync(i, 'garbage'.repeat(100)) } catch {}`,
    'for its own run: more than it may emit': `const id = await runId(); for (let i = 0; i < 100; i++) pour(framed({ t: 'out', id, out: Array.from({ length: 100 }, () => ['emit', '1', {}]) })); await never`,
    'for its own run: events that are not JSON': `const id = await runId(); pour(framed({ t: 'out', id, out: [['emit', '{"a":', {}]] })); await never`,
    'for its own run: metadata that cannot be stored': `const id = await runId(); pour(framed({ t: 'out', id, out: [['emit', '"x"', { id: '\\0', name: '\\0', summary: '\\ud800', ts: 1e15, deliveryTs: -1e15 }], ['emit', '"\\ud800"', { id: '\\ud800' }]] })); pour(framed({ t: 'done', id, out: [], error: null })); await never`,
    'for its own run: an error of the largest size': `const id = await runId(); pour(framed({ t: 'done', id, out: [], error: { name: 'x'.repeat(128), code: 'y'.repeat(128), message: '\\0'.repeat(16000), stack: ' at ' + ':1'.repeat(16000) } })); await never`,
    'for its own run: keys that cannot be stored': `const id = await runId(); pour(framed({ t: 'out', id, out: [['db', '\\0', '1'], ['db', '\\ud800', '1'], ['db', '__proto__', '{}']] })); await never`,
    'for its own run: replies': `const id = await runId(); for (let i = 0; i < 1000; i++) pour(framed({ t: 'respond', id, status: 200, headers: { 'x-a': '1' }, body: 'not base64 \\u0000 at all' })); pour(framed({ t: 'respond', id, status: 200, headers: { 'bad\\r\\nname': '1' }, body: '' })); await never`,
    'for its own run after it has ended it': `const id = await runId(); pour(framed({ t: 'done', id, out: [], error: null })); const m = framed({ t: 'out', id, out: Array.from({ length: 4000 }, () => ['log', 'x', 1, 'x', null]) }); for (let n = 0; n < 32 << 20;) n += pour(m); await never`,
    'late errors without end': `const m = framed({ t: 'late', id: 'x', error: { name: 'x', code: null, message: 'y'.repeat(10000), stack: '' } }); let n = 0; while (n < 8 << 20) n += pour(m); await new Promise((r) => setTimeout(r, 100)); breach(n + ' bytes')`,
    'pongs without end': `const m = Buffer.concat(Array.from({ length: 1000 }, () => framed({ t: 'pong', n: 1 }))); let n = 0; while (n < 8 << 20) n += pour(m); await new Promise((r) => setTimeout(r, 100)); breach(n + ' bytes')`,
    'that are empty': `pour(Buffer.alloc(4000)); await never`,
    'a byte at a time': `const m = framed({ t: 'pong', n: 1, more: 'x'.repeat(7e6) }); for (let at = 0; ; at++) pour(m.subarray(at % m.length, (at % m.length) + 1))`,
    'a large head and nothing more': `pour(Buffer.from([0, 127, 255, 255])); await never`,
    'with __proto__ as a field': `pour(framed('{"__proto__":{"t":"done","id":"x"},"t":"pong","n":1}')); pour(framed('{"t":"done","id":"x","out":[["emit","1",{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}]],"error":{"__proto__":{"polluted":1},"name":"a","code":null,"message":"","stack":""}}')); await new Promise((r) => setTimeout(r, 100))`,
    'a large reply that is none': `const b = Buffer.from('{"t":"respond","id":"x","status":200,"headers":' + '['.repeat(4e6) + '"}'), h = Buffer.alloc(4); h.writeUInt32BE(b.length); pour(Buffer.concat([h, b])); await never`,
    'for its own run: long texts between escapes': `const id = await runId(), m = framed({ t: 'respond', id, status: 200, headers: {}, body: ('x'.repeat(1030) + '\\n').repeat(6500) }); for (let i = 0; i < 7; i++) pour(m)`,
    'steals those of the parent': `const b = Buffer.alloc(65536); for (;;) { try { fs.readSync(3, b) } catch {} await new Promise(setImmediate) }`,
  },
  prototypes: {
    'Object.prototype': `Object.prototype.id = 'evil'; Object.prototype.toJSON = () => 'evil'; Object.prototype.again = true`,
    'the guest’s own tools': `JSON.stringify = () => 'evil'; Array.prototype.push = () => {}; Promise.prototype.then = function () {}; Map.prototype.get = () => ({}); Buffer.from = () => 0`,
    'process listeners': `process.removeAllListeners(); process.on('exit', () => { for (;;); }); process.on('uncaughtException', () => {}); setTimeout(() => { throw 1 }, 10); await new Promise((r) => setTimeout(r, 50)); process.setUncaughtExceptionCaptureCallback(() => {})`,
    'what a later run uses': `for (const proto of [String.prototype, Number.prototype, Function.prototype, Array.prototype, Map.prototype, Promise.prototype]) for (const name of ['then', 'toString', 'call', 'bind', 'map', 'set']) try { Object.defineProperty(proto, name, { get() { throw new Error('spoiled') } }) } catch {}`,
    'what it leaves in the process': `globalThis.left = 'secret'; process.env.LEFT = 'secret'; process.title = 'left'; require = undefined; globalThis.fetch = () => { throw 1 }; setInterval(() => this.$emit('later'), 5); process.on('beforeExit', () => { for (;;); })`,
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
    'its own function that looks up names': `await new Promise((r) => { const q = builtin('http').get({ host: 'api.test', port: event.port, lookup: (h, o, done) => done(null, o?.all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1', 4) }, () => { breach('connected'); r() }); q.on('error', (e) => { this.$emit('denied ' + e.code); r() }) })`,
    'a socket by path in HTTP': `await new Promise((r) => { const q = builtin('http').get({ socketPath: event.unixSocket, path: '/' }, () => { breach('connected'); r() }); q.on('error', (e) => { this.$emit('denied ' + e.code); r() }) })`,
    'a proxy by the environment': `Object.assign(process.env, { HTTP_PROXY: 'http://127.0.0.1:' + event.port, http_proxy: 'http://127.0.0.1:' + event.port, NODE_USE_ENV_PROXY: '1', ALL_PROXY: 'socks5://127.0.0.1:' + event.port }); await attempt(async () => { await fetch('http://127.0.0.1:' + event.port); breach('connected') })`,
    'HTTP/2, TLS and WebSockets': `for (const open of [() => builtin('http2').connect('http://127.0.0.1:' + event.port), () => builtin('tls').connect(event.port, '127.0.0.1', { rejectUnauthorized: false }), () => new WebSocket('ws://127.0.0.1:' + event.port)]) { const c = open(); (c.on ?? c.addEventListener).call(c, 'error', (e) => this.$emit('denied ' + e.code)) } await new Promise((r) => setTimeout(r, 1000))`,
    'its own dispatcher of requests': `await attempt(async () => { const dispatcher = { dispatch(options, handler) { connectDirectly.call(new net.Socket(), { host: '127.0.0.1', port: event.port }, () => breach('connected')).on('error', (e) => handler.onError?.(e)); return true } }; await fetch('http://api.test', { dispatcher, signal: AbortSignal.timeout(500) }) })`,
    'another name server': `await attempt(async () => { const r = new (builtin('dns').promises.Resolver)({ timeout: 300, tries: 1 }); r.setServers(['127.0.0.1:' + event.port, '169.254.169.253']); breach(await r.resolve4('secret.example.com')) })`,
    'a raw handle': `await attempt(async () => { const { UDP } = process.binding('udp_wrap'); const u = new UDP(); if (u.bind('0.0.0.0', 0, 0) === 0) breach('UDP') }); await attempt(() => { const { TCP } = process.binding('tcp_wrap'); const t = new TCP(1); if (t.bind('0.0.0.0', 0) === 0 && t.listen(1) === 0) breach('TCP') })`,
    'a pipe between processes': `await new Promise((r) => { const s = net.createServer(() => {}); s.on('error', (e) => { this.$emit('denied ' + e.code); r() }); s.listen(egressPath + '.mine', () => { breach('listens'); r() }) })`,
  },
  proxy: {
    'spellings of metadata and loopback': `for (const url of ['http://169.254.169.254/', 'http://[::ffff:169.254.169.254]/', 'http://2852039166/', 'http://0xa9fea9fe/', 'http://127.1:' + event.port, 'http://localhost:' + event.port, 'http://[::1]:' + event.port]) await attempt(async () => breach(url + (await fetch(url)).status))`,
    'a redirect': `await attempt(async () => breach((await fetch('http://api.test:' + event.httpPort + '/to-metadata')).status))`,
    'a store that the operator allows': `const { storePort: port, publicStorePort } = event; for (const host of ['127.0.0.1', 'localhost', '127.0.0.2', '[::ffff:127.0.0.1]', '0.0.0.0', '[::1]', 'store.test']) for (const p of [port, publicStorePort]) await attempt(async () => breach((await fetch('http://' + host + ':' + p)).status)); await new Promise((r) => { const c = net.connect(port, '127.0.0.1', () => { breach('spoke to the store'); r() }); c.on('error', (e) => { this.$emit('denied ' + e.code); r() }) })`,
    'a request that it writes by hand': `await new Promise((r) => { const c = new net.Socket(); let b = ''; c.on('data', (d) => { b += d; if (b.startsWith('HTTP/1.1 200')) breach(b) }); c.on('error', r); c.on('close', r); connectDirectly.call(c, egressPath, () => c.write('CONNECT 127.0.0.1:' + event.port + ' HTTP/1.1\\r\\n\\r\\n')); setTimeout(r, 1500) })`,
    '500 connections': `for (let i = 0; i < 500; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath) } await never`,
    junk: `for (let i = 0; i < 100; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write(builtin('crypto').randomBytes(5000))) } await new Promise((r) => setTimeout(r, 500))`,
    'a port that is none': `const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write('CONNECT 127.0.0.1:99999 HTTP/1.1\\r\\n\\r\\n')); await new Promise((r) => setTimeout(r, 200))`,
    'a body without end': `await (await fetch('http://api.test:' + event.httpPort + '/slow')).text()`,
    'single bytes': `let count = 0; const open = []; for (let i = 0; i < 20; i++) { const c = new net.Socket(); c.setNoDelay(true); c.on('error', () => {}); c.on('data', (d) => { count += d.toString().split('got ').length - 1 }); c.once('data', () => open.push(c)); connectDirectly.call(c, egressPath, () => c.write('CONNECT api.test:' + event.greeterPort + ' HTTP/1.1\\r\\n\\r\\n')) } const until = Date.now() + 1400; while (Date.now() < until) { for (const c of open) c.write('x'); await new Promise(setImmediate) } if (count > 3000) breach(count + ' chunks')`,
    'a compressed bomb': `this.$emit((await (await fetch('http://api.test:' + event.httpPort + '/gzip-bomb')).text()).length)`,
    'a body of 200 MB': `let n = 0; for await (const c of (await fetch('http://api.test:' + event.httpPort + '/200mb')).body) n += c.length; breach(n)`,
    'more spellings of loopback': `const { port } = event; for (const host of ['0177.0.0.1', '0x7f.0.0.1', '0x7f000001', '127.0.0.1.', '127.000.000.001', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[::]', '0', '0.0.0.0', '①②⑦.⓪.⓪.①', 'localhost.', 'LOCALHOST', '127.0.0.1%00.api.test', '[::1%25lo]', 'user@127.0.0.1', 'api.test@127.0.0.1']) await attempt(async () => breach(host + (await fetch('http://' + host + ':' + port, { signal: AbortSignal.timeout(1000) })).status))`,
    'a name that has a private address, too': `for (const host of ['both.test', 'BOTH.test', 'both.test.']) await attempt(async () => breach(host + ' ' + (await fetch('http://' + host + ':' + event.httpPort)).status))`,
    'requests that are not what they seem': `const { port, httpPort } = event; for (const head of ['CONNECT api.test:' + httpPort + ' HTTP/1.1\\r\\nHost: 127.0.0.1:' + port + '\\r\\n\\r\\nCONNECT 127.0.0.1:' + port + ' HTTP/1.1\\r\\n\\r\\n', 'GET http://127.0.0.1:' + port + '/ HTTP/1.1\\r\\n\\r\\n', 'CONNECT 127.0.0.1:' + port + '@api.test:' + httpPort + ' HTTP/1.1\\r\\n\\r\\n', 'CONNECT api.test:' + httpPort + '\\0:' + port + ' HTTP/1.1\\r\\n\\r\\n', 'CONNECT [::ffff:127.0.0.1]:' + port + ' HTTP/1.1\\r\\n\\r\\n', 'CONNECT [::1%lo]:' + port + ' HTTP/1.1\\r\\n\\r\\n', 'CONNECT api.test:' + httpPort + ' HTTP/1.1\\r\\nCONNECT 127.0.0.1:' + port + ' HTTP/1.1\\r\\n\\r\\n', 'CONNECT 127.0.0.1:0' + port + ' HTTP/1.1\\r\\n\\r\\n', 'connect 127.0.0.1:' + port + ' http/1.1\\r\\n\\r\\n']) await new Promise((r) => { const c = new net.Socket(); c.on('error', r); c.on('close', r); connectDirectly.call(c, egressPath, () => c.write(head)); setTimeout(() => { c.destroy(); r() }, 200) })`,
    'heads that never end': `for (let i = 0; i < 300; i++) { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => c.write('CONNECT api')) } await never`,
    'connections that are closed at once': `let n = 0; const next = () => { const c = new net.Socket(); c.on('error', () => {}); connectDirectly.call(c, egressPath, () => { n++; c.destroy(); next() }); if (n === 10000) breach(n + ' connections') }; for (let i = 0; i < 20; i++) next(); await never`,
    'an upload without end': `const block = Buffer.alloc(1 << 20); let n = 0; const body = new ReadableStream({ pull(c) { if (n++ < 64) c.enqueue(block); else c.close() } }); await attempt(async () => { const { bytes } = await (await fetch('http://api.test:' + event.httpPort + '/up', { method: 'POST', body, duplex: 'half' })).json(); if (bytes > 32 << 20) breach(bytes + ' bytes') })`,
    'other compressed bombs': `for (const kind of ['br', 'zstd', 'deflate', 'nested']) await attempt(async () => this.$emit((await (await fetch('http://api.test:' + event.httpPort + '/' + kind + '-bomb')).text()).length))`,
    'redirects without end': `await attempt(async () => breach((await fetch('http://api.test:' + event.httpPort + '/again')).status))`,
    'headers without end': `await attempt(async () => breach((await fetch('http://api.test:' + event.httpPort + '/headers')).status))`,
  },
};

/** Code of the top level of a module: it is evaluated when the component is inspected, and before its first run. */
const loading: Record<string, string> = {
  loops: `for (;;);`,
  'never settles': `await new Promise(() => {})`,
  'waits for what it needs no time for': `await new Promise((resolve) => setTimeout(resolve, 60_000))`,
  'hangs in a regular expression': `/^(a+)+$/.test('a'.repeat(40) + 'b')`,
  'uses all memory': `const a = []; for (;;) a.push(new Array(1e6).fill(1))`,
  exits: `process.reallyExit(0)`,
  'throws a proxy': `throw new Proxy(new Error('x'), { get() { throw new Error('p') } })`,
  'exports a proxy': `exported = new Proxy({}, { get() { for (;;); }, ownKeys() { return ['name'] }, getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) })`,
  'exports a getter that loops': `exported = { get name() { for (;;); } }`,
  'exports a name that loops': `exported = { name: { trim() { for (;;); } }, props: { toJSON() { for (;;); } } }`,
  'exports a million props': `exported = { name: 'x', props: Object.fromEntries(Array.from({ length: 1e6 }, (_, i) => ['p' + i, 'string'])) }`,
  'exports props that are nested': `let deep = {}; for (let i = 0; i < 1e5; i++) deep = { deep }; exported = { name: 'x', props: { a: { type: 'string', deep } } }`,
  'exports props that are circular': `const a = { type: 'string' }; a.a = a; exported = { name: 'x', props: { a, b: { type: 'integer', n: 1n } } }`,
  'exports the prototype': `exported = { name: 'x', key: '__proto__', props: JSON.parse('{"__proto__":{"type":"string","polluted":1},"constructor":{"type":"string"}}') }`,
  'exports texts of megabytes': `exported = { name: 'x'.repeat(1e7), key: 'k'.repeat(1e7), version: 'v'.repeat(1e7), description: 'd'.repeat(1e7) }`,
  'floods the parent in the name of its inspection': `
    const { stringify } = JSON;
    JSON.stringify = (value, ...more) => {
      if (value?.t !== 'described') return stringify(value, ...more);
      const { id } = value, m = framed(stringify({ t: 'out', id, out: Array.from({ length: 4000 }, () => ['log', 'x', 1, 'x', null]) }));
      for (let n = 0; n < 4 << 20;) n += pour(m);
      breach('4 MB were read');
    };
    exported = { name: 'x', run() {} }`,
  'describes itself again and again': `
    const { stringify } = JSON;
    JSON.stringify = (value, ...more) => {
      if (value?.t === 'described') for (let n = 0; n < 64 << 20;) n += pour(framed(stringify({ ...value, more: 'x'.repeat(500_000) })));
      return stringify(value, ...more);
    };
    exported = { name: 'x', run() {} }`,
  'writes long texts between escapes': `pour(framed({ t: 'described', id: 'x', more: ('x'.repeat(1030) + '\\n').repeat(7500) })); exported = { name: 'x', run() {} }`,
  'describes what no guest describes': `
    const { stringify } = JSON;
    JSON.stringify = (value, ...more) =>
      stringify(value?.t === 'described' ? { ...value, description: { name: 'x', key: {}, props: 1, configurable_props: [null], hooks: 'all' } } : value, ...more);
    exported = { name: 'x', run() {} }`,
  'reports imports that are none': `
    const { stringify } = JSON;
    JSON.stringify = (value, ...more) =>
      stringify(value?.t === 'described' ? { t: 'missing', id: value.id, imports: [{ specifier: '../../../etc', kind: 'x' }, { specifier: 'git+ssh://x' }] } : value, ...more);
    exported = { name: 'x', run() {} }`,
  'reads a file': `try { breach(fs.readFileSync('/etc/passwd').length) } catch {}`,
  'connects to the parent': `await new Promise((resolve) => { const c = new net.Socket(); c.on('connect', () => breach('connected')); c.on('error', resolve); connectDirectly.call(c, { host: '127.0.0.1', port: event.port }); setTimeout(resolve, 500) })`,
  'imports a file': `await import('file:///etc/passwd').then(() => breach('imported'), () => {})`,
  'is nested deeper than a parser can go': `void ${'['.repeat(50_000)}${']'.repeat(50_000)}`,
};

const namespacesOnly = new Set(['looks for the host name', 'looks for interfaces', 'another unix socket', 'an abstract socket']);
const lowLimitsOnly = new Set(['writes to its error output in single bytes', 'for its own run: frames in single bytes']);
const selfSpoiling = new Set(['registers module hooks', 'Object.prototype', 'the guest’s own tools', 'what a later run uses']);

const rows = (bodies: Record<string, Record<string, string>>, whileLoading: boolean): Attack[] =>
  Object.entries(bodies).flatMap(([group, ofGroup]) =>
    Object.entries(ofGroup).map(([name, body]) => ({
      group,
      name,
      body,
      whileLoading,
      needsNamespaces: namespacesOnly.has(name),
      needsLowLimits: lowLimitsOnly.has(name),
      spoilsItself: selfSpoiling.has(name),
    })),
  );

/** On the parts of a real instance. They need `Targets.instance`. */
const instance: Record<string, string> = {
  'connects to its servers': `await Promise.all(event.instance.servers.flatMap((server) => { const { hostname, port } = new URL('http://' + server); return [attempt(() => dial({ host: hostname.replace(/[[\\]]/g, ''), port })), attempt(async () => breach(server + ' ' + (await fetch('http://' + server, { signal: AbortSignal.timeout(1000) })).status))] }))`,
  'speaks to its servers through the proxy': `await Promise.all(event.instance.servers.map((server) => new Promise((r) => { const c = new net.Socket(); c.on('data', (d) => { if (/^HTTP\\/1.1 200/.test(d)) breach(server) }); c.on('error', r); c.on('close', r); setTimeout(r, 1000); connectDirectly.call(c, egressPath, () => c.write('CONNECT ' + server + ' HTTP/1.1\\r\\n\\r\\n')) })))`,
  'reads its files': `for (const file of event.instance.files) { await read(file); await attempt(() => breach(fs.readdirSync(file))) }`,
  'reads and signals its processes': `for (const pid of event.instance.pids) { for (const name of ['environ', 'cmdline', 'root/etc/passwd', 'fd', 'mem']) await read('/proc/' + pid + '/' + name); await attempt(() => { process.kill(pid, 0); breach(pid) }); await attempt(() => { os.setPriority(pid, 19); breach(pid) }) }`,
};

const control: Record<string, string> = { 'succeeds, to check that breaches are reported': `breach('planted')` };

export const attacks: Attack[] = [...rows(groups, false), ...rows({ loading }, true)];

export const instanceAttacks: Attack[] = rows({ instance }, false);

/** Without namespaces, a component can connect to open sockets of other programs, so this rung is for containers that run nothing else. */
const openWithoutNamespaces = ['abstract socket', 'unix socket'];

/** The attacks that the rung must contain. */
export const attacksOn = (jail: Rung): Attack[] => attacks.filter(({ needsNamespaces }) => !needsNamespaces || jail !== 'setpriv-lsm');

/** What the rung must protect, of all that was reached. */
export const forbiddenOn = (jail: Rung, reached: string[]): string[] =>
  reached.filter((what) => jail !== 'setpriv-lsm' || !openWithoutNamespaces.includes(what));

/** Attacks that succeed. If one is contained, breaches are not reported. */
export const controls: Attack[] = [...rows({ control }, false), ...rows({ control }, true)];

import type { Attack, Targets } from './attacks.js';

/** How the code of an attack is made. */
export interface CodeOptions {
  /** `open`: for a sandbox that is not hardened, where components keep everything that the jail must contain. `hardened`: for an instance */
  guest?: 'open' | 'hardened';
  /** The host to which the mock internet's name leads, where the instance cannot resolve it */
  internet?: string;
}

const mockInternet = 'api.test';

const guests = {
  open: `const builtin = (name) => process.getBuiltinModule(name);`,
  // Imports what it can of Node, and takes from the guest what the guest hides: its socket, and the function that it has replaced
  hardened: `
const names = ['fs', 'net', 'os', 'crypto', 'dns', 'http', 'http2', 'tls', 'zlib', 'child_process', 'cluster', 'dgram', 'inspector', 'module', 'v8', 'wasi', 'worker_threads', 'node:sqlite'];
const modules = new Map(await Promise.all(names.map(async (name) => [name, await import(name).then((all) => all.default, () => undefined)])));
const builtin = (name) => modules.get(name);
let connectDirectly, egressPath;
{
  const { call } = Function.prototype;
  Function.prototype.call = function (self, ...args) {
    if (typeof args[0]?.path === 'string') { connectDirectly = this; egressPath = args[0].path }
    return Reflect.apply(this, self, args);
  };
  builtin('net').connect(1, '127.0.0.1').on('error', () => {});
  Function.prototype.call = call;
}`,
};

const tools = `
const fs = builtin('fs'), net = builtin('net'), children = builtin('child_process'), v8 = builtin('v8'), os = builtin('os');
const never = new Promise(() => {});
const framed = (value) => {
  const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
};
// Writes all of it, however slowly it is read
const pour = (bytes) => { for (let at = 0; at < bytes.length;) try { at += fs.writeSync(3, bytes, at) } catch (e) { if (e.code !== 'EAGAIN') throw e } return bytes.length };
// Writes all of it in single bytes. The kernel keeps less than 300 of them, so that the parent reads at least one piece for so many
const trickle = (descriptor, bytes) => {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let at = 0; at < bytes.length;) try { at += fs.writeSync(descriptor, bytes, at, 1) } catch (e) { if (e.code !== 'EAGAIN') throw e; Atomics.wait(sleeper, 0, 0, 0.05) }
};
// Of the run in progress, from the next message about it
const runId = async () => {
  const { stringify } = JSON;
  let id;
  JSON.stringify = (value, ...more) => { id ??= value?.id; return stringify(value, ...more) };
  console.log('x');
  while (id === undefined) await new Promise(setImmediate);
  JSON.stringify = stringify;
  return id;
};`;

/** The code of an attack while it is loaded. It reports by the error that rejects the component. */
export function loadingCode({ body }: Attack, targets: Targets, { guest = 'open' }: CodeOptions = {}): string {
  return `${guests[guest]}${tools}
const event = ${JSON.stringify(targets)};
const breach = (what) => { throw new Error('BREACH ' + String(what).slice(0, 80)) };
let exported = { name: 'attack', run() {} };
${body}
export default exported;`;
}

/** The code of an attack in a run, whose event are the targets. It reports by an event that begins with `BREACH`. */
export function attackCode({ body }: Attack, { guest = 'open', internet = mockInternet }: CodeOptions = {}): string {
  return `${guests[guest]}${tools}
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
    ${body.replaceAll(mockInternet, internet)}
  },
};`;
}

import { createRequire } from 'node:module';

/**
 * Node's own modules that components and packages may load. The others would fail later and less clearly, because the jail allows no
 * child processes, servers and threads, or would bypass Node's permissions: `node:sqlite` opens files itself.
 */
export const builtIns = [
  'assert',
  'assert/strict',
  'async_hooks',
  'buffer',
  'console',
  'constants',
  'crypto',
  'diagnostics_channel',
  'dns',
  'dns/promises',
  'events',
  'fs',
  'fs/promises',
  'http',
  'http2',
  'https',
  'net',
  'os',
  'path',
  'path/posix',
  'path/win32',
  'perf_hooks',
  'process',
  'punycode',
  'querystring',
  'stream',
  'stream/consumers',
  'stream/promises',
  'stream/web',
  'string_decoder',
  'timers',
  'timers/promises',
  'tls',
  'tty',
  'url',
  'util',
  'util/types',
  'zlib',
];

/** The other modules of Node, which nothing in the jail can load. A test fails if Node has a module that is in neither list. */
export const closedBuiltIns = [
  '_http_agent',
  '_http_client',
  '_http_common',
  '_http_incoming',
  '_http_outgoing',
  '_http_server',
  '_stream_duplex',
  '_stream_passthrough',
  '_stream_readable',
  '_stream_transform',
  '_stream_wrap',
  '_stream_writable',
  '_tls_common',
  '_tls_wrap',
  'child_process',
  'cluster',
  'dgram',
  'domain',
  'inspector',
  'inspector/promises',
  'module',
  'readline',
  'readline/promises',
  'repl',
  'sys',
  'trace_events',
  'v8',
  'vm',
  'wasi',
  'worker_threads',
  'node:sea',
  'node:sqlite',
  'node:test',
  'node:test/reporters',
];

// Available with --expose-internals, until the list is closed
const helpers = 'internal/modules/helpers';

interface BuiltinModule {
  constructor: { setRealmAllowRequireByUsers?(names: string[]): void };
}

/**
 * Closes all other modules of Node, through Node's list of modules that `require`, `import` and `process.getBuiltinModule` may load. Every `require`, of
 * packages and of the runner, uses the same list. Modules that are already loaded keep working.
 * @throws if this Node does not have such a list
 */
export function closeBuiltIns(): void {
  const require = createRequire(__filename);
  const { loadBuiltinModule } = require(helpers) as { loadBuiltinModule(name: string): BuiltinModule };
  const list = loadBuiltinModule('fs').constructor;
  if (!list.setRealmAllowRequireByUsers) throw new Error(`Node ${process.version} has no list of modules: the sandbox cannot close any`);
  list.setRealmAllowRequireByUsers(builtIns);
}

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { currentRun } from './run-state.js';

const closed = [
  'abort',
  'binding',
  'chdir',
  'dlopen',
  'execve',
  'exit',
  'kill',
  'reallyExit',
  'setegid',
  'seteuid',
  'setgid',
  'setgroups',
  'setuid',
  'umask',
  '_debugProcess',
  '_kill',
  '_linkedBinding',
];

/** Replaces functions that would fail in the jail with an errno or end the process by ones that throw a readable error. It is not a security boundary. */
export function closeProcess(): void {
  const surface = process as unknown as Record<string, unknown>;
  // The runner's own module, with the runner's own `require`
  delete surface.mainModule;
  for (const name of closed) {
    if (!(name in process)) continue;
    surface[name] = () => {
      throw Object.assign(new Error(`process.${name}() is not available to a component`), { code: 'NOT_AVAILABLE' });
    };
  }
  const { umask } = surface as { umask: (mask: unknown) => never };
  // packages read it when they are loaded: that of most systems
  surface.umask = (mask?: unknown) => (mask === undefined ? 0o022 : umask(mask));
}

/**
 * Node's realpathSync in JavaScript does not check the permission to read, so that it shows whether a file exists: in a jail without a separate root
 * directory, any file of the machine. It is not a security boundary.
 */
export function resolvePathsNatively(): void {
  const { native } = fs.realpathSync;
  fs.realpathSync = Object.assign(native, { native });
  syncBuiltinESMExports();
}

/** Node reads the resident memory from /proc, which the jail does not have. Here, it is the most so far. */
export function installMemoryUsage(): void {
  const resources = process.resourceUsage.bind(process);
  const rss = (): number => resources().maxRSS * 1024;
  const memoryUsage = (): NodeJS.MemoryUsage => {
    const { total_heap_size: heapTotal, used_heap_size: heapUsed, external_memory: external } = getHeapStatistics();
    return { rss: rss(), heapTotal, heapUsed, external, arrayBuffers: 0 };
  };
  process.memoryUsage = Object.assign(memoryUsage, { rss });
}

/** `process.env` contains only the id of the source whose run reads it. */
export function installEnvironment(): void {
  // `os.homedir()` reads it from the environment of the process, and throws if neither that nor a file of users has it
  process.env.HOME = tmpdir();
  const env = Object.defineProperty({}, 'PD_COMPONENT', { get: () => currentRun.getStore()?.job.sourceId, enumerable: true });
  Object.defineProperty(process, 'env', { value: env, writable: true, configurable: true });
}

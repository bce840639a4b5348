import type { JailedProgram } from './jail.js';

/**
 * Options of prlimit(1). The data limit counts what V8 reserves for compiled code (some 525 MB of it): 800 MB leave about 275 MB to use, and the
 * kernel keeps to that where watching the resident memory every 100 ms comes too late.
 */
export const resourceLimits = (kind: JailedProgram['kind']): string[] => [
  '--nofile=1024',
  '--core=0',
  // npm writes the archives of packages
  `--fsize=${kind === 'npm' ? 64 << 20 : 16 << 20}`,
  '--data=800000000',
  '--memlock=0',
  '--msgqueue=0',
  '--rttime=0:0',
  '--nice=0:0',
];

/** Only if it counts the processes of this jail alone: with a separate user namespace or a separate user. */
export const processLimit = '--nproc=24';

export const tmpBytes = 16 << 20;

import { resolve } from 'node:path';
import { boolean, choice, Config, integer, text, variable } from '#config';
import { allowPrivateHosts, protectedHosts } from '#egress';
import { maxEventBytes } from '#events';

/** The part of the configuration that concerns the sandbox. */
export class RunnerConfig extends Config({
  dataDir: text('SLUICE_DATA_DIR', {
    fallback: '.sluice',
    description: 'Data folder: with `npm start` for all data, otherwise for the root directory of the jail.',
  }),
  prebuiltJailRoots: variable('RUNNER_JAIL_ROOTS', {
    fallback: '',
    description:
      'Folders with prebuilt root directories of the jail, separated by commas. The image sets it, so that the runtime writes nothing.',
    parse: (text) =>
      text
        .split(',')
        .filter((folder) => folder !== '')
        .map((folder) => resolve(folder)),
  }),
  jail: choice('RUNNER_JAIL', {
    words: ['auto', 'bwrap', 'unshare', 'setpriv-lsm', 'setpriv', 'none'],
    fallback: 'auto',
    description:
      'Jail of the processes that run components; `auto` chooses the strongest that works on the machine. `setpriv` means `setpriv-lsm` where that works. ' +
      'docs/security.md compares the jails.',
  }),
  trustsComponents: boolean('RUNNER_TRUST_ALL_COMPONENTS', {
    fallback: false,
    description:
      'Whether to run components where no jail can contain hostile code. Any of them can then read what this user can read (passwords, keys), reach ' +
      'every port of this machine and its network, and stop other processes. Without it, the runtime refuses to start there.',
  }),
  runSeconds: integer('SLUICE_MAX_RUN_SECONDS', {
    fallback: 30,
    min: 1,
    max: 300,
    description:
      'Longest run of a component. When the service stops, runs that do not end within `SLUICE_SHUTDOWN_TIMEOUT` are stopped, and repeated after the start.',
  }),
  cpuSeconds: integer('SLUICE_MAX_RUN_CPU_SECONDS', {
    fallback: 5,
    min: 1,
    max: 300,
    description: 'CPU time that a run may use; two fifths of it without a pause, because other runs in the same process wait meanwhile.',
  }),
  memoryMb: integer('SLUICE_MAX_RUN_MEMORY_MB', {
    fallback: 256,
    min: 128,
    max: 16_384,
    description: 'Memory of a process that runs components, in MB; JavaScript objects may take half of it.',
  }),
  emits: integer('SLUICE_MAX_RUN_EMITS', { fallback: 1000, min: 1, max: 10_000, description: 'Events that a run may emit.' }),
  eventBytes: maxEventBytes,
  isolation: choice('RUNNER_ISOLATION', {
    words: ['account', 'source'],
    fallback: 'account',
    description:
      'Whether the sources of an account share a process (`account`) or each has its own (`source`). With `source`, what the runs of many sources leave running can take CPU from other accounts.',
  }),
  allowPrivateHosts,
  protectedHosts,
}) {}

import { resolve } from 'node:path';
import { boolean, choice, Config, text, variable } from '#config';
import { allowPrivateHosts, protectedHosts } from '#egress';

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
    words: ['auto', 'bwrap', 'unshare', 'setpriv', 'none'],
    fallback: 'auto',
    description: 'Jail of the processes that run components; `auto` chooses the strongest that works on the machine.',
  }),
  trustsComponents: boolean('RUNNER_TRUST_ALL_COMPONENTS', {
    fallback: false,
    description:
      'Whether to run components where no jail can contain hostile code. Any of them can then read what this user can read (passwords, keys), reach ' +
      'every port of this machine and its network, and stop other processes. Without it, the runtime refuses to start there.',
  }),
  isolation: choice('RUNNER_ISOLATION', {
    words: ['account', 'source'],
    fallback: 'account',
    description: 'Whether the sources of an account share a process (`account`) or each has its own (`source`).',
  }),
  allowPrivateHosts,
  protectedHosts,
}) {}

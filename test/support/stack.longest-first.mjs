import Sequencer from '@jest/test-sequencer';

/** The files that take longest, longest first. On a machine that has not run them yet, jest would order all files by their size. */
const LONGEST = [
  'packages/packages.spec.ts',
  'attacks/attacks.int-spec.ts',
  'simulation/mutants.spec.ts',
  'real-components/described.spec.ts',
  'sandbox/inspect.spec.ts',
  'append/mutants.spec.ts',
  'sandbox/run.spec.ts',
  'test/documents.e2e-spec.ts',
  'test/rest-api.e2e-spec.ts',
  'test/hostile-requests.e2e-spec.ts',
  'test/writes-are-visible.e2e-spec.ts',
  'test/command-line.e2e-spec.ts',
  'test/frozen-replica.e2e-spec.ts',
  'test/secrets-are-rotated.e2e-spec.ts',
  'test/limits-and-outages.e2e-spec.ts',
  'test/two-of-each.e2e-spec.ts',
  'test/stops-finish-their-work.e2e-spec.ts',
  'test/secured-stores.e2e-spec.ts',
  'test/accounts-do-not-starve-each-other.e2e-spec.ts',
  'test/killed-app-loses-nothing.e2e-spec.ts',
  'test/lost-log.e2e-spec.ts',
  'test/runtime-killed.e2e-spec.ts',
];

export default class LongestFirst extends (Sequencer.default ?? Sequencer) {
  sort(tests) {
    return super.sort(tests).sort((one, other) => rank(one) - rank(other));
  }
}

/** Jest knows the durations of files that have run on this machine, and has sorted them. */
function rank({ path, duration }) {
  const index = LONGEST.findIndex((name) => path.endsWith(name));
  return duration !== undefined || index < 0 ? LONGEST.length : index;
}

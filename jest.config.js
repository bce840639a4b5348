import { readdirSync } from 'node:fs';
import { testSeed } from './scripts/stories/test-seed.mjs';

// The workers inherit it. Randomised tests read it from there.
process.env.SLUICE_SEED = String(testSeed());

// By their names, because packages have imports of this form, too.
const libraries = readdirSync(new URL('libs', import.meta.url));

/** The same decorators and class fields as in tsconfig.json: a test must not see another program than the one that runs. */
const swc = {
  sourceMaps: 'inline',
  module: { type: 'es6' },
  jsc: {
    target: 'es2024',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    experimental: { keepImportAttributes: true },
  },
};

const common = {
  // Not the root: node_modules and the data of a running Sluice need not be crawled.
  roots: ['apps', 'libs', 'packages', 'scripts', 'test'].map((folder) => `<rootDir>/${folder}`),
  testEnvironment: '<rootDir>/test/support/stack.environment.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': ['@swc/jest', swc] },
  moduleNameMapper: {
    // Sets the seed of every property.
    '^fast-check$': '<rootDir>/test/support/seeded-fast-check.mjs',
    // Libraries from their sources: a unit test needs no build.
    [`^#(${libraries.join('|')})$`]: '<rootDir>/libs/$1/src/index.ts',
    '^@sluice/client$': '<rootDir>/packages/client/src/index.ts',
    // TypeScript sources import each other by the names of their output.
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
};

/**
 * Time limits only end tests that hang. They are far longer than a test takes on a busy machine: jest's own 5 s were too short for one that starts
 * a process. Jest knows one limit for all projects, so each sets its own as it starts.
 * @param {number} seconds for a test or a hook
 */
const timeLimit = (seconds) => ({
  globals: { testTimeLimitMs: seconds * 1000 },
  setupFilesAfterEnv: ['<rootDir>/test/support/stack.time-limit.mjs'],
});

export default {
  // One more than there are cores: tests wait for processes, time limits and the stores.
  maxWorkers: 3,
  // After it, jest kills a worker and warns that a test leaks. On a busy machine, an idle worker may take longer than jest's own half a second.
  workerGracefulExitTimeout: 20_000,
  testSequencer: './test/support/stack.longest-first.mjs',
  watchman: false,
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: ['<rootDir>/{apps,libs,packages}/**/*.spec.ts', '<rootDir>/scripts/**/*.spec.mjs'],
      ...timeLimit(120),
    },
    {
      ...common,
      displayName: 'integration',
      testMatch: ['<rootDir>/{apps,libs}/**/*.int-spec.ts'],
      globalSetup: '<rootDir>/test/support/stack.setup.mjs',
      globalTeardown: '<rootDir>/test/support/stack.teardown.mjs',
      ...timeLimit(120),
    },
    {
      ...common,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.e2e-spec.ts'],
      globalSetup: '<rootDir>/test/support/stack.setup-e2e.mjs',
      globalTeardown: '<rootDir>/test/support/stack.teardown.mjs',
      runner: '<rootDir>/test/support/stack.stories-runner.mjs',
      setupFiles: ['<rootDir>/test/support/stack.use-worker-stores.mjs'],
      ...timeLimit(600),
    },
  ],
};

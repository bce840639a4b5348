import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { TestEnvironment } from 'jest-environment-node';

const FOLDER = join(tmpdir(), 'sluice-failed-stories');
/** Of the lines that report trouble, which are shown in the test's output. */
const SHOWN = 30;

/** Keeps the output of the apps of a story, see `LocalApps`: when a test fails, it is in a file before they are stopped. */
export default class StoryEnvironment extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.story = basename(context.testPath).replace(/\.e2e-spec\.ts$/, '');
    this.global.outputOfApps = [];
  }

  handleTestEvent({ name, test }) {
    if (name === 'test_done' && test.errors.length > 0 && this.global.outputOfApps.length > 0) this.keepOutput();
  }

  keepOutput() {
    const lines = this.global.outputOfApps.map(({ app, line }) => `${app} ${line}`);
    const file = join(FOLDER, `${this.story}-${Date.now()}.log`);
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, lines.join('\n'));
    const trouble = lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line)).slice(-SHOWN);
    console.error(`The output of the apps of ${this.story} is in ${file}. The last reports of trouble:\n${trouble.join('\n')}`);
  }
}

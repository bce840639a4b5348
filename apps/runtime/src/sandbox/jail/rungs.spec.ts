import { afterAll, describe, expect, it } from '@jest/globals';
import { startMockInternet } from '../egress/mock-internet-for-tests.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import { jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import type { JailChoice } from './choose-jail.js';

const internet = await startMockInternet();
const choices: JailChoice[] = ['bwrap', 'unshare', 'setpriv', 'none'];
const started = await Promise.all(choices.map((jail) => start(jail)));
afterAll(() => internet.close());

/** The same for every rung of the ladder that this machine has; `attacks/` is about what each holds back. */
describe.each(started)('a component in $name', ({ name, sandbox }) => {
  afterAll(() => sandbox?.close());
  const itWorks = sandbox ? it : it.skip;

  itWorks('runs, keeps its db and reaches the internet', async () => {
    const code =
      'export default { name: "n", props: { db: "$.service.db" }, async run({ port }) { this.db.set("a", 1); this.$emit((await (await fetch(`http://api.test:${port}/`)).json()).ok) } }';
    const outcome = await sandbox!.run(jobOf(code, { event: JSON.stringify({ port: internet.http }) }));
    expect(outcome).toMatchObject({ status: 'ok', error: null, emits: [{ event: 'true' }], db: { a: '1' } });
  });

  itWorks('is refused what is forbidden', async () => {
    const code = 'export default { name: "n", async run({ port }) { await fetch(`http://127.0.0.1:${port}/`) } }';
    expect(await sandbox!.run(jobOf(code, { event: JSON.stringify({ port: internet.forbidden }) }))).toMatchObject({
      status: 'threw',
      error: { code: 'EACCES' },
    });
    expect(internet.forbiddenConnections()).toBe(0);
  });

  itWorks('loads packages, of both kinds, and TypeScript', async () => {
    const code =
      'import axios from "axios"; import { get } from "lodash"; export default { name: "n", run(): void { this.$emit([typeof axios.get, get({ a: 1 }, "a")] as unknown[]) } }';
    expect(await sandbox!.run(jobOf(code))).toMatchObject({ error: null, emits: [{ event: '["function",1]' }] });
  });

  itWorks('is bundled with its neighbours', async () => {
    const files = { 'a.mjs': 'import b from "./b.mjs"; export default { name: b }', 'b.mjs': 'export default "n"' };
    expect(await sandbox!.bundle({ entry: 'a.mjs', files })).toContain('name: b_default');
  });

  itWorks('is killed when it loops, and leaves the account usable', async () => {
    expect(await sandbox!.run(jobOf('export default { name: "n", run() { for (;;); } }'))).toMatchObject({
      status: 'killed',
      error: { code: 'BLOCKED' },
    });
    expect(await sandbox!.run(jobOf('export default { name: "n", run() { this.$emit(1) } }'))).toMatchObject({ status: 'ok' });
  });

  itWorks('names its rung', () => {
    expect(sandbox!.health().jail.startsWith(name)).toBe(true);
  });
});

async function start(jail: JailChoice): Promise<{ name: JailChoice; sandbox: ProcessSandbox | null }> {
  const config = { jail, allowPrivateHosts: internet.allowed, lookup: internet.lookup, limits: { silenceCpuMs: 1500 } };
  const sandbox = await startTestSandbox(config).catch((error: Error) => {
    process.stderr.write(`\nNOT TESTED: ${error.message}\n`);
    return null;
  });
  return { name: jail, sandbox };
}

import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { componentOf, jobOf, startTestSandbox } from './sandbox-for-tests.js';

const remember = 'export default { name: "n", run() { globalThis.seen = (globalThis.seen ?? 0) + 1; this.$emit(globalThis.seen) } }';
const waiting = 'export default { name: "n", async run() { this.$emit(1); await new Promise(() => {}) } }';

/** Occupies the file descriptors of this process except a few. @returns frees them */
function holdDescriptors(left: number): () => void {
  const limitTo = (soft: string) => execFileSync('prlimit', [`--pid=${process.pid}`, `--nofile=${soft}:`]);
  const before = execFileSync('prlimit', [`--pid=${process.pid}`, '--nofile', '--output=SOFT', '--noheadings', '--raw'])
    .toString()
    .trim();
  const held: number[] = [];
  limitTo('500');
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {
    for (const descriptor of held.splice(0, left)) closeSync(descriptor);
  }
  return () => {
    for (const descriptor of held) closeSync(descriptor);
    limitTo(before);
  };
}

describe('ProcessSandbox', () => {
  it('gives each source a separate process if configured', async () => {
    const sandbox = await startTestSandbox({ isolation: 'source' });
    const seen = async (sourceId: string) => (await sandbox.run(jobOf(remember, { sourceId }))).emits[0]!.event;
    expect([await seen('dc_a'), await seen('dc_a'), await seen('dc_b')]).toEqual(['1', '2', '1']);
    await sandbox.close();
  });

  it('replaces a process after the configured number of runs', async () => {
    const sandbox = await startTestSandbox({ maxRuns: 2 });
    const seen: string[] = [];
    for (let i = 0; i < 5; i++) seen.push((await sandbox.run(jobOf(remember))).emits[0]!.event);
    expect(seen).toEqual(['1', '2', '1', '2', '1']);
    await sandbox.close();
  });

  it('replaces a process after code has often failed while it was loaded, because each attempt leaves code in it', async () => {
    const code = 'globalThis.loads = (globalThis.loads ?? 0) + 1; throw new Error(String(globalThis.loads))';
    const sandbox = await startTestSandbox({ maxCodeLength: 2.5 * code.length });
    const loads: (string | undefined)[] = [];
    for (let i = 0; i < 4; i++) loads.push((await sandbox.run(jobOf(code))).error?.message);
    expect(loads).toEqual(['1', '2', '3', '1']);
    await sandbox.close();
  });

  it('replaces a process before the packages that it has loaded fill its memory', async () => {
    const sandbox = await startTestSandbox();
    const packages = `const text = "${'x'.repeat(6 << 20)}"; const big = { text }; export { big as "import big" };`;
    const seen: string[] = [];
    for (let n = 0; n < 5; n++) {
      const code = `import "big"; ${remember} //${n}`;
      const { emits } = await sandbox.run({ ...jobOf(code), component: { ...componentOf(code), packages } });
      seen.push(emits[0]!.event);
    }
    expect(seen).toEqual(['1', '2', '3', '1', '2']);
    await sandbox.close();
  });

  it('reports its jail and the work in progress', async () => {
    const sandbox = await startTestSandbox({ blanks: 1 });
    const run = sandbox.run(jobOf(waiting, { wallMs: 300 }));
    expect(sandbox.health()).toEqual({ jail: expect.any(String), refused: expect.any(Array), processes: 1, running: 1, waiting: 0 });
    await run;
    await sandbox.close();
  });

  it('ends runs in flight when it is closed, and starts no others', async () => {
    const sandbox = await startTestSandbox({ blanks: 1 });
    // Once it has responded, what it emitted before has been sent.
    const emitting =
      'export default { name: "n", props: { http: { type: "$.interface.http", customResponse: true } }, async run() { this.$emit(1); await new Promise((r) => setTimeout(r, 10)); this.http.respond({}); await new Promise(() => {}) } }';
    const { promise: responded, resolve: onRespond } = Promise.withResolvers<unknown>();
    const run = sandbox.run(jobOf(emitting, { onRespond }));
    await responded;
    await sandbox.close();
    expect(await run).toMatchObject({ status: 'killed', error: { code: 'CLOSED' }, emits: [{ event: '1' }] });
    await expect(sandbox.run(jobOf(waiting))).rejects.toMatchObject({ name: 'SandboxUnavailable' });
    expect(sandbox.health().processes).toBe(0);
  });

  it('repeats a run that has written more than all runs may together, until it fails', async () => {
    const sandbox = await startTestSandbox({ limits: { heldOutputBytes: 1e5 } });
    const writing = 'export default { name: "n", async run() { this.$emit("x".repeat(2e5)); await new Promise(() => {}) } }';
    expect(await sandbox.run(jobOf(writing))).toMatchObject({
      status: 'memory',
      error: { message: 'Sluice was short of memory, and the code wrote the most output (0 MB)' },
    });
    await sandbox.close();
  });

  describe('of a frame that its code does not finish', () => {
    /** Writes the head of a frame of 8 MiB, and this many bytes of it. */
    const begin = (bytes: number) => `const frame = Buffer.alloc(${bytes}, 32); frame.writeUInt32BE(8 << 20);
      for (let at = 0; at < frame.length;) try { at += (await import("fs")).writeSync(3, frame, at) } catch { await new Promise((r) => setTimeout(r, 1)) }`;

    it('counts the beginning as output of the process', async () => {
      const sandbox = await startTestSandbox({ limits: { heldOutputBytes: 1e5 } });
      const code = `export default { name: "n", async run() { ${begin(2e5)} await new Promise(() => {}) } }`;
      expect(await sandbox.run(jobOf(code, { wallMs: 20_000 }))).toMatchObject({
        status: 'memory',
        error: { message: 'Sluice was short of memory, and the code wrote the most output (0 MB)' },
      });
      await sandbox.close();
    });

    it('does not reject an inspected component because the service is short of memory', async () => {
      const sandbox = await startTestSandbox({ blanks: 0, limits: { heldOutputBytes: 1e5, inspectIdleMs: 20_000 } });
      const code = `${begin(2e5)} await new Promise((r) => setTimeout(r, 20_000)); export default { name: "n", run() {} }`;
      await expect(sandbox.inspect(componentOf(code))).rejects.toMatchObject({
        name: 'SandboxUnavailable',
        message: expect.stringContaining('wrote the most output'),
      });
      await sandbox.close();
    });

    it('ends the process after its runs', async () => {
      const sandbox = await startTestSandbox({ blanks: 0 });
      const code = `export default { name: "n", run() { setTimeout(async () => { ${begin(2 << 20)} }, 10) } }`;
      expect(await sandbox.run(jobOf(code))).toMatchObject({ status: 'ok' });
      expect(sandbox.health().processes).toBe(1);
      for (let left = 100; sandbox.health().processes > 0 && left > 0; left--) await sleep(100);
      expect(sandbox.health().processes).toBe(0);
      await sandbox.close();
    });
  });

  it('counts what each attempt of a run costs the main thread', async () => {
    const sandbox = await startTestSandbox({ blanks: 0 });
    const writing = `export default { name: "n", props: { http: { type: "$.interface.http", customResponse: true } }, async run(waits) {
      if (!globalThis.isFirst) return;
      for (let n = 0; n < 7; n++) this.$emit([n, ...Array(2e5).fill("ab")]);
      await new Promise(setImmediate);
      this.http.respond({});
      if (waits) await new Promise(() => {});
    } }`;
    await sandbox.run(jobOf('export default { name: "n", run() { globalThis.isFirst = true } }'));
    const once = await sandbox.run(jobOf(writing, { event: 'false' }));
    const { promise: written, resolve: onRespond } = Promise.withResolvers<unknown>();
    const repeated = sandbox.run(jobOf(writing, { event: 'true', onRespond }));
    await written;
    await sandbox.run(jobOf('export default { name: "n", run() { require("fs").closeSync(3); return new Promise(() => {}) } }'));
    expect([once.emits.length, (await repeated).emits.length]).toEqual([7, 0]);
    expect((await repeated).mainMs).toBeGreaterThan(once.mainMs / 10);
    await sandbox.close();
  });

  it('fails runs for want of file descriptors, and repeats them later', async () => {
    const sandbox = await startTestSandbox({ blanks: 0 });
    const seen = new Set<string>();
    for (const left of [0, 3, 6, 9, 12]) {
      const job = jobOf(remember, { accountId: `u_${left}` });
      const free = holdDescriptors(left);
      const failed = await sandbox.run(job).catch((error: Error) => error);
      free();
      seen.add(failed instanceof Error ? failed.name : failed.status);
      expect(await sandbox.run(job)).toMatchObject({ status: 'ok' });
    }
    expect([...seen]).toEqual(['SandboxUnavailable', 'ok']);
    await sandbox.close();
  });

  it('does not start with a list of exceptions that cannot be read', async () => {
    await expect(startTestSandbox({ allowPrivateHosts: '10.0.0.0/99' })).rejects.toThrow(
      '"10.0.0.0/99" is not a CIDR, address or host name',
    );
  });

  it('does not start with a package that is not installed', async () => {
    await expect(startTestSandbox({ modules: ['not-installed'] })).rejects.toThrow('The package not-installed is not installed');
  });
});

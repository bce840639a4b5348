import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { flush, printer } from './output.mjs';
import { inRoot } from './paths.mjs';

/** An output whose reader takes the next write when `read` is called. */
function slowOutput() {
  let text = '';
  /** @type {(() => void)[]} */
  const waiting = [];
  const output = new Writable({
    decodeStrings: false,
    write: (chunk, _encoding, done) => {
      text += chunk;
      waiting.push(done);
    },
  });
  return { output, text: () => text, read: () => waiting.shift()?.() };
}

describe('the printer of lines', () => {
  it('prints lines at once', () => {
    const { output, text } = slowOutput();
    printer(output)('a');
    expect(text()).toBe('a\n');
  });

  it('leaves lines out while too much waits, and then prints their number', async () => {
    const { output, text, read } = slowOutput();
    const line = 'x'.repeat(40_000);
    const print = printer(output, 100_000);
    for (let n = 1; n <= 6; n++) print(`${n} ${line}`);
    while (output.writableLength > 0) {
      read();
      await new Promise((resolve) => setImmediate(resolve));
    }
    print('after');
    expect(text().replaceAll(line, '')).toBe('1 \n2 \n3 \n… lines left out, because this output was not read: 3\nafter\n');
  });
});

describe('the last output of a process', () => {
  it('is written before the process exits', async () => {
    const { output, text, read } = slowOutput();
    for (const line of ['a', 'b']) output.write(line);
    const reader = setInterval(read, 1);
    await flush([output], 10_000);
    clearInterval(reader);
    expect(text()).toBe('ab');
  });

  it('is not waited for if its reader takes nothing', async () => {
    const { output } = slowOutput();
    output.write('a');
    await flush([output], 10);
    expect(output.writableLength).toBe(1);
  });
});

/** @param {() => boolean} condition */
async function until(condition) {
  for (const deadline = Date.now() + 30_000; !condition(); await sleep(20)) if (Date.now() > deadline) throw new Error('not within 30 s');
}

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;
(hasScript ? describe : describe.skip)('a process in a terminal that takes no output', () => {
  /** @type {string} */
  let folder;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-output-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('works, stops on a signal, and keeps a bounded part of its output', async () => {
    const state = join(folder, 'state');
    const program = `
      import { spawnSync } from 'node:child_process';
      import { writeFileSync } from 'node:fs';
      import { stopOnSignals } from '${inRoot('scripts', 'processes', 'stop-on-signals.mjs')}';
      import { printer, standardOutput } from '${inRoot('scripts', 'shell', 'output.mjs')}';
      const output = standardOutput();
      const print = printer(output);
      spawnSync('true', { stdio: 'inherit' });
      const write = (text) => writeFileSync(${JSON.stringify(state)}, text);
      stopOnSignals({ stop: async () => write('stopped'), kill: async () => {}, say: print, output });
      for (let n = 0; n < 10_000; n++) print('x'.repeat(1000));
      write(JSON.stringify({ pid: process.pid, waits: output.writableLength }));
      setInterval(() => {}, 1000);`;
    const script = join(folder, 'program.mjs');
    writeFileSync(script, program);
    // nobody reads the output of `script`, so that it no longer reads that of the terminal
    const terminal = spawn('script', ['-qec', `'${process.execPath}' '${script}'`, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] });
    try {
      await until(() => existsSync(state) && readFileSync(state, 'utf8') !== '');
      const { pid, waits } = JSON.parse(readFileSync(state, 'utf8'));
      expect(waits).toBeGreaterThan(900_000);
      expect(waits).toBeLessThan(1_100_000);
      process.kill(pid, 'SIGTERM');
      await until(() => readFileSync(state, 'utf8') === 'stopped');
      terminal.stdout.resume();
      await once(terminal, 'exit');
    } finally {
      terminal.kill('SIGKILL');
    }
  });
});

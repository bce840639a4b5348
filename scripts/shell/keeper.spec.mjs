import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inRoot } from './paths.mjs';
import { processIdentity } from '../pid-files/process-identity.mjs';

/** @type {string} */
let folder;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-keeper-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program that uses the keeper, and kills it when it prints a line. @param {string} program */
async function killed(program) {
  const preamble = `
    import { spawn } from 'node:child_process';
    import { removeAtEnd, watch } from '${inRoot('scripts', 'shell', 'keeper.mjs')}';
    import { run } from '${inRoot('scripts', 'shell', 'run.mjs')}';
    const start = (script) => spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore', cwd: '${folder}' }).pid;`;
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', `${preamble}\n${program}; setTimeout(() => console.log('ready'), 300);`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** @param {() => boolean} isTrue */
async function until(isTrue) {
  while (!isTrue()) await sleep(20);
}

const ended = () => (existsSync(join(folder, 'ended')) ? readFileSync(join(folder, 'ended'), 'utf8').trim().split('\n') : []);

/** Ends a while after SIGTERM. @param {string} name @param {string} [first] what it does before */
const service = (name, first = ':') => `'trap "${first}; echo ${name} >> ended; exit" TERM; while :; do sleep 0.05; done'`;

describe('after a process that was killed', () => {
  it('the keeper removes all of its temporary folders', async () => {
    const folders = ['one', 'with a blank'].map((name) => join(folder, name));
    for (const each of folders) mkdirSync(each);
    await killed(folders.map((each) => `removeAtEnd('${each}')`).join(';'));
    await until(() => !folders.some((each) => existsSync(each)));
  });

  it('the keeper removes no folder whose path is the first line of another one', async () => {
    const [mine, others] = [join(folder, 'mine'), join(folder, 'others')];
    for (const each of [mine, others, `${others}\n`]) mkdirSync(each);
    await killed(`for (const each of ${JSON.stringify([`${others}\n`, mine])}) removeAtEnd(each)`);
    await until(() => !existsSync(mine));
    expect(existsSync(others)).toBe(true);
  });

  it('the keeper stops the stores when the apps have ended', async () => {
    await killed(`watch(start(${service('store')}), 'SIGTERM', { kind: 'store' }); watch(start(${service('app', 'sleep 2')}), 'SIGTERM');`);
    await until(() => ended().length === 2);
    expect(ended()).toEqual(['app', 'store']);
  });

  it('the keeper kills an app that does not end in its time, and then stops the stores', async () => {
    await killed(
      `watch(start(${service('store')}), 'SIGTERM', { kind: 'store' }); watch(start(${service('app', 'sleep 10')}), 'SIGTERM', { graceMs: 1000 });`,
    );
    await until(() => ended().length > 0);
    expect(ended()).toEqual(['store']);
  });

  it('the keeper kills the command that it was waiting for', async () => {
    await killed(`void run('/bin/sh', ['-c', 'trap "" TERM; echo $$ > pid; while :; do sleep 0.05; done'], { cwd: '${folder}' })`);
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    await until(() => processIdentity(pid) === null);
  });
});

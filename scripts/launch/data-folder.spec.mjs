import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { readPidFile, writePidFile } from '../pid-files/pid-file.mjs';
import {
  announce,
  dataFolder,
  findRunning,
  localInstance,
  lockDataFolder,
  stopLeftovers,
  unlockDataFolder,
  usesDatabaseOf,
  withdraw,
} from './data-folder.mjs';

/** @type {import('./data-folder.mjs').DataFolder} */
let folder;
beforeEach(() => void (folder = dataFolder(mkdtempSync(join(tmpdir(), 'sluice-data-')))));
afterEach(() => rmSync(folder.dir, { recursive: true }));

const ADDRESSES = { url: 'http://127.0.0.1:4000', kafka: 'localhost:4092' };
const stopped = () => ({ SLUICE_LOCAL_FOLDER: folder.dir, SLUICE_LOCAL_URL: undefined, SLUICE_LOCAL_KEY_FILE: undefined });

test('the command line gets the URL and the key of the instance that is running on a folder, and neither if none is', async () => {
  expect(localInstance(folder)).toEqual(stopped());
  await lockDataFolder(folder);
  announce(folder, { KAFKA_BROKERS: '127.0.0.1:9092' }, ADDRESSES);
  expect(localInstance(folder)).toEqual({ ...stopped(), SLUICE_LOCAL_URL: 'http://127.0.0.1:4000', SLUICE_LOCAL_KEY_FILE: folder.apiKey });
  expect(findRunning(folder)).toMatchObject({ KAFKA_BROKERS: '127.0.0.1:9092' });
  unlockDataFolder(folder);
  expect(localInstance(folder)).toEqual(stopped());
});

test('an instance uses the database of the environment if it was started with the same URL, in a variable or a file', () => {
  /** @param {string} name @param {string} url */
  const file = (name, url) => {
    writeFileSync(join(folder.dir, name), url);
    return join(folder.dir, name);
  };
  const [ours, theirs] = ['postgres://db/postgres', 'postgres://other/postgres'];
  const running = { DATABASE_URL: '', DATABASE_URL_FILE: file('running', `${ours}\n`) };
  expect(usesDatabaseOf(running, { DATABASE_URL: ours })).toBe(true);
  expect(usesDatabaseOf(running, { DATABASE_URL_FILE: file('same', ours) })).toBe(true);
  expect(usesDatabaseOf(running, { DATABASE_URL: theirs })).toBe(false);
  expect(usesDatabaseOf(running, { DATABASE_URL_FILE: file('other', theirs) })).toBe(false);
  expect(usesDatabaseOf(running, { DATABASE_URL_FILE: join(folder.dir, 'missing') })).toBe(false);
  // the embedded server
  expect(usesDatabaseOf({ DATABASE_URL: ours }, { DATABASE_URL: ours })).toBe(false);
});

test('the addresses of an instance that was killed are not those of the one that starts', async () => {
  announce(folder, {}, ADDRESSES);
  await lockDataFolder(folder);
  expect(localInstance(folder)).toEqual(stopped());
});

test('one of several processes at a time has the folder, also if they pause between two steps, and those that are killed leave nothing behind', async () => {
  const program = `
    import { closeSync, openSync, rmSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    const { dataFolder, lockDataFolder, unlockDataFolder } = await import(${JSON.stringify(new URL('data-folder.mjs', import.meta.url).href)});
    const folder = dataFolder(${JSON.stringify(folder.dir)});
    const held = folder.dir + '/held';
    for (let n = 0; n < 5; n++) {
      await lockDataFolder(folder);
      closeSync(openSync(held, 'wx'));
      await sleep(20);
      rmSync(held);
      unlockDataFolder(folder);
    }`;
  writePidFile(join(folder.dir, 'lock'), 2 ** 30);
  const processes = Array.from({ length: 4 }, () => spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' }));
  const pauses = setInterval(() => {
    const paused = processes[Math.floor(Math.random() * processes.length)];
    paused?.kill('SIGSTOP');
    setTimeout(() => paused?.kill('SIGCONT'), 120);
  }, 40);
  const codes = await Promise.all(processes.map((each) => new Promise((resolve) => each.once('exit', resolve))));
  clearInterval(pauses);
  expect(codes).toEqual([0, 0, 0, 0]);
  writePidFile(join(folder.claims, '1073741824'), 2 ** 30);
  await lockDataFolder(folder);
  expect(readdirSync(folder.claims)).toEqual([expect.stringMatching(`^${process.pid}-`)]);
}, 60_000);

test('the drafts of secrets that a killed start has left are removed by the next one', async () => {
  const secrets = [folder.apiKey, ...[folder.secrets, folder.broker, folder.postgres].map((part) => join(part, 'password'))];
  const drafts = () => secrets.flatMap((file) => readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file))));
  const program = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    fs.renameSync = () => process.kill(process.pid, 'SIGKILL');
    syncBuiltinESMExports();
    const { writeSecret } = await import(${JSON.stringify(new URL('../shell/secret-file.mjs', import.meta.url).href)});
    writeSecret(process.argv[1], 'secret');`;
  for (const file of secrets) {
    mkdirSync(dirname(file), { recursive: true });
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', program, file]).signal).toBe('SIGKILL');
  }
  expect(drafts()).toHaveLength(secrets.length);
  writeFileSync(join(folder.broker, 'broker.log.1'), '');
  await lockDataFolder(folder);
  expect(drafts()).toEqual([]);
  expect(readdirSync(folder.broker)).toEqual(['broker.log.1']);
});

describe('a folder that exists', () => {
  const modeOf = () => statSync(folder.dir).mode & 0o7777;

  test('is refused if it has only other files, and is not changed', async () => {
    chmodSync(folder.dir, 0o1700);
    for (const part of ['apps', 'secrets', 'letters']) mkdirSync(join(folder.dir, part));
    await expect(lockDataFolder(folder)).rejects.toThrow(
      `SLUICE_DATA_DIR must be a separate folder, but ${folder.dir} has other files, such as `,
    );
    expect(readdirSync(folder.dir).sort()).toEqual(['apps', 'letters', 'secrets']);
    expect(modeOf()).toBe(0o1700);
  });

  test.each(['api-key', 'secrets-key', 'postgres'])('is a data folder if it contains %s', async (name) => {
    for (const part of [name, 'letters']) mkdirSync(join(folder.dir, part));
    await lockDataFolder(folder);
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
  });

  test('keeps its mode if it is empty, but all users can traverse it', async () => {
    mkdirSync(join(folder.dir, 'lost+found'));
    chmodSync(folder.dir, 0o2770);
    await lockDataFolder(folder);
    expect(modeOf()).toBe(0o2771);
  });
});

describe('the data folder of another user', () => {
  // only root can give files to another user
  const testAsRoot = process.getuid?.() === 0 ? test : test.skip;
  const [NOBODY, SOMEONE] = [65_534, 12_345];
  /** Returns the output of a program that runs as another user. @param {number} uid @param {string} program */
  const outputAs = async (uid, program) => {
    const preamble = `
      const { dataFolder, isOfAnotherUser, localInstance, lockDataFolder } = await import(${JSON.stringify(new URL('data-folder.mjs', import.meta.url).href)});
      process.setuid(${uid});
      const folder = dataFolder(${JSON.stringify(folder.dir)});`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', `${preamble}${program}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    return (await child.stdout.setEncoding('utf8').toArray()).join('').trim();
  };
  const lockedAs = (/** @type {number} */ uid) =>
    outputAs(uid, 'await lockDataFolder(folder).catch(({ message }) => console.log(message))');
  const refusal = (/** @type {number} */ uid) =>
    `The data folder ${folder.dir} belongs to another user (uid ${uid}): start Sluice as that user, or change the owner with chown -R.`;

  testAsRoot('is refused to every other user, root included', async () => {
    chownSync(folder.dir, NOBODY, NOBODY);
    expect(await lockedAs(NOBODY)).toBe('');
    expect(await lockedAs(SOMEONE)).toBe(refusal(NOBODY));
    await expect(lockDataFolder(folder)).rejects.toThrow(refusal(NOBODY));
  });

  testAsRoot('is refused if root has taken its database in an earlier start', async () => {
    chownSync(folder.dir, NOBODY, NOBODY);
    expect(await lockedAs(NOBODY)).toBe('');
    mkdirSync(folder.postgres);
    expect(await lockedAs(NOBODY)).toBe(refusal(0));
  });

  testAsRoot('can be used by root if only its database belongs to the user that runs PostgreSQL', async () => {
    mkdirSync(folder.postgres);
    chownSync(folder.postgres, NOBODY, NOBODY);
    await lockDataFolder(folder);
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
  });

  testAsRoot('is recognised while an instance of that user is running', async () => {
    await lockDataFolder(folder);
    announce(folder, {}, ADDRESSES);
    chmodSync(folder.dir, 0o711);
    expect(await outputAs(NOBODY, 'console.log(JSON.stringify([isOfAnotherUser(folder), localInstance(folder)]))')).toBe('[true,{}]');
    unlockDataFolder(folder);
  });
});

test('a new data folder can be traversed but not listed by other users', async () => {
  const created = dataFolder(join(folder.dir, 'new', 'data'));
  await lockDataFolder(created);
  expect(statSync(created.dir).mode & 0o7777).toBe(0o711);
});

test('a service that a killed launcher has left behind has the time that services have to stop', async () => {
  mkdirSync(join(folder.dir, 'apps'));
  /** @param {{ stopsInMs: number, graceMs: number }} times */
  const exitCode = async ({ stopsInMs, graceMs }) => {
    const stop = `process.on("SIGTERM", () => setTimeout(() => process.exit(7), ${stopsInMs})); setInterval(() => {}, 1000); console.log("up")`;
    const service = spawn(process.execPath, ['-e', stop]);
    const exited = once(service, 'exit');
    await once(service.stdout, 'data');
    writePidFile(folder.appPidFile('runtime'), Number(service.pid));
    expect(await stopLeftovers(folder, { graceMs })).toBe(true);
    return (await exited)[0];
  };
  expect(await exitCode({ stopsInMs: 600, graceMs: 20_000 })).toBe(7);
  expect(await exitCode({ stopsInMs: 60_000, graceMs: 100 })).toBeNull();
});

describe('a data folder that another process has locked', () => {
  /** @type {import('node:child_process').ChildProcess} */
  let other;
  beforeEach(() => {
    other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    writePidFile(folder.lock, Number(other.pid));
    announce(folder, {}, ADDRESSES);
  });
  afterEach(() => void other.kill('SIGKILL'));

  test('is refused at once while the other instance is running', async () => {
    await expect(lockDataFolder(folder)).rejects.toThrow(
      `Sluice is already running on ${folder.dir} (process ${other.pid}): stop it first`,
    );
  });

  test('is locked as soon as the other instance has stopped, and the wait is announced once', async () => {
    rmSync(folder.running);
    /** @type {string[]} */
    const said = [];
    const say = (/** @type {string} */ line) => {
      said.push(line);
      other.kill('SIGKILL');
    };
    await lockDataFolder(folder, { say });
    expect(said).toEqual([
      `Sluice is starting or stopping on ${folder.dir} (process ${other.pid}): waiting until it has stopped, at most 20 s`,
    ]);
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
  });

  test('is refused while the other instance has claimed it, but has paused before it writes the lock', async () => {
    rmSync(folder.lock);
    mkdirSync(folder.claims);
    writePidFile(join(folder.claims, String(other.pid)), Number(other.pid));
    await expect(lockDataFolder(folder, { withinMs: 300 })).rejects.toThrow('Sluice is already running');
    expect(readdirSync(folder.claims)).toEqual([String(other.pid)]);
  });

  test('is refused when the other instance does not stop in the time that its services have', async () => {
    rmSync(folder.running);
    await expect(lockDataFolder(folder, { graceMs: 50 })).rejects.toThrow('Sluice is already running');
  });
});

describe('a data folder that a process of another container has locked', () => {
  // the same number as this process has
  const other = JSON.stringify({ pid: process.pid, identity: 'boot/1', namespace: 'pid:[1]' });
  beforeEach(() => {
    mkdirSync(folder.claims);
    for (const file of [folder.lock, join(folder.claims, `${process.pid}-1234`)]) writeFileSync(file, other);
    announce(folder, {}, ADDRESSES);
  });

  test('is refused while that process runs, and not changed', async () => {
    /** @type {string[]} */
    const said = [];
    const say = (/** @type {string} */ line) => {
      said.push(line);
      // its clock may be wrong
      utimesSync(folder.lock, 1_000_000, 1_000_000);
    };
    await expect(lockDataFolder(folder, { say, silentMs: 60_000 })).rejects.toThrow(
      `Sluice is already running on ${folder.dir} (process ${process.pid} of another container, or outside this one): stop it first`,
    );
    expect(said).toEqual([expect.stringContaining('waiting for up to 60 s for a sign that it is running')]);
    expect(readFileSync(folder.lock, 'utf8')).toBe(other);
    expect(localInstance(folder)).toEqual(stopped());
    expect(readdirSync(folder.claims)).toEqual([`${process.pid}-1234`]);
    expect(statSync(folder.running).isFile()).toBe(true);
  });

  test('is locked when the files of that process have not changed for as long as its services and stores may take to stop', async () => {
    let now = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
    const locking = lockDataFolder(folder, { withinMs: 100, silentMs: 1000 });
    now = 1000;
    await sleep(200);
    expect(readPidFile(folder.lock)).toBe(null);
    // its lock and its claim have both been observed since the beginning
    now = 1001;
    await locking;
    clock.mockRestore();
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
    expect(readdirSync(folder.claims)).toEqual([expect.stringMatching(`^${process.pid}-(?!1234)`)]);
  });

  test('is locked as soon as that process has stopped', async () => {
    rmSync(join(folder.claims, `${process.pid}-1234`));
    const say = jest.fn(() => rmSync(folder.lock));
    await lockDataFolder(folder, { say });
    expect(say).toHaveBeenCalledTimes(1);
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
  });

  test('is locked at once if only the draft of the claim of that process is left', async () => {
    rmSync(folder.lock);
    renameSync(join(folder.claims, `${process.pid}-1234`), join(folder.claims, `${process.pid}-1234.${process.pid}.draft`));
    const say = (/** @type {string} */ line) => {
      throw new Error(line);
    };
    await lockDataFolder(folder, { say });
    expect(readPidFile(folder.lock)?.pid).toBe(process.pid);
  });

  test('is not changed by a process that had it before it was suspended, which is notified', async () => {
    jest.useFakeTimers();
    try {
      rmSync(folder.claims, { recursive: true });
      rmSync(folder.lock);
      const lost = jest.fn();
      await lockDataFolder(folder, { lost });
      jest.advanceTimersByTime(60_000);
      expect(lost).not.toHaveBeenCalled();
      writeFileSync(folder.lock, other);
      announce(folder, {}, ADDRESSES);
      utimesSync(folder.lock, 1, 1);
      jest.advanceTimersByTime(10_000);
      expect(statSync(folder.lock).mtimeMs).toBe(1000);
      jest.advanceTimersByTime(60_000);
      expect(lost).toHaveBeenCalledTimes(1);
      withdraw(folder);
      unlockDataFolder(folder);
      expect(readFileSync(folder.lock, 'utf8')).toBe(other);
      expect(statSync(folder.running).isFile()).toBe(true);
      expect(readdirSync(folder.claims)).toEqual([]);
    } finally {
      jest.useRealTimers();
    }
  });
});

test('a locked data folder is touched, so that other containers see that it is in use', async () => {
  jest.useFakeTimers();
  try {
    await lockDataFolder(folder);
    utimesSync(folder.lock, 1, 1);
    jest.advanceTimersByTime(10_000);
    expect(statSync(folder.lock).mtimeMs).toBeGreaterThan(1_700_000_000_000);
    unlockDataFolder(folder);
    writeFileSync(folder.lock, '');
    utimesSync(folder.lock, 1, 1);
    jest.advanceTimersByTime(10_000);
    expect(statSync(folder.lock).mtimeMs).toBe(1000);
  } finally {
    jest.useRealTimers();
  }
});

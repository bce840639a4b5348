import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { inRoot } from '../../scripts/shell/paths.mjs';
import type { Api } from './api.js';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A command that has not ended. */
export interface Running {
  child: ChildProcess;
  /** Its output so far. */
  out(): string;
  err(): string;
  ended: Promise<Ended>;
}

const PROGRAM = inRoot('packages', 'cli', 'dist', 'sluice.mjs');

/** The command line for users, as one account runs it. */
export class CommandLine {
  /** An empty folder: the working directory. */
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  readonly env: Record<string, string | undefined>;
  private readonly running = new Set<ChildProcess>();

  private constructor(api: Api) {
    this.env = {
      PATH: process.env.PATH,
      XDG_CONFIG_HOME: join(this.folder, '.config'),
      SLUICE_URL: api.baseUrl,
      SLUICE_API_KEY: api.account.api_key,
      NO_COLOR: '1',
    };
  }

  static async of(api: Api): Promise<CommandLine> {
    await promisify(execFile)(process.execPath, [inRoot('packages', 'cli', 'build.mjs')]);
    return new CommandLine(api);
  }

  /** @param folder the working directory, in that of the other commands */
  start(
    args: string[],
    { input = '', env = {}, folder = '.' }: { input?: string; env?: Record<string, string | undefined>; folder?: string } = {},
  ): Running {
    const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: join(this.folder, folder), env: { ...this.env, ...env } });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    return this.started(child);
  }

  /** A shell script that calls `sluice`, without a standard input. */
  script(text: string): Promise<Ended> {
    const bin = join(this.folder, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'sluice'), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, { mode: 0o755 });
    const env = { ...this.env, PATH: `${bin}:${this.env.PATH}` };
    return this.started(spawn('sh', ['-c', text], { cwd: this.folder, env, stdio: ['ignore', 'pipe', 'pipe'] })).ended;
  }

  private started(child: ChildProcessByStdio<Writable | null, Readable, Readable>): Running {
    this.running.add(child);
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        this.running.delete(child);
        resolve({ code, stdout, stderr });
      });
    });
    return { child, out: () => stdout, err: () => stderr, ended };
  }

  run(args: string[], options?: Parameters<CommandLine['start']>[1]): Promise<Ended> {
    return this.start(args, options).ended;
  }

  /** Standard output of a command that must succeed. */
  async output(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args);
    if (code !== 0) throw new Error(`sluice ${args.join(' ')} exited with ${code}: ${stderr}${stdout}`);
    return stdout;
  }

  /** The same, as JSON. */
  async json(...args: string[]): Promise<any> {
    return JSON.parse(await this.output(...args, '-o', 'json'));
  }

  close(): void {
    for (const child of this.running) child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
